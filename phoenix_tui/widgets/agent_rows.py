"""A sub-agent as one row or two: state, task, current activity, usage and limits (docs/decisions/looks.md)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from textual.content import Content

from engine.machine.states import (
    AgentOutcome,
    AgentStatus,
    AwaitingApproval,
    AwaitingLlm,
    Cancelling,
    CompactingContext,
    RetryWait,
    ToolExecuting,
)
from engine.updates import AgentView
from phoenix_tui.text.agent_text import first_line
from phoenix_tui.text.labels import (
    AGENTS,
    ASKING,
    DONE,
    FAILED,
    RETRYING,
    RUNNING,
    STOPPED,
    THINKING,
    Glyph,
    Tone,
    clock,
)
from phoenix_tui.widgets import agent_figures
from phoenix_tui.widgets.agent_figures import GAP, SILENT_FROM, FigureColumn, figures, silence
from tools.call_titles import tool_label
from tools.clean import clean_line
from tools.wording import one_line

WAITING: Final = Glyph("·", ".", Tone.QUIET)
LEAST_NAME: Final = 8
LEAST_WORDS: Final = 14
"""Cells kept for the activity."""
NAME_SHARE: Final = 45
"""Share of the task in a hundred cells of task and activity."""
SIGN: Final = 2
"""Cells of the sign before a row."""
BY_WIDTH: Final[tuple[tuple[int, tuple[FigureColumn, ...]], ...]] = (
    (132, agent_figures.WORDY),
    (112, agent_figures.FULL),
    (84, agent_figures.MIDDLE),
    (72, agent_figures.SHORT),
    (0, agent_figures.NARROW),
)
"""The columns of one row, by the cells from which there is room for them."""
WHOLE_FROM: Final = 112
"""Cells from which one row says everything, cut short where it must be."""
ONE_FROM: Final = 132
"""Cells from which one row has room for all of it, so that none takes two."""
TWO_FROM: Final = 72
"""Cells from which two rows do."""


def glyph_of(view: AgentView) -> Glyph:
    """Sign of its state."""
    if view.outcome is not None:
        return END_GLYPHS[view.outcome.status]
    if view.waits:
        return WAITING
    return ASKING if isinstance(view.state, AwaitingApproval) else AGENTS


END_GLYPHS: Final = {
    AgentStatus.SUCCESS: DONE,
    AgentStatus.FAILURE: FAILED,
    AgentStatus.TIMEOUT: FAILED,
    AgentStatus.CANCELLED: STOPPED,
}


def outcome_text(outcome: AgentOutcome) -> str:
    """The first line of a result, or why there is none."""
    if outcome.status is AgentStatus.SUCCESS:
        return first_line(outcome.text) or "done"
    reason = first_line(outcome.reason) or outcome.status.value
    return f"{reason} (partial kept)" if outcome.text else reason


def doing(view: AgentView, *, plain: bool) -> Content:
    """Current action, in words."""
    if view.outcome is not None:
        return Content(outcome_text(view.outcome))
    if view.waits:
        return Content.styled("waiting to start", Tone.QUIET.value)
    sign, words, tone = _activity(view)
    return Content.assemble((f"{sign.mark(plain)} ", sign.tone.value) if sign else "", (words, tone))


def _activity(view: AgentView) -> tuple[Glyph | None, str, str]:
    match view.state:
        case AwaitingApproval(round=tool_round):
            return (
                None,
                f"asks: {clean_line(view.activity or tool_label(tool_round.current.name))}",
                Tone.NEEDS_YOU.value,
            )
        case ToolExecuting(round=tool_round):
            return RUNNING, clean_line(view.activity or tool_label(tool_round.current.name)), ""
        case AwaitingLlm(phase=RetryWait(cause=cause)):
            return RETRYING, f"retrying: {clean_line(cause)}", ""
        case AwaitingLlm(phase=CompactingContext()):
            return THINKING, "compacting", Tone.QUIET.value
        case Cancelling():
            return None, "stopping", Tone.QUIET.value
        case _:
            return THINKING, "writing" if view.writing else "thinking", Tone.QUIET.value


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
    upper, lower = (figures(views, columns, now) for columns in (agent_figures.UPPER, agent_figures.LOWER))
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
    words = doing(view, plain=plain)
    if view.outcome is not None:
        return words.stylize_before(Tone.QUIET.value)
    silent = silence(view, now)
    if not warns or silent < SILENT_FROM:
        return words
    return Content.assemble((f"silent {clock(silent)} · ", Tone.NEEDS_YOU.value), words)


def _longest(texts: Sequence[Content]) -> int:
    return max((text.cell_length for text in texts), default=0)
