"""Updates of a conversation in the terms of the protocol, into the pump of its session."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from acp.schema import (
    AgentMessageChunk,
    AgentPlanUpdate,
    AgentThoughtChunk,
    ConfigOptionUpdate,
    Cost,
    CurrentModeUpdate,
    PlanEntry,
    SessionInfoUpdate,
    TextContentBlock,
    ToolCallProgress,
    ToolCallStart,
    UsageUpdate,
    UserMessageChunk,
)
from msgspec import Struct, field
from pydantic import BaseModel

from engine.machine.messages import (
    ImageBlock,
    Origin,
    Role,
    TextBlock,
    ThinkingBlock,
    ToolResult,
    ToolUseBlock,
    text_in,
)
from engine.records import ConversationRecord, StoredMessage, ToolCallRecord
from engine.updates import (
    ContextChanged,
    ConversationChanged,
    LiveTextDropped,
    MessageSaved,
    Noticed,
    RetryScheduled,
    Snapshot,
    TextArrived,
    ThinkingArrived,
    ToolEnded,
    ToolProgressed,
    ToolStarted,
    Update,
)
from phoenix_tui.acp.connection import fields_of
from phoenix_tui.acp.parameters import OptionsOf
from phoenix_tui.acp.tool_calls import (
    HIDDEN,
    TAIL,
    CallContent,
    build_content,
    code_part,
    display_of,
    file_of,
    input_of,
    kind_of,
    locations_of,
    make_edit,
    make_parts,
    output_of,
    status_of,
    text_content,
    title_of,
)
from tools.clean import clean, clean_line
from tools.contract import DiffDisplay, OutputChunk
from tools.displays import TodoItem, TodoStatus

if TYPE_CHECKING:
    from engine.conversation import Conversation

APART: Final = 0.05
"""Seconds between two bursts: clients draw every update."""
LONGEST_CHUNK: Final = 256 * 1024
"""Characters of merged text in one update."""

Send = Callable[[BaseModel], Awaitable[None]]
Later = Callable[[], Awaitable[BaseModel | None]]
"""An update that is made when its turn comes; None: there is nothing to say."""


class UpdatePump:
    """Sends updates from a task of its own, so that a slow client never holds up a conversation."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._waiting: list[BaseModel | Later] = []
        self._wake = asyncio.Event()
        self._empty = asyncio.Event()
        self._empty.set()
        self._hurry = asyncio.Event()
        self._is_closed = False
        self._task = asyncio.get_running_loop().create_task(self._run())

    def put(self, update: BaseModel | Later) -> None:
        """Add an update; text and the newest output of a call are merged with what waits."""
        if self._is_closed:
            return
        if not self._merge(update):
            self._waiting.append(update)
        self._empty.clear()
        self._wake.set()

    def say(self, text: str) -> None:
        """Add text of the agent."""
        if text:
            self.put(AgentMessageChunk(session_update="agent_message_chunk", content=text_content(text)))

    async def flush(self) -> None:
        """Wait until everything so far is sent."""
        self._hurry.set()
        try:
            await self._empty.wait()
        finally:
            self._hurry.clear()

    async def close(self) -> None:
        """Send nothing more."""
        self._is_closed = True
        self._task.cancel()
        self._empty.set()
        with suppress(asyncio.CancelledError):
            await self._task

    def _merge(self, update: BaseModel | Later) -> bool:
        last = self._waiting[-1] if self._waiting else None
        if last is None or callable(last) or type(last) is not type(update):
            return False
        whole: BaseModel | None = None
        if isinstance(update, AgentMessageChunk | AgentThoughtChunk):
            whole = _join_chunks(last, update)
        elif isinstance(update, ToolCallProgress) and isinstance(last, ToolCallProgress):
            same = last.tool_call_id == update.tool_call_id
            fields: dict[str, Any] = {name: getattr(update, name) for name in update.model_fields_set}
            whole = last.model_copy(update=fields) if same else None
        if whole is not None:
            self._waiting[-1] = whole
        return whole is not None

    async def _run(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            burst, self._waiting = self._waiting, []
            for one in burst:
                update = await one() if callable(one) else one
                if update is not None:
                    with suppress(ConnectionError):  # the end of the input says it
                        await self._send(update)
            if not self._waiting:
                self._empty.set()
            with suppress(TimeoutError):
                async with asyncio.timeout(APART):
                    await self._hurry.wait()


def build_thought_chunk(text: str) -> AgentThoughtChunk:
    """A part of the agent's reasoning."""
    return AgentThoughtChunk(session_update="agent_thought_chunk", content=text_content(text))


def _join_chunks(last: Any, update: AgentMessageChunk | AgentThoughtChunk) -> BaseModel | None:
    before, after = last.content, update.content
    if not isinstance(before, TextContentBlock) or not isinstance(after, TextContentBlock):
        return None
    if len(before.text) + len(after.text) > LONGEST_CHUNK:
        return None
    return update.model_copy(update={"content": text_content(before.text + after.text)})


ASKED_AGAIN: Final = "The reply broke off and is asked for again."
STATUSES: Final = {
    TodoStatus.PENDING: "pending",
    TodoStatus.IN_PROGRESS: "in_progress",
    TodoStatus.COMPLETED: "completed",
}
"""Statuses of todo items in a plan, which has no cancelled entries."""


class CallInView(Struct):
    """A call that the client knows."""

    name: str
    paths: tuple[Path, ...] = ()
    tail: str = ""


class Translator(Struct):
    """State of one session's translation."""

    pump: UpdatePump
    record: ConversationRecord
    options_of: OptionsOf
    known_notes: set[str] = field(default_factory=set[str])
    """Stored notes that are left out, each once."""
    calls: dict[str, CallInView] = field(default_factory=dict[str, CallInView])
    _spoken: int = 0
    """Characters of the reply under way that were sent."""
    _thought: int = 0
    _gap: bool = False
    """True between two replies of a turn, whose texts would else run into each other."""

    def follow(self, update: Update) -> None:
        """Take in one update."""
        match update:
            case TextArrived(text):
                self._say(text)
                self._spoken += len(text)
            case ThinkingArrived(text) if text:
                self._thought += len(text)
                self.pump.put(build_thought_chunk(text))
            case LiveTextDropped(cancelled):
                if self._spoken and not cancelled:
                    self.notice(ASKED_AGAIN)
                self._spoken = self._thought = 0
            case MessageSaved(message):
                self._show_message(message)
            case ToolStarted() | ToolProgressed() | ToolEnded():
                self._call(update)
            case _:
                self._follow_facts(update)

    def _follow_facts(self, update: Update) -> None:
        match update:
            case ConversationChanged(record):
                self._show_changes(record)
            case ContextChanged():
                if update.window > 0:
                    cost = None if update.cost_usd is None else Cost(amount=update.cost_usd, currency="USD")
                    used = UsageUpdate(session_update="usage_update", used=update.tokens, size=update.window, cost=cost)
                    self.pump.put(used)
            case Noticed(text):
                self.notice(text)
            case RetryScheduled(attempt, seconds, cause):
                self.notice(f"{cause} Attempt {attempt} follows in {seconds:.0f} s.")
            case Snapshot(conversation=record):
                self.record = record
            case _:
                pass  # for screens only

    def begin_turn(self) -> None:
        """Begin the words of another turn."""
        self._gap = False

    def _say(self, text: str) -> None:
        if text:
            self.pump.say(f"\n\n{text}" if self._gap else text)
            self._gap = False

    def notice(self, text: str) -> None:
        """Say something that is not the model's, in italics."""
        if said := clean_line(text).strip():
            self.pump.say(f"\n\n*{said.replace('*', ' ')}*\n\n")

    def begin_call(self, call_id: str, name: str, input_json: str) -> None:
        """Tell the client about a call, once."""
        if name in HIDDEN or call_id in self.calls:
            return
        self.calls[call_id] = CallInView(name)
        self.pump.put(
            ToolCallStart(
                session_update="tool_call",
                tool_call_id=call_id,
                title=clean_line(name),
                kind=kind_of(name),
                status="pending",
                raw_input=input_of(input_json),
            )
        )

    def _show_message(self, message: StoredMessage) -> None:
        if message.role is Role.SYSTEM and message.origin is Origin.NOTICE and not message.silent:
            note = text_in(message.blocks, " ")
            if note not in self.known_notes:
                self.notice(note)
            self.known_notes.discard(note)
        if message.role is not Role.ASSISTANT or message.silent:
            return
        if not self._thought:
            for block in message.blocks:
                if isinstance(block, ThinkingBlock) and block.text:
                    self.pump.put(build_thought_chunk(clean(block.text)))
        if not self._spoken:
            self._say(clean(text_in(message.blocks, "\n\n")))
        self._spoken = self._thought = 0
        self._gap = any(isinstance(block, TextBlock) for block in message.blocks) or self._gap
        for block in message.blocks:
            if isinstance(block, ToolUseBlock):
                self.begin_call(block.id, block.name, block.input_json)

    def _call(self, update: ToolStarted | ToolProgressed | ToolEnded) -> None:
        match update:
            case ToolStarted(call, request):
                self.begin_call(call.id, call.name, call.input_json)
                if (seen := self.calls.get(call.id)) is None:
                    return
                seen.paths = request.paths if request is not None else ()
                self.pump.put(
                    progress(
                        call.id,
                        status="in_progress",
                        title=title_of(call.name, request),
                        locations=locations_of(request, input_of(call.input_json)),
                    )
                )
            case ToolProgressed(call_id, OutputChunk(text)):
                if (seen := self.calls.get(call_id)) is not None and text:
                    seen.tail = (seen.tail + text)[-TAIL:]
                    self.pump.put(progress(call_id, content=[code_part(seen.tail)]))
            case ToolEnded(result):
                if (ended := self.calls.pop(result.call_id, None)) is not None:
                    self.pump.put(partial(self._end_call, result, ended))
            case _:
                pass

    async def _end_call(self, result: ToolResult, call: CallInView) -> BaseModel:
        display = display_of(result.display_json)
        content = list(build_content(display, "" if isinstance(display, DiffDisplay) else result.text))
        if isinstance(display, DiffDisplay):
            path = file_of(display, call.paths, self.record.cwd)
            content.append(await make_edit(path, display, is_done=True))
        return progress(result.call_id, status=status_of(result.status), content=content, raw_output=output_of(result))

    def _show_changes(self, record: ConversationRecord) -> None:
        before, self.record = self.record, record
        if record.todos.items != before.todos.items:
            self.pump.put(plan_of(record.todos.items))
        if record.title != before.title:
            self.pump.put(SessionInfoUpdate(session_update="session_info_update", title=clean_line(record.title)))
        if record.permission_mode is not before.permission_mode:
            mode = record.permission_mode.value
            self.pump.put(CurrentModeUpdate(session_update="current_mode_update", current_mode_id=mode))
        chosen = (record.permission_mode, record.model, record.effort)
        if chosen != (before.permission_mode, before.model, before.effort):
            self.pump.put(partial(self._make_options, record))

    async def _make_options(self, record: ConversationRecord) -> BaseModel:
        options = await self.options_of(record)
        return ConfigOptionUpdate(session_update="config_option_update", config_options=options)


def progress(call_id: str, **fields: object) -> ToolCallProgress:
    """A change of a call that the client knows."""
    return ToolCallProgress.model_validate({"session_update": "tool_call_update", "tool_call_id": call_id, **fields})


def plan_of(items: Sequence[TodoItem]) -> AgentPlanUpdate:
    """The todo list as a plan."""
    entries = [
        PlanEntry.model_validate({"content": item.words, "priority": "medium", "status": STATUSES[item.status]})
        for item in items
        if item.status in STATUSES
    ]
    return AgentPlanUpdate(session_update="plan", entries=entries)


PAGE: Final = 100
"""Messages read at once."""


async def replay(conversation: Conversation, translator: Translator) -> None:
    """Send the whole history, oldest first. Raises StorageError."""
    newest = conversation.record.message_count
    for first in range(1, newest + 1, PAGE):
        page = await conversation.history(first + PAGE, PAGE)
        calls = {call.tool_use_id: call for call in page.tool_calls}
        for message in page.messages:
            if message.seq >= first:
                _message(message, calls, translator)
        await translator.pump.flush()
    if conversation.record.todos.items:
        translator.pump.put(plan_of(conversation.record.todos.items))
    await translator.pump.flush()


def _message(message: StoredMessage, calls: Mapping[str, ToolCallRecord], translator: Translator) -> None:
    pump = translator.pump
    if message.silent:
        return
    match message.role:
        case Role.USER if message.origin is Origin.HUMAN:
            text = clean(text_in(message.blocks, "\n\n"))
            images = sum(isinstance(block, ImageBlock) for block in message.blocks)
            text += f"\n\n[{images} image{'s' if images > 1 else ''}]" if images else ""
            if text:
                pump.put(UserMessageChunk(session_update="user_message_chunk", content=text_content(text)))
        case Role.ASSISTANT:
            for block in message.blocks:
                match block:
                    case ThinkingBlock(text=text) if text:
                        pump.put(build_thought_chunk(clean(text)))
                    case TextBlock(text=text):
                        pump.say(f"{clean(text)}\n\n")
                    case ToolUseBlock(id=call_id, name=name) if name not in HIDDEN:
                        pump.put(_call(block, calls.get(call_id), translator))
                    case _:
                        pass
        case Role.SYSTEM if message.origin is Origin.NOTICE:
            translator.notice(text_in(message.blocks, " "))
        case _:
            pass


def _call(block: ToolUseBlock, call: ToolCallRecord | None, translator: Translator) -> ToolCallStart:
    """A settled call; of a diff the changed parts, since the file has changed since."""
    content: list[CallContent] = []
    if call is not None:
        display = display_of(call.display_json)
        content += build_content(display, "" if isinstance(display, DiffDisplay) else call.output_text)
        if isinstance(display, DiffDisplay):
            content.append(make_parts(file_of(display, (), translator.record.cwd), display))
    given = input_of(block.input_json)
    fields = fields_of(given)
    words = next((str(fields[one]) for one in ("command", "path", "pattern", "url") if fields.get(one)), "")
    return ToolCallStart(
        session_update="tool_call",
        tool_call_id=block.id,
        title=clean_line(words)[:500] or clean_line(block.name),
        kind=kind_of(block.name),
        status=status_of(call.status) if call is not None else "failed",
        content=content,
        raw_input=given,
    )
