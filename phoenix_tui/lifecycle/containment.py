"""Faults of Phoenix's own code on an open screen: each ends the handler, worker or sheet that it is in, nothing else.

Textual ends the app for any of them, and with it the command that runs.
"""

from __future__ import annotations

import logging
import traceback
from collections.abc import Awaitable, Callable, Sequence
from functools import wraps
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Final, TypeAlias

from textual._callback import invoke
from textual._context import active_message_pump
from textual.app import App
from textual.dom import DOMNode
from textual.message_pump import MessagePump
from textual.screen import ModalScreen
from textual.timer import Timer
from textual.worker import (
    WorkerFailed,
    active_worker,  # pyright: ignore[reportUnknownVariableType] - Textual leaves a worker's result open
)

from phoenix_tui.lifecycle.crash import CrashReports
from phoenix_tui.text.shown_paths import short_path
from tools.clock import SYSTEM_CLOCK, Clock

log = logging.getLogger(__name__)

MOST: Final = 5
"""Faults within `WINDOW` that Phoenix outlives."""
WINDOW: Final = 60.0
AGAIN: Final = 1.0
"""Seconds for which a fault that repeats counts once, as while a key is held or the mouse moves."""
PAINTERS: Final = ("_refresh_layout", "_compositor_refresh", "_display")
"""Methods of Textual's screens and app that all frames pass."""
TICKING: Final = Timer._tick.__code__  # pyright: ignore[reportPrivateUsage] - calls what was set to repeat
SENTENCE: Final = "Something went wrong here and was stopped; nothing was lost (report: {report})."
Place: TypeAlias = tuple[tuple[CodeType, int], ...]
"""Code and line of each frame of a stack."""


class Containment:
    """Closes the sheet that a fault is in, says so, and lets Phoenix go on; a few times a minute."""

    def __init__(
        self, app: App[Any], tell: Callable[[str], None], reports: CrashReports | None, clock: Clock = SYSTEM_CLOCK
    ) -> None:
        self._app = app
        self._tell = tell
        self._reports = reports
        self._clock = clock
        self._counted: list[float] = []
        """Times of the faults of the last minute that count."""
        self._seen: dict[Place, float] = {}
        """Time at which each place failed and was counted last."""

    def contain(self, error: Exception) -> bool:
        """Go on without what failed; False where that has been done too often, and Phoenix ends."""
        fault = cause_of(error)
        steps = list(traceback.walk_tb(fault.__traceback__))
        frames = [frame for frame, _ in steps]
        place = tuple((frame.f_code, line) for frame, line in steps)
        is_painting = any(frame.f_code.co_name in PAINTERS for frame in frames)
        since = self._clock.monotonic() - self._seen.get(place, float("-inf"))
        repeats = any(frame.f_code is TICKING for frame in frames)
        if (is_painting or since >= (WINDOW if repeats else AGAIN)) and not self._count(place):
            return False
        try:
            self._leave_out(fault, frames, is_painting=is_painting, is_new=since >= WINDOW)
        except Exception:
            log.exception("a fault could not be contained")
            return False
        return True

    def _count(self, place: Place) -> bool:
        now = self._clock.monotonic()
        self._counted = [at for at in self._counted if now - at < WINDOW]
        if len(self._counted) >= MOST:
            return False
        self._counted.append(now)
        self._seen[place] = now
        return True

    def _leave_out(self, fault: BaseException, frames: Sequence[FrameType], *, is_painting: bool, is_new: bool) -> None:
        sheet = self._sheet_of(frames, is_painting=is_painting)
        if sheet is not None:
            sheet.dismiss()
        if is_painting:
            self._app.screen.refresh(layout=True)
        if is_new:
            log.error("a fault was contained", exc_info=fault)
            report = self._reports.write(fault) if self._reports is not None else "none was asked for"
            self._tell(SENTENCE.format(report=short_path(Path(report)) if report.startswith("/") else report))

    def _sheet_of(self, frames: Sequence[FrameType], *, is_painting: bool) -> ModalScreen[Any] | None:
        """The open sheet whose part failed, or whose handler or worker called what did."""
        nodes: list[object] = [node for frame in frames if isinstance(node := frame.f_locals.get("self"), DOMNode)]
        if is_painting:  # one screen paints those behind it
            nodes = nodes[-1:]
        else:
            worker = active_worker.get(None)  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType] - as above
            nodes[:0] = [active_message_pump.get(None), worker and worker.node]
        for node in reversed(nodes):
            for above in node.ancestors_with_self if isinstance(node, DOMNode) else ():
                if isinstance(above, ModalScreen) and above in self._app.screen_stack:
                    return above  # pyright: ignore[reportUnknownVariableType] - any result
        return None


def cause_of(error: BaseException) -> BaseException:
    """The fault itself, where Textual reports that of a worker in one without a traceback."""
    return error.error if isinstance(error, WorkerFailed) else error


def goes_on_after(pump: Any, error: Exception) -> bool:
    """True where the app outlives this fault, and all that waits in this pump shall be done."""
    contain: Callable[[Exception], bool] | None = getattr(pump.app, "goes_on_after", None)
    return contain is not None and contain(error)


def contain_faults() -> None:
    """Have every pump of Textual, its own widgets too, ask the app before it ends for a fault of a handler."""
    # A pump that lets a fault out takes no further message; Textual offers no place before that.
    dispatch: Callable[..., Awaitable[None]] = MessagePump._dispatch_message  # pyright: ignore[reportPrivateUsage] - as said
    original = getattr(dispatch, "__wrapped__", dispatch)

    @wraps(original)
    async def dispatch_contained(pump: Any, message: Any) -> None:
        try:
            await original(pump, message)
        except Exception as error:
            if not goes_on_after(pump, error):
                raise

    setattr(MessagePump, "_dispatch_message", dispatch_contained)  # noqa: B010 - private, as above
    setattr(MessagePump, "_flush_next_callbacks", _flush_contained)  # noqa: B010 - as above


async def _flush_contained(pump: Any) -> None:
    """Call what waits, as Textual does; a fault of one does not drop those behind it."""
    callbacks = pump._next_callbacks.copy()
    pump._next_callbacks.clear()
    for callback in callbacks:
        try:
            with pump.prevent(*callback._prevent):
                await invoke(callback.callback)
        except Exception as error:  # noqa: BLE001 - the app decides
            if not goes_on_after(pump, error):
                pump.app._handle_exception(error)
                break
