"""Signals that end Phoenix, and Ctrl+C pressed again and again without an answer."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from functools import partial
from typing import TYPE_CHECKING, Final

from phoenix_tui.terminal.state import restore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import FrameType


END_SIGNALS: Final = (signal.SIGTERM, signal.SIGHUP)
IN_A_TAB: Final = (*END_SIGNALS, signal.SIGINT)
"""Ctrl+C in the terminal of `phoenix serve` comes to its tabs as well."""
BY_USER: Final = "prompt_input_exit"
"""Reason that hooks hear of where the user leaves, and no signal ends Phoenix."""
SIGNAL_EXIT: Final = 128
"""Number that a shell adds to a signal for its exit code."""


def find_heeded(numbers: Iterable[signal.Signals] = END_SIGNALS) -> list[signal.Signals]:
    """Signals that Phoenix does not ignore by inheritance: `nohup`, or a shell without job control."""
    return [number for number in numbers if signal.getsignal(number) is not signal.SIG_IGN]


def end_early() -> None:
    """Let the signals give the terminal back and end, until the event loop handles them; nothing has been begun."""
    for number in find_heeded():
        signal.signal(number, _end)


def listen(
    loop: asyncio.AbstractEventLoop, numbers: Iterable[signal.Signals], told: Callable[[signal.Signals], None]
) -> None:
    """Call `told` in the loop for those signals that are not ignored."""
    for number in find_heeded(numbers):
        handle(loop, number, partial(told, number))


def handle(loop: asyncio.AbstractEventLoop, number: signal.Signals, call: Callable[[], None]) -> None:
    """Call `call` in the loop for this signal, once for all that come before it does.

    The loop's own handlers pass each signal through a socket that a few hundred fill. A later SIGTERM is then lost, and
    Python notes a warning for which it takes a lock that the interrupted code may hold: all threads would stand still.
    So the socket only wakes the loop, without the warning, and the handler of Python's own does the rest.
    """
    waits = False

    def now() -> None:
        nonlocal waits
        waits = False
        call()

    def came(_number: int, _frame: FrameType | None) -> None:
        nonlocal waits
        if waits:
            return
        waits = True
        try:
            loop.call_soon_threadsafe(now)
        except RuntimeError:  # the loop is closed
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)

    loop.add_signal_handler(number, lambda: None)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        signal.set_wakeup_fd(signal.set_wakeup_fd(-1), warn_on_full_buffer=False)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    signal.signal(number, came)
    signal.siginterrupt(number, False)


def hang_up() -> None:
    """End as after a hang-up: the terminal is gone, also where the signal itself is ignored."""
    ignored = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    os.kill(os.getpid(), signal.SIGTERM if ignored else signal.SIGHUP)


def _end(number: int, _frame: FrameType | None) -> None:
    restore()
    os._exit(SIGNAL_EXIT + number)


PRESSES: Final = 3
UNHEARD_SECONDS: Final = 2.0
"""Seconds that the first of them has waited by then."""
CTRL_C: Final = (b"\x03", b"\x1b[99;5u")
"""Ctrl+C as a terminal sends it, without and with kitty's keys."""


class Impatience:
    """Ends Phoenix by SIGTERM when the loop takes none of three presses; lives on the thread that reads the keys."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._unheard = 0
        self._since = 0.0

    def note(self, received: bytes) -> None:
        presses = sum(received.count(key) for key in CTRL_C)
        if not presses:
            return
        if not self._unheard:
            self._since = time.monotonic()
        self._unheard += presses
        self._loop.call_soon_threadsafe(self._reset_unheard)
        if self._unheard >= PRESSES and time.monotonic() - self._since >= UNHEARD_SECONDS:
            os.kill(os.getpid(), signal.SIGTERM)

    def _reset_unheard(self) -> None:
        self._unheard = 0
