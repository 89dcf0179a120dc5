"""Containment of faults of Phoenix: what one ends, widgets that are being removed, and messages without end.

Textual takes the next message without a pause while there is one, so a handler that calls itself endlessly would keep
the loop from reading keys, signals and answers: it is slowed, the keys never are.
"""

from __future__ import annotations

import asyncio
import logging
import time
import traceback
from collections.abc import Awaitable, Callable, Sequence
from functools import partial, wraps
from pathlib import Path
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast
from weakref import WeakKeyDictionary, WeakSet

from textual import await_remove
from textual._callback import invoke
from textual._context import active_message_pump
from textual.app import App
from textual.css.query import NoMatches
from textual.dom import DOMNode, NoScreen
from textual.events import InputEvent, Mount, Resize
from textual.message import Message
from textual.message_pump import MessagePump
from textual.messages import Layout, Update, UpdateScroll
from textual.screen import ModalScreen, Screen
from textual.timer import Timer
from textual.widget import Widget
from textual.worker import (
    WorkerFailed,
    active_worker,
)

from phoenix_tui.lifecycle.crash import CrashReports
from phoenix_tui.text.labels import short_path
from tools.clock import SYSTEM_CLOCK, Clock

if TYPE_CHECKING:
    from textual._types import CallbackType


log = logging.getLogger(__name__)

MOST: Final = 5
"""Faults within `WINDOW` that Phoenix outlives, where it cannot tell what to leave out."""
WINDOW: Final = 60.0
AGAIN: Final = 1.0
"""Seconds for which a fault that repeats counts once, as while a key is held or the mouse moves."""
TICKS: Final = 3
"""Ticks of one timer that may fail within `WINDOW`: with the last of them it is stopped."""
PAINTERS: Final = ("_refresh_layout", "_compositor_refresh", "_arrange_root", "_display")
"""Methods of Textual's screens, compositor and app that all frames and places of widgets pass."""
TICKING: Final = Timer._tick.__code__
COMPOSING: Final = Widget._compose.__code__
FRAME_TIMER: Final = "screen_update"
"""Textual's name of the timer without which a screen draws nothing more."""
SENTENCE: Final = "Something went wrong here and was stopped; nothing was lost (report: {report})."
FAILING_KEYS: Final = 3
"""Keys in a row behind which something fails, after which the next may lead out of Phoenix."""
WAY_OUT: Final = "Keys fail here again and again: Ctrl+Q, or Ctrl+C twice, quits now, and stops what runs."
StackPlace: TypeAlias = tuple[tuple[CodeType, int], ...]
"""Code and line of each frame of a stack."""


class WayOut:
    """Ends Phoenix at Ctrl+Q, or Ctrl+C twice, where keys fail one after the other, past every handler of a screen."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self._failed = 0
        """Keys in a row behind each of which something failed."""
        self._has_failed = False
        """True where something failed since the last key."""
        self._last = ""

    def note_fault(self) -> None:
        """Count the last key among those that failed, once."""
        if not self._has_failed:
            self._has_failed = True
            self._failed += 1
            if self._failed == FAILING_KEYS:
                self._tell(WAY_OUT)

    def leads_out(self, key: str) -> bool:
        """True for a key that ends Phoenix; notes every other one."""
        if not self._has_failed:
            self._failed = 0
        self._has_failed = False
        before, self._last = self._last, key
        return self._failed >= FAILING_KEYS and (key == "ctrl+q" or key == before == "ctrl+c")


class Containment:
    """Leaves out what failed, says so, and lets Phoenix go on."""

    def __init__(
        self, app: App[Any], tell: Callable[[str], None], reports: CrashReports | None, clock: Clock = SYSTEM_CLOCK
    ) -> None:
        self.way_out = WayOut(tell)
        self._app = app
        self._tell = tell
        self._reports = reports
        self._clock = clock
        self._counted: list[float] = []
        """Times of the faults of the last minute that count."""
        self._seen: dict[StackPlace, float] = {}
        """Time at which each place failed and was counted or told last."""
        self._failures: WeakKeyDictionary[Timer | Widget, list[float]] = WeakKeyDictionary()
        """Times at which each of them failed within the last minute."""
        self._plain: WeakSet[Widget] = WeakSet()
        """Widgets that are shown as text."""

    def contain(self, error: Exception, *, is_left_out: bool = False, is_open: bool = True) -> bool:
        """Go on without what failed, unless it `is_left_out` already; False where Phoenix ends.

        Until everything `is_open`, no handler and no worker can be done without.
        """
        fault = cause_of(error)
        steps = list(traceback.walk_tb(fault.__traceback__))
        frames = [frame for frame, _ in steps]
        place = tuple((frame.f_code, line) for frame, line in steps)
        since = self._clock.monotonic() - self._seen.get(place, float("-inf"))
        try:
            owner = None if is_left_out else self._leave_out_part(frames)
            if not (is_left_out or owner is not None or (is_open and self._leave_handler(frames))):
                if not is_open:
                    return False
                is_frame = any(frame.f_code.co_name in PAINTERS for frame in frames)
                if (is_frame or since >= AGAIN) and not self._count(place):
                    return False
            if since >= WINDOW:
                self._seen[place] = self._clock.monotonic()
                if owner is None or len(self._failures.get(owner, ())) < 2:
                    self._report(fault)
            self.way_out.note_fault()
        except Exception:
            log.exception("a fault could not be contained")
            return False
        return True

    def _count(self, place: StackPlace) -> bool:
        now = self._clock.monotonic()
        self._counted = [at for at in self._counted if now - at < WINDOW]
        if len(self._counted) >= MOST:
            return False
        self._counted.append(now)
        self._seen[place] = now
        return True

    def _report(self, fault: BaseException) -> None:
        log.error("a fault was contained", exc_info=fault)
        report = self._reports.write(fault) if self._reports is not None else "none was asked for"
        self._tell(SENTENCE.format(report=short_path(Path(report)) if report.startswith("/") else report))

    def _leave_out_part(self, frames: Sequence[FrameType]) -> Timer | Widget | None:
        """Leave out the widget or timer that failed; None where it was none, or nothing can be drawn without it."""
        if any(frame.f_code.co_name in PAINTERS for frame in frames):
            return self._leave_out_of_frames(frames)
        owners = {frame.f_code: frame.f_locals.get("self") for frame in frames}
        if isinstance(timer := owners.get(TICKING), Timer) and timer.name != FRAME_TIMER:
            if self._has_failed(timer, TICKS):
                timer.stop()
                timer.pause()  # a next tick that is due at once would come before it is cancelled
            return timer
        if isinstance(widget := owners.get(COMPOSING), Widget) and not isinstance(widget, Screen):
            self._draw_plainly(widget)
            return widget
        return next(filter(None, map(_beginner, frames)), None)

    def _leave_handler(self, frames: Sequence[FrameType]) -> bool:
        """Close the sheet whose handler or worker failed; False where no part of a screen is known to have one."""
        codes = {frame.f_code for frame in frames}
        if TICKING in codes or any(code.co_name in PAINTERS for code in codes):
            return False
        worker = cast("Any", active_worker.get(None))
        of_frames: list[object] = [frame.f_locals.get("self") for frame in frames]
        nodes = [active_message_pump.get(None), getattr(worker, "node", None), *of_frames]
        sheet = next((found for node in reversed(nodes) if (found := self._sheet_of(node)) is not None), None)
        if sheet is not None:
            sheet.dismiss()
        return any(isinstance(node, DOMNode) and not isinstance(node, App) for node in nodes)

    def _leave_out_of_frames(self, frames: Sequence[FrameType]) -> Widget | None:
        """Draw again without the widget that cannot be drawn: with its second fault it becomes text."""
        self._app.screen.refresh(layout=True)
        nodes = [node for frame in frames if isinstance(node := frame.f_locals.get("self"), DOMNode)]
        failed: object = nodes[-1] if nodes else None  # one screen paints those behind it
        if not isinstance(failed, Widget) or isinstance(failed, Screen):
            sheet = self._sheet_of(failed)
            if sheet is not None:
                sheet.dismiss()
            return sheet
        if failed in self._plain:
            return None
        if self._has_failed(failed, 2):
            self._draw_plainly(failed)
        return failed

    def _draw_plainly(self, widget: Widget) -> None:
        from phoenix_tui.lifecycle.plain_widget import draw_plainly  # noqa: PLC0415 - seldom needed, and not before then

        self._plain.add(widget)
        draw_plainly(widget)

    def _has_failed(self, owner: Timer | Widget, times: int) -> bool:
        """Note a failure; True with the last of so many within a minute."""
        now = self._clock.monotonic()
        recent = [at for at in self._failures.get(owner, ()) if now - at < WINDOW]
        self._failures[owner] = [*recent, now]
        return len(recent) + 1 >= times

    def _sheet_of(self, node: object) -> ModalScreen[Any] | None:
        """The open sheet that a part is in."""
        for above in node.ancestors_with_self if isinstance(node, DOMNode) else ():
            if isinstance(above, ModalScreen) and above in self._app.screen_stack:
                return above
        return None


def _beginner(frame: FrameType) -> Widget | None:
    """Widget of a screen that stays, which hears that it was mounted: it is drawn as far as it came."""
    widget, message = frame.f_locals.get("self"), frame.f_locals.get("message")
    return (
        widget if isinstance(message, Mount) and isinstance(widget, Widget) and not isinstance(widget, Screen) else None
    )


def cause_of(error: BaseException) -> BaseException:
    """The fault itself, where Textual reports that of a worker in one without a traceback."""
    return error.error if isinstance(error, WorkerFailed) else error


def goes_on_after(pump: Any, error: Exception, *, is_left_out: bool = False) -> bool:
    """True where the app outlives this fault, and all that waits in this pump shall be done.

    A fault whose owner `is_left_out` by the caller cannot come again, and is only told.
    """
    contain: Callable[..., bool] | None = getattr(pump.app, "goes_on_after", None)
    return contain is not None and contain(error, is_left_out=is_left_out)


def contain_faults() -> None:
    """Have every pump of Textual, its own widgets too, ask the app before it ends for a fault of a handler."""
    # A pump that lets a fault out takes no further message; Textual offers no place before that.
    dispatch: Callable[..., Awaitable[None]] = MessagePump._dispatch_message
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
    setattr(await_remove, "gather", _gather_shielded)  # noqa: B010 - as above


def _gather_shielded(*pumps: asyncio.Task[None]) -> Awaitable[list[None]]:
    """Wait for the pumps of removed widgets; to cancel who waits, as the end does to a command, cancels none."""
    return asyncio.gather(*map(asyncio.shield, pumps))


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


MISSED: Final = NoMatches, NoScreen
"""Exceptions of Textual for a removed widget."""


def is_being_removed(node: object) -> bool:
    """True while a widget or screen is being removed or has been: its children go before it does."""
    # Textual offers no other sign before the node is detached, which is after its children.
    return isinstance(node, DOMNode) and (node._pruning or not node.is_attached)


def is_fault_of_removal(error: BaseException) -> bool:
    """True when the widget whose handler or worker failed is being removed, and missed one that went before it.

    The same fault of a widget that stays is real: its messages end with it, and it would ignore all keys.
    """
    if isinstance(error, WorkerFailed):
        node: Any = active_worker.get().node
        return isinstance(error.error, MISSED) and is_being_removed(node)
    return isinstance(error, MISSED) and is_being_removed(active_message_pump.get(None))


def unless_removed(callback: CallbackType, goes_on_after: Callable[[Exception], bool]) -> CallbackType:
    """The callback without its widget's faults of removal, and those that are contained: the screen that runs it for
    the widget stays, and runs those behind it.
    """
    called: Any = callback
    owner = getattr(getattr(called, "func", called), "__self__", None)  # a partial of it, or the method itself

    async def run() -> None:
        try:
            await invoke(called)
        except Exception as error:
            is_removal = isinstance(error, MISSED) and is_being_removed(owner)
            if not is_removal and not goes_on_after(error):
                raise

    return run


WINDOW_MESSAGES: Final = 256
"""Messages of one kind between two looks at the clock."""
WINDOWS: Final = 8
"""Busy ones in a row, without a key in between, after which a kind is slowed: 40 ms of a handler that does nothing."""
FAST: Final = 400.0
"""Messages of one kind a second that no part of Phoenix handles for long; a frame comes 30 times a second."""
STEADY: Final = 100.0
ALL_OF_IT: Final = 0.95
"""Share of a core, with the rate above, that shows a loop with no other work."""
HOLD: Final = 0.05
"""Seconds that each one is then held back; a key behind it waits as long."""
CALM: Final = 1.0
"""Seconds without one after which it is over."""
MOST_WAITING: Final = 40
"""Messages that may wait behind one that is held; more are left out, since each may bring two."""
PAINTS: Final = (Layout, Update, UpdateScroll, Resize)
"""Never left out: Textual asks for each once until it was done, so nothing would be painted any more."""
TALLIES: Final = "_phoenix_tallies"
ENDLESS_SENTENCE: Final = (
    "A part of Phoenix calls itself without end and was slowed down. Keys still work; the log names it."
)
Take: TypeAlias = Callable[[Any], Awaitable[Message]]


class MessageTally:
    """Number of messages of one kind to one pump."""

    __slots__ = ("busy", "count", "inputs", "is_input", "last", "since", "slowed", "windows")

    def __init__(self, kind: type[Message]) -> None:
        self.is_input = issubclass(kind, InputEvent)
        self.count = self.windows = self.inputs = 0
        self.since = self.busy = self.last = 0.0
        self.slowed = False


class LoopClock:
    """Time, and the part of it that this thread has worked."""

    def monotonic(self) -> float:
        """Seconds that never go back."""
        return time.monotonic()

    def busy(self) -> float:
        """Seconds of processor time of this thread."""
        return time.thread_time()


class MessageBound:
    """Counts messages by pump and kind, and says how long the next is held back."""

    def __init__(self, clock: LoopClock | None = None) -> None:
        self._clock = clock or LoopClock()
        self._inputs = 0

    def hold(self, pump: Any, message: Message) -> float:
        """Seconds that this message is held back: 0 for all but those that come without end."""
        kind = type(message)
        try:
            tally: MessageTally = pump.__dict__[TALLIES][kind]
        except KeyError:
            tally = MessageTally(kind)
            pump.__dict__.setdefault(TALLIES, {})[kind] = tally
        if tally.is_input:
            self._inputs += 1
            return 0.0
        tally.count += 1
        if tally.slowed:
            now = self._clock.monotonic()
            if now - tally.last > CALM:
                tally.slowed, tally.windows, tally.count = False, 0, 0
                return 0.0
            tally.last = now + HOLD
            return HOLD
        if not tally.count % WINDOW_MESSAGES:
            self._look(pump, message, tally)
        return 0.0

    def _look(self, pump: Any, message: Message, tally: MessageTally) -> None:
        now, busy = self._clock.monotonic(), self._clock.busy()
        passed = max(now - tally.since, 1e-9)
        rate, share = WINDOW_MESSAGES / passed, (busy - tally.busy) / passed
        fast = rate > FAST or (rate > STEADY and share > ALL_OF_IT)
        tally.windows = tally.windows + 1 if fast and tally.inputs == self._inputs else 0
        tally.since, tally.busy, tally.inputs = now, busy, self._inputs
        if tally.windows >= WINDOWS:
            tally.slowed, tally.last = True, now
            _report(pump, message, tally.count)


def limit_messages(bound: MessageBound) -> None:
    """Have every pump of Textual, its own widgets too, ask this bound before it handles a message."""
    # All messages of all pumps pass here; Textual offers no place that can wait.
    take: Take = MessagePump._get_message
    original: Take = getattr(take, "__wrapped__", take)

    @wraps(original)
    async def get_limited(pump: Any) -> Message:
        message = await original(pump)
        seconds = bound.hold(pump, message)
        while seconds and not isinstance(message, PAINTS) and pump._message_queue.qsize() > MOST_WAITING:
            pump._message_queue.task_done()
            message = await original(pump)
            seconds = bound.hold(pump, message)
        if seconds and not pump._closing:
            await asyncio.sleep(seconds)
        return message

    setattr(MessagePump, "_get_message", get_limited)  # noqa: B010 - private, as above


def _report(pump: Any, message: Message, count: int) -> None:
    if logging.getLogger().handlers:  # without any it would go to the terminal
        call: Any = getattr(message, "callback", None)
        while isinstance(call, partial):
            call = call.func
        log.error(
            "%s got %d of %s (%s) without a pause: from now on %d a second",
            type(pump).__name__, count, type(message).__name__, getattr(call, "__qualname__", "no callback"), 1 / HOLD,
        )  # fmt: skip
    tell: Callable[[str], None] | None = getattr(pump.app, "warn", None)
    if tell is not None:
        tell(ENDLESS_SENTENCE)
