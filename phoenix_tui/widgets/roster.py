"""The conversations of the list as values: rows grouped by need, their order, the selection and the marks."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

from msgspec import Struct, field

from engine.machine.states import STATE_NAMES, AwaitingApproval, Completed, Errored, Failed, Idle, State, is_busy
from phoenix_tui.text import labels
from phoenix_tui.text.labels import ENDS, ListGroup
from phoenix_tui.text.worktree_text import place_words
from phoenix_tui.widgets.status_line import NEAR
from tools.clean import clean_line
from tools.clock import SYSTEM_CLOCK, Clock
from tools.wording import one_line, pluralize

if TYPE_CHECKING:
    from engine.records import ConversationSummary


TITLE_LENGTH: Final = 50
"""Characters of a title that are kept (SPEC STM-11)."""
KEPT_NAMES: Final = 512
"""Rows whose words are kept, about 300 bytes each: more than any screen has."""


ORDER: Final = tuple(ListGroup)
ASKS: Final = STATE_NAMES[AwaitingApproval]
FAILURES: Final = frozenset({STATE_NAMES[Errored], STATE_NAMES[Failed]})
AT_REST: Final = frozenset({STATE_NAMES[Idle], STATE_NAMES[Completed], *FAILURES})


class Live(Struct, frozen=True):
    """State of a conversation of this process; `since` is monotonic."""

    state: State
    since: float
    writing: bool = False
    """True while the answer arrives."""
    began: float = 0.0
    """Wall time at which it began to work, or to wait for the user."""
    agents: int = 0
    """Number of its sub-agents that work or queue."""
    asking: int = 0
    """Number of its sub-agents with an open question."""


class Here(Struct, frozen=True):
    """Present time on both clocks, and this process."""

    wall: float
    monotonic: float
    pid: int


class PlacedRow(Struct, frozen=True):
    """A conversation in its place."""

    id: str
    group: ListGroup


class RosterRow(Struct, frozen=True):
    """Values of one line of the list; unknown ones are empty."""

    id: str
    label: labels.Label
    title: str
    folder: str
    model: str
    context: str
    cost: str
    when: str
    near_full: bool
    unread: bool
    progress: str = ""
    """Done and all items of its todo list, as in `3/7`."""


def arrange(
    summaries: Iterable[ConversationSummary], live: Mapping[str, Live], pid: int, text: str = ""
) -> list[PlacedRow]:
    """Sort everything that `text` finds into the order of the list.

    Pins keep their order of pinning. Waiting and working ones keep the order in which they began, so that a new one
    moves no other. The rest is newest first.
    """
    words = text.lower().split()
    keyed = [
        (_key(group := group_of(one, live.get(one.id), pid), one, live.get(one.id)), PlacedRow(one.id, group))
        for one in summaries
        if not words or matches(one, words)
    ]
    return [placed for _, placed in sorted(keyed, key=lambda each: each[0])]


def put_away(summaries: Iterable[ConversationSummary], group: ListGroup, text: str = "") -> list[PlacedRow]:
    """Archived ones, or the trash, in the order of the store: those removed last first."""
    words = text.lower().split()
    return [PlacedRow(one.id, group) for one in summaries if not words or matches(one, words)]


def matches(summary: ConversationSummary, words: Iterable[str]) -> bool:
    """True when every word (lower case) is in title, folder, model or id."""
    where = f"{summary.title}\n{summary.cwd}\n{summary.model}\n{summary.id}".lower()
    return all(word in where for word in words)


def group_of(summary: ConversationSummary, live: Live | None, pid: int) -> ListGroup:
    """The group of a conversation (docs/decisions/writing-and-list.md)."""
    if summary.pinned_at:
        return ListGroup.PINNED
    if live is not None:
        needs_you = isinstance(live.state, AwaitingApproval | Errored) or live.asking > 0
        works = is_busy(live.state) or live.agents > 0
    else:
        needs_you = summary.state_name in FAILURES or (summary.state_name == ASKS and _is_owned_by_other(summary, pid))
        works = summary.state_name not in AT_REST and _is_owned_by_other(summary, pid)
    if needs_you:
        return ListGroup.NEEDS_YOU
    if works:
        return ListGroup.WORKING
    was_cut_off = live is None and summary.state_name not in AT_REST and not _is_owned_by_other(summary, pid)
    return ListGroup.STOPPED if was_cut_off or summary.last_status in ENDS else ListGroup.RECENT


def _is_owned_by_other(summary: ConversationSummary, pid: int) -> bool:
    return summary.owner_pid not in {None, pid}


def _key(group: ListGroup, summary: ConversationSummary, live: Live | None) -> tuple[int, float, str]:
    match group:
        case ListGroup.PINNED:
            at = summary.pinned_at
        case ListGroup.NEEDS_YOU | ListGroup.WORKING:
            at = live.began if live is not None and live.began else summary.updated_at
        case _:
            at = -summary.updated_at
    return ORDER.index(group), at, summary.id


def compose(
    summary: ConversationSummary, live: Live | None, here: Here, *, current: bool = False, sign: str = ""
) -> RosterRow:
    label = _label(summary, live, here)
    if summary.has_draft and not label.text and not current:
        label = labels.Label(label.glyph, "draft")
    percent = round(100 * summary.context_tokens / summary.context_window) if summary.context_window else 0
    title, folder, model = names(summary.title, summary.cwd, summary.model, sign)
    return RosterRow(
        id=summary.id,
        label=label,
        title=title,
        folder=folder,
        model=model,
        context=f"{percent}%" if percent else "",
        cost=labels.money(summary.totals.cost_usd),
        when=_when(summary, live, here),
        near_full=percent >= NEAR,
        unread=summary.unread,
        progress=summary.progress,
    )


@lru_cache(maxsize=KEPT_NAMES)
def names(title: str, cwd: Path, model: str, sign: str = "") -> tuple[str, str, str]:
    """Title, folder and model in words; kept, for each change of one conversation draws all that are in view."""
    return (
        one_line(clean_line(title), TITLE_LENGTH) or "New conversation",
        clean_line(place_words(cwd, sign)),
        clean_line(labels.short_model(model)),
    )


def _when(summary: ConversationSummary, live: Live | None, here: Here) -> str:
    """Time it waits for the user, else its age; a working one shows its own clock."""
    if summary.put_away_at:
        return labels.ago(here.wall - summary.put_away_at)
    if live is None or not is_busy(live.state):
        return labels.ago(here.wall - summary.updated_at)
    return labels.age(here.monotonic - live.since) if isinstance(live.state, AwaitingApproval) else ""


def _label(summary: ConversationSummary, live: Live | None, here: Here) -> labels.Label:
    if live is not None and live.asking:
        return labels.Label(labels.ASKING, "needs you")
    if live is not None and live.agents and isinstance(live.state, Idle):
        return labels.Label(labels.AGENTS, f"{live.agents} running")
    if live is not None and not isinstance(live.state, Idle):
        return labels.short_state(live.state, here.monotonic - live.since, writing=live.writing)
    if live is None and _is_owned_by_other(summary, here.pid):
        if summary.state_name == ASKS:
            return labels.Label(labels.ASKING, "asks elsewhere")
        return (
            labels.Label(labels.READY, "open elsewhere")
            if summary.state_name in AT_REST
            else labels.Label(labels.THINKING, "works elsewhere")
        )
    if summary.unread:
        return labels.Label(labels.UNREAD, "unread")
    if summary.state_name in FAILURES:
        return ENDS["failure"]
    if live is None and summary.state_name not in AT_REST:
        return ENDS["interrupted"]
    return ENDS.get(summary.last_status, labels.Label(labels.READY, ""))


FEW_SLOTS: Final = 9
"""Conversations that Alt and a digit reach."""
ROLLED: Final = 3
"""Rows of one turn of the wheel."""
Line: TypeAlias = "RosterRow | str"
"""A conversation, or a heading."""


class ListModel(Struct, eq=False):
    """Windowed: only lines in view are put into words, however many conversations there are."""

    view: ListGroup | None = None
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
    _lines: list[PlacedRow | ListGroup] = field(default_factory=list["PlacedRow | ListGroup"])

    @property
    def order(self) -> list[str]:
        return [line.id for line in self._lines if isinstance(line, PlacedRow)]

    @property
    def chosen(self) -> str:
        return self.id_at(self._cursor)

    @property
    def chosen_with_time(self) -> tuple[str, float]:
        """The chosen conversation, and when it last changed."""
        chosen = self._summaries.get(self.chosen)
        return (chosen.id, chosen.updated_at) if chosen is not None else ("", 0.0)

    @property
    def targets(self) -> tuple[str, ...]:
        return tuple(self.marked) or ((self.chosen,) if self.chosen else ())

    @property
    def has_any(self) -> bool:
        """True where there is more than the empty conversation on the screen, and before the list was read."""
        return not self.known or any(one.message_count or one.id != self.current for one in self._summaries.values())

    @property
    def moves(self) -> bool:
        return any(is_busy(live.state) for live in self._live.values())

    def id_at(self, place: int) -> str:
        line = self._lines[place] if 0 <= place < len(self._lines) else None
        return line.id if isinstance(line, PlacedRow) else ""

    def fill(self, summaries: Sequence[ConversationSummary], live: Mapping[str, Live], current: str) -> None:
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
        self._cursor = 0
        self._settle()
        for place, line in enumerate(self._lines):
            if isinstance(line, PlacedRow) and line.id == conversation_id:
                self._cursor = place
        self._fit()

    def step(self, by: int) -> None:
        places = [place for place, line in enumerate(self._lines) if isinstance(line, PlacedRow)]
        if places:
            index = sum(place < self._cursor for place in places)
            self._cursor = places[max(0, min(index + by, len(places) - 1))]
            self._fit()

    def roll(self, by: int) -> None:
        """Show another part, `by` turns of the wheel on; the cursor stays."""
        self.top = max(min(self.top + by * ROLLED, len(self._lines) - self.height), 0)

    def resize(self, height: int) -> None:
        self.height = max(height, 1)
        self._fit()

    def _fit(self) -> None:
        above = max(self._cursor - 1, 0)  # a heading, where it is the first of its group
        self.top = max(min(self.top, above), self._cursor - self.height + 1, 0)
        self.top = min(self.top, max(len(self._lines) - self.height, 0))

    def mark(self) -> None:
        if self.chosen:
            if self.chosen in self.marked:
                del self.marked[self.chosen]
            else:
                self.marked[self.chosen] = None
            self.step(1)

    def visible(self) -> list[Line]:
        here = Here(self.clock.now(), self.clock.monotonic(), os.getpid())
        return [self._words(line, here) for line in self._lines[self.top : self.top + self.height]]

    def _words(self, line: PlacedRow | ListGroup, here: Here) -> Line:
        if isinstance(line, ListGroup):
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
        return self._cursor - self.top

    def slots(self) -> dict[str, int]:
        """Digit that opens a conversation with Alt, by its id."""
        return {conversation_id: number for number, conversation_id in enumerate(self.order[:FEW_SLOTS], start=1)}

    def count(self) -> str:
        costs = [one.totals.cost_usd for one in self._summaries.values()]
        parts = (pluralize(len(self._summaries), "conversation"), labels.money(sum(cost for cost in costs if cost)))
        return " · ".join(part for part in parts if part) if self._summaries else ""

    def count_found(self) -> str:
        return f"{len(self.order)} of {len(self._summaries)}"


def _with_headings(placed: Sequence[PlacedRow]) -> list[PlacedRow | ListGroup]:
    lines: list[PlacedRow | ListGroup] = []
    group: ListGroup | None = None
    for one in placed:
        if one.group is not group:
            group = one.group
            lines.append(group)
        lines.append(one)
    return lines
