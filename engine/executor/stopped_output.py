"""Output of a command that the user stopped: for the screen, and of the user's own line for the model as well."""

from __future__ import annotations

from msgspec.structs import replace

from engine.codec import encode_display
from engine.executor.guarding import inspected_result
from engine.executor.session import Session
from engine.machine import texts
from engine.machine.events import StoppedOutput
from engine.machine.messages import ToolCall, ToolResult, ToolStatus
from engine.machine.states import Cancelling, ToolOrigin
from engine.ports import Write
from tools.contract import OutputSoFar, TerminalDisplay
from tools.shell_output import all_lines, readable, shown_runs


def stopped_output(
    session: Session, so_far: OutputSoFar | None, elapsed: float, ended: int = 0, survivors: tuple[int, ...] = ()
) -> tuple[StoppedOutput | None, tuple[Write, ...]]:
    """The output for the event that ends a stopped call, and the writes for its move; `elapsed` is in seconds.

    None where no command had begun, or the call has ended already.
    """
    state = session.state
    if so_far is None or not isinstance(state, Cancelling):
        return None, ()
    line = texts.stopped_command(int(elapsed), state.by, ended, survivors)
    captured = so_far.captured
    output = readable(captured)
    body = output.rstrip()
    runs = shown_runs(captured, output)
    shown = f"{body}\n{line}" if body else line
    display = TerminalDisplay(shown, None, lines=all_lines(captured), runs=runs, folder=so_far.folder)
    text = "\n".join([body or "[no output]", *_place(so_far), line])
    stopped = StoppedOutput(text, encode_display(display), truncated=captured.dropped > 0)
    if state.round.origin is not ToolOrigin.USER:
        return stopped, ()
    return _inspected(session, state.round.current, stopped)


def _place(so_far: OutputSoFar) -> list[str]:
    return [f"[in {so_far.folder}]"] if so_far.folder else []


def _inspected(session: Session, call: ToolCall, stopped: StoppedOutput) -> tuple[StoppedOutput, tuple[Write, ...]]:
    """The same as the guard lets a model read it."""
    result = ToolResult(call.id, stopped.text, ToolStatus.CANCELLED, display_json=stopped.display_json)
    result, note, writes = inspected_result(session, call, result)
    return replace(stopped, text=result.text, note=note), writes
