"""The bound on messages of a part of the screen to itself: a handler that calls itself endlessly is slowed, never the
keys.

Textual takes the next message without a pause while there is one, so such a handler would keep the loop from reading
keys, signals and answers.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from functools import partial, wraps
from typing import Any, Final, TypeAlias

from textual.events import InputEvent, Resize
from textual.message import Message
from textual.message_pump import MessagePump
from textual.messages import Layout, Update, UpdateScroll

log = logging.getLogger(__name__)

WINDOW: Final = 256
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
SENTENCE: Final = "A part of Phoenix calls itself without end and was slowed down. Keys still work; the log names it."
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
            return self._slow(tally)
        if not tally.count % WINDOW:
            self._look(pump, message, tally)
        return 0.0

    def _slow(self, tally: MessageTally) -> float:
        now = self._clock.monotonic()
        if now - tally.last > CALM:
            tally.slowed, tally.windows, tally.count = False, 0, 0
            return 0.0
        tally.last = now + HOLD
        return HOLD

    def _look(self, pump: Any, message: Message, tally: MessageTally) -> None:
        now, busy = self._clock.monotonic(), self._clock.busy()
        passed = max(now - tally.since, 1e-9)
        rate, share = WINDOW / passed, (busy - tally.busy) / passed
        fast = rate > FAST or (rate > STEADY and share > ALL_OF_IT)
        tally.windows = tally.windows + 1 if fast and tally.inputs == self._inputs else 0
        tally.since, tally.busy, tally.inputs = now, busy, self._inputs
        if tally.windows >= WINDOWS:
            tally.slowed, tally.last = True, now
            _report(pump, message, tally.count)


def bound_messages(bound: MessageBound) -> None:
    """Have every pump of Textual, its own widgets too, ask this bound before it handles a message."""
    # All messages of all pumps pass here; Textual offers no place that can wait.
    take: Take = MessagePump._get_message  # pyright: ignore[reportPrivateUsage] - as said
    original: Take = getattr(take, "__wrapped__", take)

    @wraps(original)
    async def bounded(pump: Any) -> Message:
        message = await original(pump)
        seconds = bound.hold(pump, message)
        while seconds and not isinstance(message, PAINTS) and pump._message_queue.qsize() > MOST_WAITING:
            pump._message_queue.task_done()
            message = await original(pump)
            seconds = bound.hold(pump, message)
        if seconds and not pump._closing:
            await asyncio.sleep(seconds)
        return message

    setattr(MessagePump, "_get_message", bounded)  # noqa: B010 - private, as above


def _report(pump: Any, message: Message, count: int) -> None:
    if logging.getLogger().handlers:  # without any it would go to the terminal
        log.error(
            "%s got %d of %s (%s) without a pause: from now on %d a second",
            type(pump).__name__, count, type(message).__name__, _called_by(message), 1 / HOLD,
        )  # fmt: skip
    tell: Callable[[str], None] | None = getattr(pump.app, "warn", None)
    if tell is not None:
        tell(SENTENCE)


def _called_by(message: Message) -> str:
    call: Any = getattr(message, "callback", None)
    while isinstance(call, partial):
        call = call.func  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType] - of any callable
    return str(getattr(call, "__qualname__", "no callback"))  # pyright: ignore[reportUnknownArgumentType] - as above
