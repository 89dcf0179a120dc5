"""Updates of a conversation in the terms of the protocol, into the pump of its session."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Final

from acp.schema import (
    AgentPlanUpdate,
    ConfigOptionUpdate,
    Cost,
    CurrentModeUpdate,
    PlanEntry,
    SessionInfoUpdate,
    ToolCallProgress,
    ToolCallStart,
    UsageUpdate,
)
from msgspec import Struct, field
from pydantic import BaseModel

from engine.machine.messages import (
    Origin,
    Role,
    TextBlock,
    ThinkingBlock,
    ToolResult,
    ToolUseBlock,
    text_in,
)
from engine.records import ConversationRecord, StoredMessage
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
from phoenix_tui.acp.options import OptionsOf
from phoenix_tui.acp.pump import UpdatePump, thought
from phoenix_tui.acp.tool_calls import (
    HIDDEN,
    TAIL,
    code_part,
    display_of,
    file_of,
    input_of,
    kind_of,
    locations_of,
    output_of,
    shown,
    status_of,
    title_of,
)
from phoenix_tui.acp.whole_diffs import edited_file
from tools.clean import clean, clean_line
from tools.contract import DiffDisplay, OutputChunk
from tools.todo_items import TodoItem, TodoStatus

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
                self.pump.put(thought(text))
            case LiveTextDropped(cancelled):
                if self._spoken and not cancelled:
                    self.notice(ASKED_AGAIN)
                self._spoken = self._thought = 0
            case MessageSaved(message):
                self._saved(message)
            case ToolStarted() | ToolProgressed() | ToolEnded():
                self._call(update)
            case _:
                self._follow_facts(update)

    def _follow_facts(self, update: Update) -> None:
        match update:
            case ConversationChanged(record):
                self._changed(record)
            case ContextChanged():
                self._used(update)
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

    def begun(self, call_id: str, name: str, input_json: str) -> None:
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

    def _saved(self, message: StoredMessage) -> None:
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
                    self.pump.put(thought(clean(block.text)))
        if not self._spoken:
            self._say(clean(text_in(message.blocks, "\n\n")))
        self._spoken = self._thought = 0
        self._gap = any(isinstance(block, TextBlock) for block in message.blocks) or self._gap
        for block in message.blocks:
            if isinstance(block, ToolUseBlock):
                self.begun(block.id, block.name, block.input_json)

    def _call(self, update: ToolStarted | ToolProgressed | ToolEnded) -> None:
        match update:
            case ToolStarted(call, request):
                self.begun(call.id, call.name, call.input_json)
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
                    self.pump.put(partial(self._ended, result, ended))
            case _:
                pass

    async def _ended(self, result: ToolResult, call: CallInView) -> BaseModel:
        display = display_of(result.display_json)
        content = list(shown(display, "" if isinstance(display, DiffDisplay) else result.text))
        if isinstance(display, DiffDisplay):
            path = file_of(display, call.paths, self.record.cwd)
            content.append(await edited_file(path, display, is_done=True))
        return progress(result.call_id, status=status_of(result.status), content=content, raw_output=output_of(result))

    def _changed(self, record: ConversationRecord) -> None:
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
            self.pump.put(partial(self._options, record))

    async def _options(self, record: ConversationRecord) -> BaseModel:
        options = await self.options_of(record)
        return ConfigOptionUpdate(session_update="config_option_update", config_options=options)

    def _used(self, update: ContextChanged) -> None:
        if update.window > 0:
            cost = None if update.cost_usd is None else Cost(amount=update.cost_usd, currency="USD")
            used = UsageUpdate(session_update="usage_update", used=update.tokens, size=update.window, cost=cost)
            self.pump.put(used)


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
