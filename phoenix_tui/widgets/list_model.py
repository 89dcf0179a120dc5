"""Content of the list, its order, its visible part, the selection and the marks."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

from msgspec import Struct, field

from engine.machine.states import is_busy
from phoenix_tui.text.labels import money
from phoenix_tui.widgets.roster import Group, Here, Live, PlacedRow, RosterRow, arrange, compose, put_away
from tools.clock import SYSTEM_CLOCK, Clock
from tools.wording import counted

if TYPE_CHECKING:
    from engine.records import ConversationSummary

FEW_SLOTS: Final = 9
"""Conversations that Alt and a digit reach."""
ROLLED: Final = 3
"""Rows of one turn of the wheel."""
Line: TypeAlias = "RosterRow | str"
"""A conversation, or a heading."""


class ListModel(Struct, eq=False):
    """Windowed: only lines in view are put into words, however many conversations there are."""

    view: Group | None = None
    """ARCHIVED or TRASH; None: the list itself."""
    clock: Clock = SYSTEM_CLOCK
    text: str = ""
    """Filter of the list."""
    filtering: bool = False
    """True while letters go into `text`."""
    current: str = ""
    """The one on the screen."""
    top: int = 0
    height: int = 1
    known: bool = False
    """True once it was read; before that it shows no count."""
    marked: dict[str, None] = field(default_factory=dict[str, None])
    """Marked ids in the order of marking."""
    signs: dict[Path, str] = field(default_factory=dict[Path, str])
    """Last known signs of worktrees, by their folder."""
    _cursor: int = 0
    _summaries: dict[str, ConversationSummary] = field(default_factory=dict[str, "ConversationSummary"])
    _live: Mapping[str, Live] = field(default_factory=dict[str, Live])
    _lines: list[PlacedRow | Group] = field(default_factory=list["PlacedRow | Group"])

    @property
    def order(self) -> list[str]:
        """Conversation ids from top to bottom, as shown."""
        return [line.id for line in self._lines if isinstance(line, PlacedRow)]

    @property
    def chosen(self) -> str:
        """The id under the cursor; empty when there is none."""
        return self.id_at(self._cursor)

    @property
    def targets(self) -> tuple[str, ...]:
        """Targets of an action: everything marked, else the selected one."""
        return tuple(self.marked) or ((self.chosen,) if self.chosen else ())

    @property
    def moves(self) -> bool:
        """True while a clock runs in the list."""
        return any(is_busy(live.state) for live in self._live.values())

    def id_at(self, place: int) -> str:
        """The conversation on a line; empty for a heading."""
        line = self._lines[place] if 0 <= place < len(self._lines) else None
        return line.id if isinstance(line, PlacedRow) else ""

    def fill(self, summaries: Sequence[ConversationSummary], live: Mapping[str, Live], current: str) -> None:
        """Take these."""
        self._summaries = {one.id: one for one in summaries}
        self._live, self.current, self.known = live, current, True
        self.marked = {one: None for one in self.marked if one in self._summaries}

    def arrange(self, chosen: str = "", *, at_top: bool = False) -> None:
        """Sort all rows; the selected one keeps its row on the screen, and if it is gone, its neighbour is selected.

        With `at_top` and without a choice, a window at the top stays there: the first heading is not scrolled away.
        """
        row = self._cursor - self.top
        chosen = chosen or self.chosen or self.current
        values = self._summaries.values()
        if self.view is None:
            placed = arrange(values, self._live, os.getpid(), self.text)
        else:
            placed = put_away(values, self.view, self.text)
        self._lines = _with_headings(placed) if self.view is None else list(placed)
        place = next(
            (n for n, line in enumerate(self._lines) if isinstance(line, PlacedRow) and line.id == chosen), None
        )
        if place is None:
            self._settle()
        else:
            self._cursor = place
            stays_at_top = at_top and self.top < ROLLED and place < self.height
            self.top = 0 if stays_at_top else place - row
        self._fit()

    def _settle(self) -> None:
        last = len(self._lines) - 1
        self._cursor = max(min(self._cursor, last), 0)
        if not self.id_at(self._cursor):
            self._cursor = min(self._cursor + 1, max(last, 0))

    def choose(self, conversation_id: str) -> None:
        """Put the cursor on this one, where it is shown, else on the first."""
        self._cursor = 0
        self._settle()
        for place, line in enumerate(self._lines):
            if isinstance(line, PlacedRow) and line.id == conversation_id:
                self._cursor = place
        self._fit()

    def step(self, by: int) -> None:
        """Move the cursor by some conversations, as far as there are any."""
        places = [place for place, line in enumerate(self._lines) if isinstance(line, PlacedRow)]
        if places:
            index = sum(place < self._cursor for place in places)
            self._cursor = places[max(0, min(index + by, len(places) - 1))]
            self._fit()

    def roll(self, by: int) -> None:
        """Show another part, `by` turns of the wheel on; the cursor stays."""
        self.top = max(min(self.top + by * ROLLED, len(self._lines) - self.height), 0)

    def resize(self, height: int) -> None:
        """Set the number of visible lines."""
        self.height = max(height, 1)
        self._fit()

    def _fit(self) -> None:
        """Keep the cursor in view, and the heading above it."""
        above = max(self._cursor - 1, 0)  # a heading, where it is the first of its group
        self.top = max(min(self.top, above), self._cursor - self.height + 1, 0)
        self.top = min(self.top, max(len(self._lines) - self.height, 0))

    def mark(self) -> None:
        """Mark the chosen one, or remove its mark, and go to the next."""
        if self.chosen:
            if self.chosen in self.marked:
                del self.marked[self.chosen]
            else:
                self.marked[self.chosen] = None
            self.step(1)

    def visible(self) -> list[Line]:
        """The lines in view, in words."""
        here = Here(self.clock.now(), self.clock.monotonic(), os.getpid())
        return [self._words(line, here) for line in self._lines[self.top : self.top + self.height]]

    def _words(self, line: PlacedRow | Group, here: Here) -> Line:
        if isinstance(line, Group):
            return line.value
        return compose(
            self._summaries[line.id],
            self._live.get(line.id),
            here,
            current=self.view is None and line.id == self.current,
            sign=self.signs.get(self._summaries[line.id].cwd, ""),
        )

    @property
    def row(self) -> int:
        """The row of the window that is the chosen one."""
        return self._cursor - self.top

    def slots(self) -> dict[str, int]:
        """Digit that opens a conversation with Alt, by its id."""
        return {conversation_id: number for number, conversation_id in enumerate(self.order[:FEW_SLOTS], start=1)}

    def count(self) -> str:
        """Number of conversations, and their cost."""
        costs = [one.totals.cost_usd for one in self._summaries.values()]
        parts = (counted(len(self._summaries), "conversation"), money(sum(cost for cost in costs if cost)))
        return " · ".join(part for part in parts if part) if self._summaries else ""

    def found(self) -> str:
        """Number of conversations that the text finds."""
        return f"{len(self.order)} of {len(self._summaries)}"


def _with_headings(placed: Sequence[PlacedRow]) -> list[PlacedRow | Group]:
    lines: list[PlacedRow | Group] = []
    group: Group | None = None
    for one in placed:
        if one.group is not group:
            group = one.group
            lines.append(group)
        lines.append(one)
    return lines
