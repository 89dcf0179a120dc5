"""The rows of a supervisor's card, and its agents as text to edit."""

from __future__ import annotations

from typing import Final

from msgspec import Struct
from textual.content import Content

from engine.machine.effects import Strategy
from engine.records import RunPriority
from engine.routes import RouteAgent, RouteCard
from phoenix_tui.keys.active_keys import key
from phoenix_tui.text.labels import AGENTS, Tone
from phoenix_tui.text.route_text import strategy_words
from phoenix_tui.widgets.flowing import hanging
from phoenix_tui.widgets.row_choice import first_visible
from tools.clean import clean, clean_line

MOST_AGENTS: Final = 5
"""Agents in sight at once; the arrows bring the others."""
ROWS_EACH: Final = 2
"""Rows of a task at the most; e shows all of it."""
LONGEST: Final = 1_000
"""Characters of a task or a reason that are looked at for its rows."""
KEYS: Final = (("route_start", "starts now"), ("route_alone", "main model alone"), ("route_edit", "edits"))
CHOOSE: Final = ("older", "selects")
DROP: Final = ("route_drop", "removes")
MARK: Final = "## "
"""Begins an agent in the text that is edited."""


class Shown(Struct, frozen=True):
    """Visible state of a card."""

    card: RouteCard
    agents: tuple[RouteAgent, ...]
    """Remaining agents of the decision."""
    countdown: str
    chosen: int = -1
    """The place that the keys mean; -1 while the card has none."""
    first: int = 0
    """About which place is looked at."""
    small: bool = False
    """One row for each, and fewer of them."""
    plain: bool = False


def countdown(card: RouteCard | None, now: float) -> str:
    """Words for the automatic start of a decision; `now` is monotonic."""
    if card is None:
        return ""
    return f"starts in {max(int(card.starts_at - now) + 1, 0)} s" if card.starts_at else "needs your decision"


def card_rows(shown: Shown, width: int) -> list[Content]:
    """Strategy and countdown, the agents, the reasons, the keys."""
    route = shown.card.route
    rows = [_spread(_heading(shown), Content.styled(shown.countdown, Tone.NEEDS_YOU.value), width)]
    rows += _agent_rows(shown, width)
    if route.reasoning:
        reason = Content.styled(f"why: {clean_line(route.reasoning)[:LONGEST]}", Tone.QUIET.value)
        rows += _cut(hanging(reason, 0, width), _rows_each(shown), width)
    rows.append(_keys((*KEYS, CHOOSE if shown.chosen < 0 else DROP), width))
    return rows


def _heading(shown: Shown) -> Content:
    route, count = shown.card.route, len(shown.agents)
    strategy = Strategy.DELEGATE if count == 1 else route.strategy
    return Content.assemble(
        (f"{AGENTS.mark(shown.plain)} ", AGENTS.tone.value),
        (strategy_words(strategy, count), "bold"),
        (f" · {route.confidence:.0%} sure", Tone.QUIET.value),
    )


def _rows_each(shown: Shown) -> int:
    return 1 if shown.small else ROWS_EACH


def _agent_rows(shown: Shown, width: int) -> list[Content]:
    most = MOST_AGENTS - 2 if shown.small else MOST_AGENTS
    first = first_visible(shown.first, len(shown.agents), most)
    seen = shown.agents[first : first + most]
    rows = [row for place, agent in enumerate(seen, first) for row in _agent_row(shown, place, agent, width)]
    if more := len(shown.agents) - len(seen):
        rows.append(Content.styled(f"  +{more} more", Tone.QUIET.value))
    return rows


def _agent_row(shown: Shown, place: int, agent: RouteAgent, width: int) -> list[Content]:
    number = f"{place + 1:>{len(str(len(shown.agents)))}} "
    line = Content.assemble(
        (number, Tone.QUIET.value),
        (clean_line(agent.profile), Tone.YOU.value),
        (_name(agent).removeprefix(clean_line(agent.profile)), Tone.QUIET.value),
        f"  {clean_line(agent.task[:LONGEST])}",
    )
    rows = _cut(hanging(line, len(number), width), _rows_each(shown), width)
    return [Content.styled(row.plain, "reverse") for row in rows] if place == shown.chosen else rows


def as_text(agents: tuple[RouteAgent, ...]) -> str:
    """The agents of a decision as text to edit."""
    return "\n\n".join(f"{MARK}{_name(agent)}\n{clean(agent.task)}" for agent in agents)


def _name(agent: RouteAgent) -> str:
    normal = agent.priority is RunPriority.NORMAL
    return clean_line(agent.profile) if normal else f"{clean_line(agent.profile)} ({agent.priority.value})"


def _agent_of(name: str, task: str) -> RouteAgent:
    """Parse the text behind the mark: a profile, and perhaps the priority of its task."""
    profile, _, word = name.removesuffix(")").partition(" (")
    return RouteAgent(profile.strip(), task, RunPriority(word) if word in set(RunPriority) else RunPriority.NORMAL)


def from_text(text: str) -> tuple[RouteAgent, ...]:
    """Agents that the edited text names; one without a task is left out."""
    found: list[tuple[str, list[str]]] = []
    for line in text.splitlines():
        if line.startswith(MARK.strip() + " "):
            found.append((line.removeprefix(MARK).strip(), []))
        elif found:
            found[-1][1].append(line)
    agents = [_agent_of(name, "\n".join(lines).strip()) for name, lines in found]
    return tuple(agent for agent in agents if agent.profile and agent.task)


def _spread(left: Content, right: Content, width: int) -> Content:
    gap = width - left.cell_length - right.cell_length
    if gap < 1:
        left = left.truncate(max(width - right.cell_length - 1, 1), ellipsis=True)
        gap = max(width - left.cell_length - right.cell_length, 0)
    return Content.assemble(left, " " * gap, right)


def _cut(rows: list[Content], most: int, width: int) -> list[Content]:
    """Cut to `most` rows; the last one shows that there is more."""
    if len(rows) <= most:
        return rows
    last = Content.assemble(rows[most - 1].rstrip(), " …")
    return [
        *rows[: most - 1],
        last if last.cell_length <= width else rows[most - 1].truncate(width - 2) + Content(" …"),
    ]


def _keys(words: tuple[tuple[str, str], ...], width: int) -> Content:
    """Draw as many of the keys as fit."""
    row = Content("")
    for name, meaning in words:
        if not (letter := key(name)):
            continue
        more = Content.assemble(row, "   " if row.plain else "", (letter, "bold"), (f" {meaning}", Tone.QUIET.value))
        if more.cell_length > width:
            break
        row = more
    return row
