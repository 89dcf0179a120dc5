"""Progress of a pilot: it waits until its app's loop has nothing left to do. Textual estimates that from idle
milliseconds.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import textual.app
import textual.pilot
from textual._context import active_app
from textual.screen import Screen

from phoenix_tui.widgets.transcript.view import Frames
from tests.support.waiting import pause_between_looks

SOON: Final = 0.02
"""Seconds: a timer that is due within them is waited for."""
LOOKS: Final = 40
"""At a thread that works: a slow machine may keep it waiting for long, one that hangs is not waited for."""
QUIET: Final = 3
"""Turns of the loop without work that make it settled: one of them has asked the system for input."""
MOST: Final = 50
"""Paints and waits for timers: what goes on for longer has to be waited for by name."""


async def settled(min_sleep: float = 0.0, max_sleep: float = 1.0) -> None:
    """Wait until nothing is ready, due soon or to be painted, and no thread works; for `wait_for_idle`."""
    loop: Any = asyncio.get_running_loop()
    waits = looks = quiet = 0
    while quiet < QUIET and waits < MOST:
        await asyncio.sleep(0)
        screen, wait = unpainted(), next_due(loop)
        if loop._ready:
            quiet = 0
        elif screen is not None:
            waits, quiet = waits + 1, 0
            screen._on_timer_update()  # as its timer would up to 30 ms later
        elif wait is not None:
            waits, quiet = waits + 1, 0
            await asyncio.sleep(wait)
        elif looks < LOOKS and threads_work(loop._default_executor):
            looks, quiet = looks + 1, 0
            await pause_between_looks()
        elif quiet == QUIET - 1 and await letter_settled():
            quiet = 0
        else:
            quiet += 1


async def letter_settled() -> bool:
    """Let a letter that waits for what follows act: between two keys of a pilot a long time passes."""
    try:
        app: Any = active_app.get()
    except LookupError:
        return False
    order = getattr(app, "key_order", None)
    if order is None:
        return False
    order.rest()
    return bool(await order.settle())


def unpainted() -> Screen[Any] | None:
    """The screen in front, if it has something to lay out or to paint."""
    try:
        stack: list[Any] = active_app.get()._screen_stack
    except (LookupError, KeyError):  # no app, or none that has begun
        return None
    return next((screen for screen in stack[-1:] if screen.is_running and screen._update_timer._active.is_set()), None)


def next_due(loop: Any) -> float | None:
    """Seconds until the next timer if that is soon, or is the next frame of a transcript: those keep their own pace."""
    timers = [timer for timer in loop._scheduled if not timer.cancelled()]
    frames = [timer.when() for timer in timers if isinstance(getattr(timer._callback, "__self__", None), Frames)]
    wait = min(frames or [timer.when() for timer in timers], default=float("inf")) - loop.time()
    return max(wait, 0.0) if frames or wait <= SOON else None


def threads_work(executor: ThreadPoolExecutor | None) -> bool:
    """True while a thread of the loop's own has work."""
    if executor is None:
        return False
    inside: Any = executor
    return bool(inside._work_queue.qsize() > 0 or inside._idle_semaphore._value < len(inside._threads))


def settle_pilots() -> None:
    """Let every pilot wait by `settled`."""
    for module in (textual.app, textual.pilot):
        assert hasattr(module, "wait_for_idle"), "Textual waits in another way now"
        setattr(module, "wait_for_idle", settled)  # noqa: B010 - Textual does not export the name it uses
