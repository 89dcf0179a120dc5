"""The tool calls of the messages in memory, and their places."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from msgspec.structs import replace

from engine.machine.messages import ImageBlock, ToolCall, ToolResult, ToolResultBlock, ToolStatus, ToolUseBlock
from engine.records import StoredMessage, ToolCallRecord
from engine.updates import RunningCall
from phoenix_tui.widgets.blocks.tool_view import ToolView, display_of, queued_call, stored_call, summary_of, with_output
from tools.call_titles import SERVER_TOOL
from tools.clean import clean
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

_UNSETTLED: Final = frozenset({ToolStatus.QUEUED, ToolStatus.AWAITING_APPROVAL, ToolStatus.RUNNING})


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
        """View of a block's call."""
        return self._views.get(block.id) or queued_call(ToolCall(block.id, block.name, block.input_json))

    def get(self, call_id: str) -> ToolView | None:
        """A call by its id, None when its message is not in memory."""
        return self._views.get(call_id)

    def images(self, call_id: str) -> tuple[ImageBlock, ...]:
        """The images a call gave the model."""
        return self._images.get(call_id, ())

    def slot(self, call_id: str) -> int | None:
        """The slot of the message that made it."""
        return self._slots.get(call_id)

    @property
    def running(self) -> Iterable[str]:
        """The ids of calls that run."""
        return tuple(self._running)

    def add(self, message: StoredMessage, stored: Mapping[str, ToolCallRecord]) -> None:
        """Add the calls of a message, of which `stored` has some; known calls stay."""
        for block in message.blocks:
            if isinstance(block, ToolResultBlock):
                self._add_images(block)
            if isinstance(block, ToolUseBlock):
                self._slots[block.id] = message.seq - 1
                if block.id not in self._views:
                    record = stored.get(block.id)
                    self._put(self.view(block) if record is None else stored_call(record))

    def _add_images(self, result: ToolResultBlock) -> None:
        images = tuple(block for block in result.content if isinstance(block, ImageBlock))
        if images and result.tool_use_id not in self._images:
            self._images[result.tool_use_id] = images
            self.grown.add(result.tool_use_id)

    def forget(self, message: StoredMessage) -> None:
        """Drop the calls of a message that leaves memory."""
        for block in message.blocks:
            if isinstance(block, ToolUseBlock):
                self._views.pop(block.id, None)
                self._slots.pop(block.id, None)
                self._running.pop(block.id, None)
                self._images.pop(block.id, None)

    def clear(self) -> None:
        """Drop all of them."""
        self._views.clear()
        self._slots.clear()
        self._running.clear()
        self._images.clear()
        self.changed.clear()
        self.grown.clear()

    def start(self, call: ToolCall, request: ToolRequest | None, now: float) -> None:
        """A call is about to run."""
        view = self._views.get(call.id) or queued_call(call)
        told = "" if request is None or call.name.startswith(SERVER_TOOL) else request.summary
        summary = told or summary_of(call.input_json, call.name)
        self._put(replace(view, summary=summary, status=ToolStatus.RUNNING, since=now, tail=""))

    def mark(self, call_id: str, status: ToolStatus, since: float) -> None:
        """Mark an unsettled call as running or waiting; its clock restarts."""
        view = self._views.get(call_id)
        if view is not None and view.status is not status and view.status in _UNSETTLED:
            self._put(replace(view, status=status, since=since))

    def resume(self, running: RunningCall) -> None:
        """A call that ran before anyone looked: its clock and its newest output."""
        view = self._views.get(running.call_id)
        if view is not None:
            view = replace(view, status=ToolStatus.RUNNING, since=running.started, tail=clean(running.tail))
            self._put(replace(view, wants_screen=running.wants_screen))

    def progress(self, call_id: str, progress: Progress) -> None:
        """Add output of a running call."""
        view = self._views.get(call_id)
        if view is None:
            return
        match progress:
            case OutputChunk(text=text):
                self._put(replace(view, tail=with_output(view, text)))
            case TerminalRows(text=text, runs=runs, folder=folder, cursor=cursor):
                view = replace(view, tail=text, runs=runs, folder=folder, cursor=cursor)
                self._put(replace(view, wants_screen=progress.wants_screen, reads_keys=progress.reads_keys))
            case ProcessesEnded(count=count):
                self._put(replace(view, ended_processes=count))
            case ProgramEnded(captured=captured, exit_code=code, seconds=seconds):
                status = ToolStatus.ERROR if code else ToolStatus.SUCCESS
                display = TerminalDisplay(readable(captured), code, lines=all_lines(captured))
                self._put(replace(view, status=status, display=display, duration=seconds))
            case ProcessStarted() | OutputSoFar():
                pass

    def end(self, result: ToolResult, duration: float, ended_processes: int) -> None:
        """A call is settled."""
        view = self._views.get(result.call_id)
        if view is None:
            return
        ended = replace(view, status=result.status, text=clean(result.text), display=display_of(result))
        processes = ended_processes or view.ended_processes
        self._put(replace(ended, duration=duration, ended_processes=processes))

    def touch_running(self) -> None:
        """Time passed: running calls look different."""
        self.changed.update(self._running)

    def _put(self, view: ToolView) -> None:
        self._views[view.id] = view
        self.changed.add(view.id)
        if view.status is ToolStatus.RUNNING:
            self._running[view.id] = None
        else:
            self._running.pop(view.id, None)
