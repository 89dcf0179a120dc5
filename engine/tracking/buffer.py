"""Decides when a pass over waiting messages begins (SPEC ACX-02, ACX-03). Pure: the clock is given."""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable
from typing import Final

from msgspec import Struct, field

FULL: Final = 16
"""Waiting messages that are processed at once."""
OVERFLOW: Final = 16
"""Further messages that one pass takes along; the others come in a pass of their own."""
MOST: Final = FULL + OVERFLOW
"""Messages of a pass."""
IDLE: Final = 8.0
"""Seconds without another message after which fewer are processed."""
AGAIN: Final = 1.0
"""Seconds after which a pass that could not begin is tried again."""


class TrackingBuffer(Struct, eq=False):
    """Waiting messages of one conversation, and the pass under way; times are monotonic seconds."""

    idle: float = IDLE
    waiting: list[int] = field(default_factory=list[int])
    """Seqs, ascending."""
    busy: bool = False
    """True during a pass: two of one conversation never overlap."""
    _due_at: float = 0.0
    _not_before: float = 0.0

    def stored(self, seq: int, now: float) -> None:
        """Note a stored message; the wait for silence begins again."""
        if seq not in self.waiting[-MOST:]:
            insort(self.waiting, seq)
        self._due_at = now + self.idle

    def restore(self, seqs: Iterable[int], now: float) -> None:
        """Take the messages that wait in the store as the waiting ones."""
        self.waiting = sorted(seqs)
        self._due_at = now + self.idle

    def wait(self, now: float) -> float | None:
        """Seconds until a pass is due; 0 when it is, None where nothing waits."""
        if not self.waiting:
            return None
        due_at = now if len(self.waiting) >= FULL else self._due_at
        return max(due_at - now, self._not_before - now, 0.0)

    def begin(self, now: float) -> bool:
        """True when a pass begins now; while another one runs, the next try is a second later."""
        if self.busy:
            self._not_before = now + AGAIN
            return False
        self.busy = True
        return True

    def took(self, seqs: Iterable[int], now: float) -> None:
        """Take messages out; where some are left behind a whole pass, the next one follows at once."""
        taken = frozenset(seqs)
        self.waiting = [seq for seq in self.waiting if seq not in taken]
        if len(taken) >= MOST:
            self._due_at = now

    def ended(self) -> None:
        """Note the end of a pass, however it ended."""
        self.busy = False

    def postpone(self, seconds: float, now: float) -> None:
        """Begin no pass for a while."""
        self._not_before = now + seconds
