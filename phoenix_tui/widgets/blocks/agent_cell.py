"""The call that started sub-agents, once they have ended: a row for each, instead of the model's text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from engine.machine.states import AgentStatus
from phoenix_tui.markdown.lines import MARGIN, QUIET, Span, StyledLine, TextStyle, TextTone, cells, spans_width
from phoenix_tui.markdown.wrap import ellipsize
from phoenix_tui.text.agent_text import end_words, is_good
from phoenix_tui.widgets.blocks.rows import column, duration_text
from phoenix_tui.widgets.blocks.tool_view import ToolView
from tools.clean import clean_line
from tools.contract import AgentEnd, AgentsDisplay
from tools.wording import counted

SPAWN_TASK: Final = "spawn_task"
_STARTED: Final = r"^(\S+) started$"
_COMPLETION: Final = r"\[SYSTEM\] Child task (\S+) has (completed successfully|failed: (.*))\.$"
"""The texts of engine/machine/agent_texts.py, which are byte-stable; compiled with the first of them."""
NAME_SHARE: Final = 45
"""Share of names in a hundred cells of a row; larger where the words beside them leave room."""
WIDE: Final = 60
"""Cells of a row from which it says how much was used."""
MARKS: Final = {
    AgentStatus.SUCCESS.value: Span("✓ ", TextStyle(TextTone.GOOD)),
    AgentStatus.CANCELLED.value: Span("■ ", QUIET),
}
"""Marks before a row; every other end is a failure."""
FAILED: Final = Span("✗ ", TextStyle(TextTone.BAD))


def came_back(view: ToolView) -> Sequence[AgentEnd]:
    """The sub-agents of a call that has ended, in its order; none where it was no such call or failed itself."""
    return view.display.agents if isinstance(view.display, AgentsDisplay) else ()


def agents_of(view: ToolView) -> Sequence[str]:
    """The ids of the sub-agents a call put to work, as far as its result names them."""
    started = re.match(_STARTED, view.text.strip()) if view.name == SPAWN_TASK else None
    return [started[1]] if started is not None else [one.id for one in came_back(view)]


def success_of(ends: Sequence[AgentEnd]) -> Span:
    """Good where all succeeded, bad where none did: a failure is never green."""
    good = sum(map(is_good, ends))
    if good == len(ends):
        return Span("✓", TextStyle(TextTone.GOOD))
    return Span("◇", QUIET) if good else Span("✗", TextStyle(TextTone.BAD))


def back_rows(ends: Sequence[AgentEnd], width: int) -> list[StyledLine]:
    """A row for each; a click opens its transcript."""
    room = column(width) - MARGIN - 4
    used = [_used(one) if room >= WIDE else "" for one in ends]
    right = max((len(text) + 2 for text in used if text), default=0)
    names = max((cells(clean_line(one.task)) for one in ends), default=0)
    words = max((cells(end_words(one.reason, one.text)) for one in ends), default=0)
    name_room = min(names, max((room - right) * NAME_SHARE // 100, room - right - words - 2))
    return [_row(one, text, name_room, width, right) for one, text in zip(ends, used, strict=True)]


def _row(one: AgentEnd, used: str, name_room: int, width: int, right: int) -> StyledLine:
    start = (Span(" " * (MARGIN + 2)), MARKS.get(one.status, FAILED), Span(ellipsize(clean_line(one.task), name_room)))
    gap = " " * max(name_room + MARGIN + 4 - spans_width(start), 0) + "  "
    room = max(column(width) - spans_width(start) - len(gap) - right, 0)
    words = Span(ellipsize(end_words(one.reason, one.text), room), QUIET)
    blank = " " * (room - spans_width((words,)) + right - len(used)) if used else ""
    spans = (*start, Span(gap), words, Span(f"{blank}{used}", QUIET))
    action = open_action(one.id)
    return StyledLine(tuple(span._replace(action=action) for span in spans), margin=MARGIN + 2)


def _used(one: AgentEnd) -> str:
    """Turns and time."""
    parts = [counted(one.turns, "turn")] if one.turns else []
    parts += [duration_text(one.seconds)] if one.seconds > 0 else []
    return " · ".join(parts)


def open_action(agent_id: str) -> str:
    """The click action that opens a sub-agent's transcript."""
    return f"screen.command({f'agents {agent_id}'!r})"


def completion_words(text: str) -> str:
    """Outcome of a background sub-agent, in one line; empty for any other text."""
    match = re.match(_COMPLETION, text.partition("\n")[0])
    if match is None:
        return ""
    _, _, said = text.partition(" from child:\n")
    return end_words(match[3] or "", said)
