"""The one answer to "does this answer count yet": it was not meant for something else, and all was in sight."""

from __future__ import annotations

from typing import Final

from msgspec import Struct, field

from phoenix_tui.widgets.unseen import SeenRows, UnseenRefusal
from tools.clock import SYSTEM_CLOCK, Clock

GRACE: Final = 0.5
"""Seconds in which a new question takes no answer: the key was meant for something else (docs/decisions/looks.md)."""


class AnswerGate(Struct):
    """Holds back answers to one question, card or summary after the other."""

    clock: Clock = SYSTEM_CLOCK
    since: float = 0.0
    """Time at which the question appeared."""
    seen_rows: SeenRows = field(default_factory=SeenRows)
    """Rows of it that have been in sight: a yes counts when all have."""
    refusal: str = ""
    """Reason why the last yes did not count."""
    _last: UnseenRefusal | None = None
    _refused_at: float = 0.0

    def begin(self) -> None:
        """Start over for another question."""
        self.since = self.clock.monotonic()
        self.seen_rows.begin()
        self.forget()

    def forget(self) -> None:
        """Say no longer why the last yes did not count, as when one reads on."""
        self.refusal, self._last = "", None

    @property
    def is_open(self) -> bool:
        """True once it was visible long enough for any answer."""
        return self.clock.monotonic() - self.since >= GRACE

    def refuses(self, height: int) -> UnseenRefusal | None:
        """Reason why a yes does not count, on a screen of `height` rows; None where it does.

        For `GRACE` seconds behind a refusal no yes counts: a second letter may have been typed with the first.
        """
        if self._last is not None and self.clock.monotonic() - self._refused_at < GRACE:
            return self._last
        self._last = self.seen_rows.refusal(height)
        self.refusal = self._last.words if self._last is not None else ""
        if self._last is not None:
            self._refused_at = self.clock.monotonic()
        return self._last
