"""Data of a transcript: a window of messages, its tool calls, runs of quick reads, and the current reply."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from engine.machine import states
from engine.machine.messages import (
    Block,
    ImageBlock,
    Origin,
    Role,
    TextBlock,
    ThinkingBlock,
    ToolCall,
    ToolResult,
    ToolResultBlock,
    ToolStatus,
    ToolUseBlock,
    is_own_call,
    text_in,
)
from engine.records import ConversationRecord, StoredMessage, ToolCallRecord
from engine.updates import RunningCall, Snapshot
from phoenix_tui.text.agent_text import read_submission
from phoenix_tui.widgets.blocks.rows import (
    UNSETTLED,
    ToolView,
    append_output,
    display_of,
    read_grant,
    summary_of,
    view_queued_call,
    view_stored_call,
)
from phoenix_tui.widgets.blocks.speech import StopNotice, is_stop_notice
from tools.call_titles import SERVER_TOOL
from tools.clean import clean, clean_line
from tools.clock import SYSTEM_CLOCK, Clock
from tools.contract import (
    OutputChunk,
    OutputSoFar,
    ProcessesEnded,
    ProcessStarted,
    ProgramEnded,
    Progress,
    TerminalDisplay,
    ToolRequest,
)
from tools.shell_output import all_lines, readable
from tools.terminal.values import TerminalRows

LONG: Final = 5.0
"""Seconds from which a running command shows what it uses."""


class CallBook:
    """Calls by id; `changed` collects the ids of those that look different since it was last emptied."""

    def __init__(self) -> None:
        self._views: dict[str, ToolView] = {}
        self._slots: dict[str, int] = {}
        self._running: dict[str, None] = {}
        self._images: dict[str, tuple[ImageBlock, ...]] = {}
        self.changed: set[str] = set()
        self.grown: set[str] = set()
        """Calls whose images came: their message has more parts than before."""

    def view(self, block: ToolUseBlock) -> ToolView:
        return self._views.get(block.id) or view_queued_call(ToolCall(block.id, block.name, block.input_json))

    def get(self, call_id: str) -> ToolView | None:
        return self._views.get(call_id)

    def images(self, call_id: str) -> tuple[ImageBlock, ...]:
        return self._images.get(call_id, ())

    def slot(self, call_id: str) -> int | None:
        return self._slots.get(call_id)

    @property
    def running(self) -> Iterable[str]:
        return tuple(self._running)

    def add(self, message: StoredMessage, stored: Mapping[str, ToolCallRecord]) -> None:
        for block in message.blocks:
            if isinstance(block, ToolResultBlock):
                images = tuple(part for part in block.content if isinstance(part, ImageBlock))
                if images and block.tool_use_id not in self._images:
                    self._images[block.tool_use_id] = images
                    self.grown.add(block.tool_use_id)
            if isinstance(block, ToolUseBlock):
                self._slots[block.id] = message.seq - 1
                if block.id not in self._views:
                    record = stored.get(block.id)
                    self._put(self.view(block) if record is None else view_stored_call(record))

    def grant(self, message: StoredMessage) -> bool:
        """Put the yes that a stored row is about at the end of its call's row; False for any other row."""
        grant = read_grant(text_of(message)) if message.role is Role.SYSTEM and not message.silent else None
        before = [slot for slot in self._slots.values() if slot < message.seq - 1] if grant is not None else []
        if grant is None or not before:
            return False
        newest = max(before)
        found = [self._views[one] for one, slot in self._slots.items() if slot == newest and one in self._views]
        named = [view for view in found if not view.allowed and grant.names(view)]
        asking = [view for view in named if view.status is ToolStatus.AWAITING_APPROVAL]
        for view in (*asking, *named)[:1]:
            self._put(replace(view, allowed=grant.words))
        return bool(named)

    def forget(self, message: StoredMessage) -> None:
        for block in message.blocks:
            if isinstance(block, ToolUseBlock):
                self._views.pop(block.id, None)
                self._slots.pop(block.id, None)
                self._running.pop(block.id, None)
                self._images.pop(block.id, None)

    def clear(self) -> None:
        self._views.clear()
        self._slots.clear()
        self._running.clear()
        self._images.clear()
        self.changed.clear()
        self.grown.clear()

    def start(self, call: ToolCall, request: ToolRequest | None, now: float) -> None:
        view = self._views.get(call.id) or view_queued_call(call)
        told = "" if request is None or call.name.startswith(SERVER_TOOL) else request.summary
        summary = told or summary_of(call.input_json, call.name)
        self._put(replace(view, summary=summary, status=ToolStatus.RUNNING, since=now, tail=""))

    def mark(self, call_id: str, status: ToolStatus, since: float) -> None:
        view = self._views.get(call_id)
        if view is not None and view.status is not status and view.status in UNSETTLED:
            self._put(replace(view, status=status, since=since))

    def resume(self, running: RunningCall) -> None:
        """A call that ran before anyone looked: its clock and its newest output."""
        view = self._views.get(running.call_id)
        if view is not None:
            view = replace(view, status=ToolStatus.RUNNING, since=running.started, tail=clean(running.tail))
            self._put(replace(view, wants_screen=running.wants_screen))

    def progress(self, call_id: str, progress: Progress) -> None:
        view = self._views.get(call_id)
        if view is None:
            return
        match progress:
            case OutputChunk(text=text):
                self._put(replace(view, tail=append_output(view, text)))
            case TerminalRows(text=text, runs=runs, folder=folder, cursor=cursor):
                view = replace(view, tail=text, runs=runs, folder=folder, cursor=cursor)
                self._put(replace(view, wants_screen=progress.wants_screen, reads_keys=progress.reads_keys))
            case ProcessesEnded(count=count):
                self._put(replace(view, ended_processes=count))
            case ProgramEnded(captured=captured, exit_code=code, seconds=seconds):
                status = ToolStatus.ERROR if code else ToolStatus.SUCCESS
                display = TerminalDisplay(readable(captured), code, lines=all_lines(captured))
                self._put(replace(view, status=status, display=display, duration=seconds))
            case ProcessStarted(pid=pid):
                self._put(replace(view, pid=pid))
            case OutputSoFar():
                pass

    def end(self, result: ToolResult, duration: float, ended_processes: int) -> None:
        view = self._views.get(result.call_id)
        if view is None:
            return
        ended = replace(view, status=result.status, text=clean(result.text), display=display_of(result))
        processes = ended_processes or view.ended_processes
        self._put(replace(ended, duration=duration, ended_processes=processes))

    def use(self, call_id: str, words: str) -> None:
        """Note what a running command uses."""
        view = self._views.get(call_id)
        if view is not None and view.status is ToolStatus.RUNNING and view.usage != words:
            self._put(replace(view, usage=words))

    def touch_running(self) -> None:
        self.changed.update(self._running)

    def _put(self, view: ToolView) -> None:
        self._views[view.id] = view
        self.changed.add(view.id)
        if view.status is ToolStatus.RUNNING:
            self._running[view.id] = None
        else:
            self._running.pop(view.id, None)


KEPT_MESSAGES: Final = 1_000
"""Messages held in memory; others are loaded again when they come into view (docs/decisions/textual.md)."""

NEWEST: Final = 8_000
"""Characters of a reasoning under way that can be looked at; all of it once it is complete."""


class LiveThinking:
    """The reasoning under way: how much it is, and its end; each piece is read once."""

    def __init__(self, text: str = "") -> None:
        self.pieces: list[str] = []
        self.words = 0
        self.newest = ""
        """Last `NEWEST` characters."""
        if text:
            self.add(text)

    def add(self, text: str) -> None:
        goes_on = bool(self.newest) and not self.newest[-1].isspace() and not text[:1].isspace()
        self.words += len(text.split()) - (goes_on and bool(text))
        self.pieces.append(text)
        self.newest = (self.newest + text)[-NEWEST:]

    @property
    def newest_line(self) -> str:
        return clean_line(self.newest.strip().rsplit("\n", 1)[-1])


class LiveReply(Struct):
    """Text of the current reply so far, and other content below the last message."""

    pieces: list[str] = field(default_factory=list[str])
    thinking: LiveThinking = field(default_factory=LiveThinking)
    drafting: tuple[str, int] | None = None
    notices: list[str] = field(default_factory=list[str])
    stopped: StopNotice | None = None
    """Set once the user stopped the turn: the text above it was not saved."""

    @property
    def text(self) -> str:
        return "".join(self.pieces)


def shows_nothing(message: StoredMessage) -> bool:
    """True when it has no part: tool results and the output of the user's own commands belong to their calls.

    A silent message has one only with a detailed log (SPEC CLAW-13).
    """
    told = message.role is Role.USER and message.origin is Origin.NOTICE
    hidden = message.silent and not logging.getLogger().isEnabledFor(logging.DEBUG)
    return hidden or told or message.origin is Origin.TOOL


def is_own(message: StoredMessage) -> bool:
    """True when the user wrote it: a message, or a command with `!`."""
    if message.role is not Role.SYSTEM:
        return message.origin is Origin.HUMAN
    return any(isinstance(block, ToolUseBlock) and is_own_call(block.id) for block in message.blocks)


def text_of(message: StoredMessage) -> str:
    """All its words; attachments of a message of the user are left out. Silent messages have none."""
    if message.silent:
        return ""
    if message.origin is Origin.HUMAN:
        return text_in(message.blocks, "\n\n")
    return "\n\n".join(block.text for block in message.blocks if isinstance(block, TextBlock))


def _words(block: Block) -> str:
    """Text of a part of an answer; the call that ends a sub-agent has its result."""
    if isinstance(block, TextBlock):
        return block.text
    return read_submission(block) if isinstance(block, ToolUseBlock) else ""


class TranscriptModel:
    """Content of the view; rebuilt from one `Snapshot` at any time."""

    def __init__(self, clock: Clock = SYSTEM_CLOCK) -> None:
        self.clock = clock
        """Monotonic seconds."""
        self.plain = False
        """True while all is drawn as text alone, since drawing it hung before."""
        self.is_focused = False
        """True in the focus view, where calls share one row and thinking is left out."""
        self.conversation: ConversationRecord | None = None
        self.count = 0
        """Messages there are; slot `seq - 1` shows message `seq`, slot `count` the reply under way."""
        self.messages: OrderedDict[int, StoredMessage] = OrderedDict()
        self.calls = CallBook()
        self.live = LiveReply()
        self.stopped: dict[int, list[LiveReply]] = {}
        """Replies that were stopped and are not stored, by the message that they stand below; they stay until the
        conversation is left. The stored row of a stop stands below its text.
        """
        self.error: states.Errored | None = None
        self.dirty: set[int] = set()
        """Slots that changed since the view last looked; changed calls are in `calls.changed`."""
        self._busy_since: float | None = None
        self._cut_line = False
        """True when the last call was a line of the user whose output ends with a word about its stop."""
        self._ended_processes = 0

    def fold_name(self, view: ToolView) -> str:
        """Name under which a call shares a row with its neighbours; empty where it has a row of its own."""
        if self.is_focused:
            return "tools" if view.folds_in_focus else ""
        return view.name if view.folds_with_others else ""

    def show(self, snapshot: Snapshot) -> None:
        self.conversation = snapshot.conversation
        self.messages.clear()
        self.calls.clear()
        self.dirty.clear()
        self.stopped.clear()
        newest = max((message.seq for message in snapshot.messages), default=0)
        self.count = max(newest, snapshot.conversation.message_count)
        self.add_history(snapshot.messages, snapshot.tool_calls)
        self.live = LiveReply(
            [snapshot.live_text] if snapshot.live_text else [],
            LiveThinking(snapshot.live_thinking),
        )
        self._busy_since = snapshot.run_started or None
        self._ended_processes = 0
        self.change_state(snapshot.state, snapshot.state_since)
        if snapshot.running is not None:
            self.calls.resume(snapshot.running)

    def add_history(self, messages: Iterable[StoredMessage], records: Iterable[ToolCallRecord]) -> None:
        stored = {record.tool_use_id: record for record in records}
        for message in messages:
            if not self.plain and self.calls.grant(message):
                message = replace(message, origin=Origin.TOOL)  # its call shows it
            self.messages[message.seq] = message
            self.messages.move_to_end(message.seq)
            if not self.plain:
                self.calls.add(message, stored)
        while len(self.messages) > KEPT_MESSAGES:
            self.calls.forget(self.messages.popitem(last=False)[1])

    def save(self, message: StoredMessage) -> None:
        if message.role is not Role.SYSTEM:
            self._keep_stopped()
        self.dirty.update((self.count, message.seq - 1))
        if self.live.stopped is not None:
            self.dirty.add(self.count - 1)
        self.count = max(self.count, message.seq)
        if message.role is Role.USER and message.origin is Origin.HUMAN:
            self.live = LiveReply()
        elif message.origin is Origin.LLM:
            self.live = LiveReply(notices=self.live.notices)
            self.dirty.update(seq - 1 for seq in self.stopped)  # /copy copies this one from now on
        self.add_history([message], [])
        self.dirty.add(self.count)

    def add_text(self, text: str) -> None:
        self._restart_after_stop()
        self.live.pieces.append(text)
        self.live.drafting = None
        self.dirty.add(self.count)

    def add_thinking(self, text: str) -> None:
        self._restart_after_stop()
        self.live.thinking.add(text)
        self.dirty.add(self.count)

    def draft_call(self, name: str, characters: int) -> None:
        self.live.drafting = (name, characters)
        self.dirty.add(self.count)

    def drop_live(self, *, cancelled: bool) -> None:
        """The reply ends unsaved; its text stays in sight when the user stopped it."""
        if cancelled:
            self._stop()
        else:
            self.live = LiveReply(notices=self.live.notices)
        self.dirty.add(self.count)

    def start_call(self, call: ToolCall, request: ToolRequest | None) -> None:
        self.calls.start(call, request, self.clock.monotonic())

    def progress(self, call_id: str, progress: Progress) -> None:
        self.calls.progress(call_id, progress)

    def end_call(self, result: ToolResult, duration: float, ended_processes: int) -> None:
        self._ended_processes += ended_processes
        self._cut_line = (
            is_own_call(result.call_id) and result.status is ToolStatus.CANCELLED and result.display_json != ""
        )
        self.calls.end(result, duration, ended_processes)

    def change_state(self, state: states.State, since: float) -> None:
        """The machine moved: the waiting call, the error and the turn's clock follow from it."""
        error = state if isinstance(state, states.Errored) else None
        if error != self.error:
            self.error = error
            self.dirty.add(self.count)
        if states.is_busy(state):
            self._restart_after_stop()
        if isinstance(state, states.AwaitingLlm) and isinstance(state.phase, states.RetryWait):
            self.live.drafting = None
            self.dirty.add(self.count)
        if states.is_busy(state) and self._busy_since is None:
            self._busy_since, self._ended_processes = since, 0
        match state:
            case states.AwaitingApproval(round=tool_round):
                self.calls.mark(tool_round.current.id, ToolStatus.AWAITING_APPROVAL, since)
            case states.ToolExecuting(round=tool_round) | states.AwaitingSubagents(round=tool_round):
                self.calls.mark(tool_round.current.id, ToolStatus.RUNNING, since)
            case _:
                pass

    def end_run(self, status: str) -> None:
        if status == "cancelled" and not self._cut_line:
            self._stop()
        self._cut_line = False
        self._busy_since = None
        self.live.drafting = None
        self.dirty.add(self.count)

    def add_notice(self, text: str) -> None:
        self.live.notices.append(text)
        self.dirty.add(self.count)

    @property
    def long_commands(self) -> Mapping[str, int]:
        """Pids of the commands that run for `LONG` seconds, by their calls."""
        now = self.clock.monotonic()
        views = (view for one in self.calls.running if (view := self.calls.get(one)) is not None)
        return {view.id: view.pid for view in views if view.pid and view.since and now - view.since >= LONG}

    def last_answer(self) -> str:
        """The newest answer as its source, the unsaved one of a stopped turn included."""
        if self.live.pieces:
            return self.live.text
        for seq in sorted(self.messages, reverse=True):
            message = self.messages[seq]
            texts = [text for block in message.blocks if (text := _words(block))]
            if message.role is Role.ASSISTANT and texts and not message.silent:
                return "\n\n".join(texts)
        return ""

    @property
    def stop_notice(self) -> StoredMessage | None:
        """The stored row of a stop that is the newest message, while the stopped text is still visible."""
        newest = self.messages.get(self.count)
        if self.live.stopped is None or newest is None or newest.role is not Role.SYSTEM:
            return None
        return newest if is_stop_notice(text_of(newest)) else None

    def _stop(self) -> None:
        self.dirty.add(self.count - 1)
        if self.live.stopped is not None:
            self.live.stopped = replace(self.live.stopped, processes=self._ended_processes)
            return
        seconds = 0.0 if self._busy_since is None else self.clock.monotonic() - self._busy_since
        self.live.stopped = StopNotice(seconds, self._ended_processes, bool(self.live.pieces))

    def _restart_after_stop(self) -> None:
        if self.live.stopped is not None:
            self._keep_stopped()
            self.live = LiveReply()
            self.dirty.update((self.count - 1, self.count))

    def _keep_stopped(self) -> None:
        """Leave the text of a stopped reply below the newest message: another reply comes into its place."""
        if self.live.stopped is not None and self.live.pieces:
            self.dirty.update(seq - 1 for seq in self.stopped)
            self.stopped.setdefault(self.count, []).append(self.live)
            self.dirty.add(self.count - 1)

    def copies(self, seq: int, stopped: LiveReply) -> bool:
        """True while /copy copies this stopped text below message `seq`: no answer is newer."""
        if stopped is not self.stopped[max(self.stopped)][-1] or self.live.stopped is not None:
            return False
        return not any(one > seq and self.messages[one].origin is Origin.LLM for one in self.messages)


LONGEST: Final = 40
"""Messages looked through in either direction."""


def reads_of(model: TranscriptModel, seq: int) -> list[ToolView]:
    """The calls of a message that holds nothing but calls that share one row; else none."""
    message = model.messages.get(seq)
    if message is None or message.silent or model.plain:
        return []
    views: list[ToolView] = []
    for block in message.blocks:
        if model.is_focused and isinstance(block, ThinkingBlock):
            continue
        if not isinstance(block, ToolUseBlock):
            return []
        view = model.calls.view(block)
        name = model.fold_name(view)
        if not name or (views and name != model.fold_name(views[0])):
            return []
        views.append(view)
    return views


def run_of(model: TranscriptModel, seq: int) -> list[int]:
    """The messages that share one row with message `seq`, oldest first; itself alone when it shares none."""
    reads = reads_of(model, seq)
    if not reads:
        return [seq]
    name = model.fold_name(reads[0])
    before = _neighbours(model, range(seq - 1, seq - LONGEST, -1), name)
    return [*reversed(before), seq, *_neighbours(model, range(seq + 1, seq + LONGEST), name)]


def _neighbours(model: TranscriptModel, seqs: range, name: str) -> list[int]:
    found: list[int] = []
    for seq in seqs:
        message = model.messages.get(seq)
        if message is not None and message.origin is Origin.TOOL:
            continue
        reads = reads_of(model, seq)
        if not reads or model.fold_name(reads[0]) != name:
            break
        found.append(seq)
    return found


def find_opened_runs(model: TranscriptModel, seq: int, opened: Collection[str]) -> Iterator[str]:
    """The keys of opened rows of reads that message `seq` has a part in."""
    slots = {other - 1 for other in run_of(model, seq)}
    for key in opened:
        kind, _, call_id = key.partition(":")
        if kind == "reads" and model.calls.slot(call_id) in slots:
            yield key
