"""Usage, limits, model and profile of a sub-agent: the columns at the right of its row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from msgspec import Struct
from textual.content import Content

from engine.machine.states import AwaitingApproval
from engine.updates import AgentView
from phoenix_tui.text.labels import Tone, age, clock, money, short_model, tokens
from tools.clean import clean_line

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


def elapsed(view: AgentView, now: float) -> float:
    """Seconds it has worked; its clock stops while it waits for the user's answer."""
    return max((view.asked or view.ended or now) - view.started, 0.0) if view.started else 0.0


def silence(view: AgentView, now: float) -> float:
    """Seconds since anything came of it; 0 for one that rests, asks, or waits for its turn."""
    rests = view.outcome is not None or view.waits or isinstance(view.state, AwaitingApproval)
    return 0.0 if rests or not view.last_output else max(now - view.last_output, 0.0)


def turns(view: AgentView) -> str:
    """The turn it is in of its allowed ones; later ones are grace."""
    if not view.turn:
        return ""
    grace = view.turn - view.max_turns
    return f"{view.max_turns}/{view.max_turns} +{grace}" if grace > 0 else f"{view.turn}/{view.max_turns}"


def time_used(view: AgentView, now: float) -> str:
    """Time it has worked, and its limit while it works."""
    words = clock(elapsed(view, now)) if view.started else ""
    limit = clock(view.timeout).removesuffix(" 0 s") if view.timeout and view.outcome is None else ""
    return f"{words} / {limit}" if words and limit else words


def model_words(view: AgentView) -> str:
    """Name of its model, shortened as far as it stays recognizable."""
    return short_model(view.model).removeprefix(HOUSE)


def profile_words(view: AgentView) -> str:
    """Name of its profile."""
    return clean_line(view.profile) or "general"


def last_words(view: AgentView, now: float) -> str:
    """Age of its last output."""
    works = view.outcome is None and not view.waits and view.last_output
    return f"{age(silence(view, now))} ago" if works and not isinstance(view.state, AwaitingApproval) else ""


PROFILE: Final = FigureColumn(lambda view, _: profile_words(view), longest=12, left=True)
MODEL: Final = FigureColumn(lambda view, _: model_words(view), longest=16, left=True)
TURN: Final = FigureColumn(lambda view, _: turns(view))
TURN_WORDS: Final = FigureColumn(lambda view, _: f"turn {turns(view)}" if view.turn else "")
TIME: Final = FigureColumn(lambda view, now: clock(elapsed(view, now)) if view.started else "")
TIME_OF: Final = FigureColumn(time_used)
TOKENS: Final = FigureColumn(lambda view, _: tokens(view.tokens) if view.tokens else "")
COST: Final = FigureColumn(lambda view, _: money(view.cost_usd))
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
    texts = [[_cut(column.words(view, now), column.longest) for column in columns] for view in views]
    widths = [max((len(row[place]) for row in texts), default=0) for place in range(len(columns))]
    rows: list[Content] = []
    for view, row in zip(views, texts, strict=True):
        warned = silence(view, now) >= SILENT_FROM
        parts = [
            (f"{GAP}{text:<{cells}}" if column.left else f"{GAP}{text:>{cells}}", _tone(column, warned=warned))
            for column, text, cells in zip(columns, row, widths, strict=True)
            if cells
        ]
        rows.append(Content.assemble(*parts))
    return rows


def _tone(column: FigureColumn, *, warned: bool) -> str:
    return (Tone.NEEDS_YOU if column.warns and warned else Tone.QUIET).value


def _cut(text: str, longest: int) -> str:
    return f"{text[: longest - 1]}…" if longest and len(text) > longest else text
