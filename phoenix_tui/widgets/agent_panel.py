"""Live rows of the sub-agents above the composer: state, task, activity, usage and limits (docs/decisions/looks.md)."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Final

from msgspec import Struct
from textual import events
from textual.content import Content
from textual.geometry import Size
from textual.widget import Widget

from engine.machine import states
from engine.updates import AgentView
from phoenix_tui.keys.active_keys import hint, key
from phoenix_tui.text import labels
from phoenix_tui.text.agent_text import first_line
from phoenix_tui.widgets.bases import Still, Ticker
from tools.call_titles import tool_label
from tools.clean import clean_line
from tools.wording import one_line

GAP: Final = "  "
HOUSE: Final = "claude-"
"""Prefix left out of the names of well-known models."""
SILENT_FROM: Final = 20.0
"""Seconds without output from which a row warns of it."""


class FigureColumn(Struct, frozen=True):
    """One figure: its words at a time (wall clock), and the cells it may take, 0 for as many as it needs."""

    words: Callable[[AgentView, float], str]
    longest: int = 0
    left: bool = False
    """True for a word; numbers are right-aligned."""
    warns: bool = False
    """True when it has the colour of warnings where its row is silent."""


def measure_elapsed(view: AgentView, now: float) -> float:
    """Seconds it has worked; its clock stops while it waits for the user's answer."""
    return max((view.asked or view.ended or now) - view.started, 0.0) if view.started else 0.0


def silence(view: AgentView, now: float) -> float:
    """Seconds since anything came of it; 0 for one that rests, asks, or waits for its turn."""
    rests = view.outcome is not None or view.waits or isinstance(view.state, states.AwaitingApproval)
    return 0.0 if rests or not view.last_output else max(now - view.last_output, 0.0)


def turns(view: AgentView) -> str:
    """The turn it is in of its allowed ones; later ones are grace."""
    if not view.turn:
        return ""
    grace = view.turn - view.max_turns
    return f"{view.max_turns}/{view.max_turns} +{grace}" if grace > 0 else f"{view.turn}/{view.max_turns}"


def format_time_used(view: AgentView, now: float) -> str:
    """Time it has worked, and its limit while it works."""
    words = labels.clock(measure_elapsed(view, now)) if view.started else ""
    limit = labels.clock(view.timeout).removesuffix(" 0 s") if view.timeout and view.outcome is None else ""
    return f"{words} / {limit}" if words and limit else words


def model_words(view: AgentView) -> str:
    return labels.short_model(view.model).removeprefix(HOUSE)


def profile_words(view: AgentView) -> str:
    return clean_line(view.profile) or "general"


def last_words(view: AgentView, now: float) -> str:
    works = view.outcome is None and not view.waits and view.last_output
    return (
        f"{labels.age(silence(view, now))} ago" if works and not isinstance(view.state, states.AwaitingApproval) else ""
    )


PROFILE: Final = FigureColumn(lambda view, _: profile_words(view), longest=12, left=True)
MODEL: Final = FigureColumn(lambda view, _: model_words(view), longest=16, left=True)
TURN: Final = FigureColumn(lambda view, _: turns(view))
TURN_WORDS: Final = FigureColumn(lambda view, _: f"turn {turns(view)}" if view.turn else "")
TIME: Final = FigureColumn(lambda view, now: labels.clock(measure_elapsed(view, now)) if view.started else "")
TIME_OF: Final = FigureColumn(format_time_used)
TOKENS: Final = FigureColumn(lambda view, _: labels.tokens(view.tokens) if view.tokens else "")
COST: Final = FigureColumn(lambda view, _: labels.money(view.cost_usd))
LAST: Final = FigureColumn(last_words, warns=True)

NARROW: Final = (TURN, TIME)
SHORT: Final = (TURN, TIME, TOKENS)
MIDDLE: Final = (TURN, TIME_OF, TOKENS, COST)
FULL: Final = (PROFILE, MODEL, TURN, TIME_OF, TOKENS, COST, LAST)
WORDY: Final = (PROFILE, MODEL, TURN_WORDS, TIME_OF, TOKENS, COST, LAST)
UPPER: Final = (TURN_WORDS, TIME_OF, TOKENS, COST)
LOWER: Final = (PROFILE, MODEL, LAST)
"""All that is to be seen of one, on two rows."""


def figures(views: Sequence[AgentView], columns: Sequence[FigureColumn], now: float) -> list[Content]:
    """The columns of each, aligned over all of them, with a gap before each; all are as long."""
    texts = [[one_line(column.words(view, now), column.longest) for column in columns] for view in views]
    widths = [max((len(row[place]) for row in texts), default=0) for place in range(len(columns))]
    rows: list[Content] = []
    for view, row in zip(views, texts, strict=True):
        warned = silence(view, now) >= SILENT_FROM
        parts = [
            (
                f"{GAP}{text:<{cells}}" if column.left else f"{GAP}{text:>{cells}}",
                (labels.Tone.NEEDS_YOU if column.warns and warned else labels.Tone.QUIET).value,
            )
            for column, text, cells in zip(columns, row, widths, strict=True)
            if cells
        ]
        rows.append(Content.assemble(*parts))
    return rows


WAITING: Final = labels.Glyph("·", ".", labels.Tone.QUIET)
LEAST_NAME: Final = 8
LEAST_WORDS: Final = 14
"""Cells kept for the activity."""
NAME_SHARE: Final = 45
"""Share of the task in a hundred cells of task and activity."""
SIGN: Final = 2
"""Cells of the sign before a row."""
BY_WIDTH: Final[tuple[tuple[int, tuple[FigureColumn, ...]], ...]] = (
    (132, WORDY),
    (112, FULL),
    (84, MIDDLE),
    (72, SHORT),
    (0, NARROW),
)
"""The columns of one row, by the cells from which there is room for them."""
WHOLE_FROM: Final = 112
"""Cells from which one row says everything, cut short where it must be."""
ONE_FROM: Final = 132
"""Cells from which one row has room for all of it, so that none takes two."""
TWO_FROM: Final = 72
"""Cells from which two rows do."""


def glyph_of(view: AgentView) -> labels.Glyph:
    if view.outcome is not None:
        return END_GLYPHS[view.outcome.status]
    if view.waits:
        return WAITING
    return labels.ASKING if isinstance(view.state, states.AwaitingApproval) else labels.AGENTS


END_GLYPHS: Final = {
    states.AgentStatus.SUCCESS: labels.DONE,
    states.AgentStatus.FAILURE: labels.FAILED,
    states.AgentStatus.TIMEOUT: labels.FAILED,
    states.AgentStatus.CANCELLED: labels.STOPPED,
}


def outcome_text(outcome: states.AgentOutcome) -> str:
    if outcome.status is states.AgentStatus.SUCCESS:
        return first_line(outcome.text) or "done"
    reason = first_line(outcome.reason) or outcome.status.value
    return f"{reason} (partial kept)" if outcome.text else reason


def describe_action(view: AgentView, *, plain: bool) -> Content:
    if view.outcome is not None:
        return Content(outcome_text(view.outcome))
    if view.waits:
        return Content.styled("waiting to start", labels.Tone.QUIET.value)
    sign, words, tone = _activity(view)
    return Content.assemble((f"{sign.mark(plain)} ", sign.tone.value) if sign else "", (words, tone))


def _activity(view: AgentView) -> tuple[labels.Glyph | None, str, str]:
    match view.state:
        case states.AwaitingApproval(round=tool_round):
            return (
                None,
                f"asks: {clean_line(view.activity or tool_label(tool_round.current.name))}",
                labels.Tone.NEEDS_YOU.value,
            )
        case states.ToolExecuting(round=tool_round):
            return labels.RUNNING, clean_line(view.activity or tool_label(tool_round.current.name)), ""
        case states.AwaitingLlm(phase=states.RetryWait(cause=cause)):
            return labels.RETRYING, f"retrying: {clean_line(cause)}", ""
        case states.AwaitingLlm(phase=states.CompactingContext()):
            return labels.THINKING, "compacting", labels.Tone.QUIET.value
        case states.Cancelling():
            return None, "stopping", labels.Tone.QUIET.value
        case _:
            return labels.THINKING, "writing" if view.writing else "thinking", labels.Tone.QUIET.value


def rows_each(views: Sequence[AgentView], width: int, room: int) -> int:
    """Rows that each takes to show everything, where `room` has as many for all of them; else 1."""
    return 2 if TWO_FROM <= width < ONE_FROM and 2 * len(views) <= room else 1


def agent_rows(views: Sequence[AgentView], width: int, now: float, *, plain: bool, each: int = 1) -> list[Content]:
    """One row each, or two, their columns aligned over all of them; `now` is wall clock."""
    return _pairs(views, width, now, plain) if each > 1 else _single(views, width, now, plain)


def _single(views: Sequence[AgentView], width: int, now: float, plain: bool) -> list[Content]:
    columns = next(columns for least, columns in BY_WIDTH if width >= least)
    right = figures(views, columns, now)
    room = max(width - SIGN - _longest(right) - len(GAP), LEAST_NAME + LEAST_WORDS)
    names = [_name(view) for view in views]
    name_room = max(min(_longest(names), room * NAME_SHARE // 100), LEAST_NAME)
    warns = width < WHOLE_FROM
    return [
        Content.assemble(
            _sign(view, plain),
            name.truncate(name_room, ellipsis=True, pad=True),
            GAP,
            _words(view, now, plain, warns=warns).truncate(max(room - name_room, 1), ellipsis=True, pad=True),
            figure,
        ).truncate(width, ellipsis=True)
        for view, name, figure in zip(views, names, right, strict=True)
    ]


def _pairs(views: Sequence[AgentView], width: int, now: float, plain: bool) -> list[Content]:
    """Task and budget, below them activity, profile and model, and age of the last output."""
    rows: list[Content] = []
    upper, lower = (figures(views, columns, now) for columns in (UPPER, LOWER))
    for view, above, below in zip(views, upper, lower, strict=True):
        name, words = _name(view), _words(view, now, plain, warns=False)
        room, rest = (width - SIGN - one.cell_length for one in (above, below))
        rows.append(Content.assemble(_sign(view, plain), name.truncate(room, ellipsis=True, pad=True), above))
        rows.append(Content.assemble(" " * SIGN, words.truncate(rest, ellipsis=True, pad=True), below))
    return rows


def _sign(view: AgentView, plain: bool) -> tuple[str, str]:
    glyph = glyph_of(view)
    return f"{glyph.mark(plain)} ", glyph.tone.value


def _name(view: AgentView) -> Content:
    name = Content(one_line(clean_line(view.task)))
    return name if view.waits else name.stylize("bold")


def _words(view: AgentView, now: float, plain: bool, *, warns: bool) -> Content:
    """Current action; `warns` when no column shows the silence."""
    words = describe_action(view, plain=plain)
    if view.outcome is not None:
        return words.stylize_before(labels.Tone.QUIET.value)
    silent = silence(view, now)
    if not warns or silent < SILENT_FROM:
        return words
    return Content.assemble((f"silent {labels.clock(silent)} · ", labels.Tone.NEEDS_YOU.value), words)


def _longest(texts: Sequence[Content]) -> int:
    return max((text.cell_length for text in texts), default=0)


MOST: Final = 10
"""Sub-agents that have a row."""
TALL: Final = 36
"""Rows of the screen from which the panel may have every third of them; below that every sixth."""
TICK: Final = 1.0
"""Seconds between two looks at the clocks, while one of them runs."""
SIDES: Final = 2


class AgentPanel(Still, Widget):
    """A heading, a row or two each, `+n more`. A click on the heading folds it, one on a row opens that sub-agent.

    In the transcript of one of them it has its row alone, under the heading of all and the keys to the others.
    """

    DEFAULT_CSS = """
    AgentPanel {
        height: auto; display: none; padding: 0 1; background: $background; text-wrap: nowrap;
        &.-tall { margin: 1 0 0 0; }
    }
    """
    can_focus = False

    def __init__(self, *, plain: bool = False) -> None:
        super().__init__()
        self._plain = plain
        self._source: Callable[[], Sequence[AgentView]] = tuple
        self._only = ""
        """The id of the one in view; empty for all of them."""
        self._shown: Sequence[AgentView] = ()
        """Views that have a row now, in order."""
        self._each = 1
        """Rows of each."""
        self._folded = False
        self._ticker = Ticker(self, TICK, self._look)
        self._drawn = Content()
        """Text drawn last."""
        self._drawn_for: tuple[int, Size] | None = None
        """Width of the panel and the screen's size at that time."""

    @property
    def ticking(self) -> bool:
        return self._ticker.runs

    def show(self, source: Callable[[], Sequence[AgentView]], only: str = "") -> None:
        """Show the views of `source`, now and with every tick; of `only` alone there is a row."""
        self._source, self._only = source, only
        self._look()

    def fold(self) -> None:
        self._folded = not self._folded
        self._look()

    def _look(self) -> None:
        views = self._source()
        drawn, self._drawn_for = Content("\n").join(self._rows(views)), self._space
        self.display = bool(views)
        height = self.screen.size.height if self.is_attached else 0
        self.set_class(height >= TALL, "-tall")
        before, self._drawn = self._drawn.plain, drawn
        if drawn.plain != before:
            self.refresh(layout=drawn.plain.count("\n") != before.count("\n") or not before)
        self._ticker.run(self.is_attached and any(view.outcome is None for view in views))

    def on_mount(self) -> None:
        self._look()

    def on_resize(self) -> None:
        self.call_after_refresh(self._look)

    def on_click(self, event: events.Click) -> None:
        if event.y == 0 or self._folded:
            self.fold()
        elif (place := (event.y - 1) // self._each) < len(self._shown):
            self.call_later(self.run_action, f"screen.command({f'agents {self._shown[place].id}'!r})")
        else:
            self.call_later(self.run_action, "screen.command('agents')")

    @property
    def _room(self) -> int:
        """Rows it may take below its heading."""
        height = self.screen.size.height
        return max(height // (3 if height >= TALL else 6), 2)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return len(self._rows(self._source(), width))

    def render(self) -> Content:
        """Heading and rows, as they were looked at last; there are others where the room is."""
        return self._drawn if self._drawn_for == self._space else Content("\n").join(self._rows(self._source()))

    @property
    def _space(self) -> tuple[int, Size] | None:
        return (self.size.width, self.screen.size) if self.is_attached else None

    def _rows(self, views: Sequence[AgentView], wide: int = 0) -> list[Content]:
        if not views or not self.is_attached:
            return []
        width = max(wide or self.size.width or self.screen.size.width - SIDES, 1)
        heading = self._draw_heading(views, width)
        if self._folded:
            return [heading]
        own = [view for view in views if not self._only or view.id == self._only]
        self._each = rows_each(own, width, self._room)
        self._shown = choose_views(own, min(self._room // self._each, MOST))
        rows = agent_rows(self._shown, width, time.time(), plain=self._plain, each=self._each)
        if more := len(own) - len(self._shown):
            rows.append(Content.styled(f"  +{more} more", labels.Tone.QUIET.value))
        return [heading, *rows]

    def _draw_heading(self, views: Sequence[AgentView], width: int) -> Content:
        done = sum(view.outcome is not None for view in views)
        asks = sum(view.outcome is None and isinstance(view.state, states.AwaitingApproval) for view in views)
        left = Content.assemble(
            (f"{labels.AGENTS.mark(self._plain)} " if self._folded else "", labels.AGENTS.tone.value),
            (f"sub-agents {done}/{len(views)} done", labels.Tone.QUIET.value),
            (f" · {asks} {'asks' if asks == 1 else 'ask'} you" if asks else "", labels.Tone.NEEDS_YOU.value),
        )
        shows = next((words for words in self._hints() if left.cell_length + len(words) < width), "")
        gap = max(width - left.cell_length - len(shows), 0)
        return Content.assemble(left.truncate(width, ellipsis=True), " " * gap, (shows, labels.Tone.QUIET.value))

    def _hints(self) -> tuple[str, ...]:
        every = hint(("agents", "shows all"))
        if not self._only:
            return (every,)
        others = f"{key('agent_previous')} {key('agent_next')}".strip()
        parent, ways = hint(("agent_parent", "parent")), f"{others} others" if others else ""
        return tuple(hint(*words) for words in ((parent, ways, every), (parent, ways), (parent,)))


def choose_views(views: Sequence[AgentView], most: int) -> Sequence[AgentView]:
    """At most `most` views, in their order: asking ones are chosen first, then working ones, then ended ones."""
    ranked = sorted(range(len(views)), key=lambda place: _rank(views[place]))[:most]
    return [views[place] for place in sorted(ranked)]


def _rank(view: AgentView) -> int:
    if view.outcome is not None:
        return 3
    return 0 if isinstance(view.state, states.AwaitingApproval) else 2 if view.waits else 1
