"""Decides if an answer counts yet: it was not typed for something else, and every row of the request was visible."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from msgspec import Struct, field

from tools.clock import SYSTEM_CLOCK, Clock

PATIENCE: Final = 8
"""Screens that are paged through by a yes each; for a longer request, the first yes reports the unseen part and the
next one counts.
"""


class RowRange(NamedTuple):
    """Rows `first` up to, not including, `after`."""

    first: int
    after: int


def merge_ranges(seen: Iterable[RowRange]) -> list[RowRange]:
    """The same rows, in order, no two ranges touching."""
    out: list[RowRange] = []
    for rows in sorted(seen):
        if out and rows.first <= out[-1].after:
            out[-1] = RowRange(out[-1].first, max(out[-1].after, rows.after))
        elif rows.after > rows.first:
            out.append(rows)
    return out


def find_unseen(total: int, seen: Iterable[RowRange]) -> list[RowRange]:
    """The rows of a request of `total` that are in none of the ranges `seen`; a yes counts where there are none."""
    missing: list[RowRange] = []
    place = 0
    for first, after in merge_ranges(seen):
        if first > place:
            missing.append(RowRange(place, min(first, total)))
        place = max(place, after)
        if place >= total:
            return missing
    return [*missing, RowRange(place, total)]


class UnseenRefusal(NamedTuple):
    """Reason why a yes does not count yet: the row to scroll to, and one sentence."""

    row: int
    words: str


class SeenRows(Struct):
    """Rows of one request that have been visible, for one layout."""

    total: int = 0
    left_out: int = 0
    """Characters or lines of it that are too many to be laid out at all."""
    _seen: list[RowRange] = field(default_factory=list[RowRange])
    _layout: object = None
    _forgiven: bool = False

    def begin(self) -> None:
        self.total, self.left_out, self._seen, self._layout, self._forgiven = 0, 0, [], None, False

    def saw(self, layout: object, total: int, rows: Sequence[RowRange]) -> None:
        """Record the rows on the screen; rows seen in another layout count no longer."""
        if layout != self._layout:
            self._layout, self._seen = layout, []
        self.total = total
        self._seen = merge_ranges([*self._seen, *rows])

    def refusal(self, height: int) -> UnseenRefusal | None:
        """Reason why a yes does not count yet, with `height` rows on a screen; None where it does."""
        if not self.total:
            return UnseenRefusal(0, "Not answered yet: part of the request was not visible. It is now; answer again.")
        missing = find_unseen(self.total, self._seen)
        if self._forgiven or not (missing or self.left_out):
            return None
        count = sum(after - first for first, after in missing)
        row = missing[0].first if missing else 0
        if count <= PATIENCE * max(height, 1) and missing:
            return UnseenRefusal(row, f"Not answered yet: {_were(count)} visible. They are now; answer again.")
        self._forgiven = True
        words = f"{_were(count)} visible" if missing else ""
        words += " and " if missing and self.left_out else ""
        words += f"{self.left_out:,} characters or lines of it are too many to be shown" if self.left_out else ""
        return UnseenRefusal(row, f"Not answered yet: {words}. A second yes accepts it all.")


def _were(count: int) -> str:
    return f"{count:,} {'row was' if count == 1 else 'rows were'} never"


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
        self.since = self.clock.monotonic()
        self.seen_rows.begin()
        self.forget()

    def forget(self) -> None:
        """Say no longer why the last yes did not count, as when one reads on."""
        self.refusal, self._last = "", None

    @property
    def is_open(self) -> bool:
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
