"""A sub-agent as one row: state, task, what it does now, and what it has used of what it may use (LOOK.md 7)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from msgspec import Struct
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
from phoenix_tui.labels import (
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
    money,
    tokens,
)
from tools.clean import clean_line

WAITING: Final = Glyph("·", ".", Tone.QUIET)
SILENT_FROM: Final = 20.0
"""Seconds without output from which a row says so."""
GAP: Final = "  "
LEAST_NAME: Final = 8
LEAST_WORDS: Final = 14
"""Cells that what it does now keeps before a column goes."""


class Column(Struct, frozen=True):
    """A figure at the right: its words, the width of a row from which it is shown, and whether it is cut from left."""

    words: Callable[[AgentView, float], str]
    from_width: int


def _turn(view: AgentView, _: float) -> str:
    return f"{view.turn}/{view.max_turns}" if view.turn else ""


def _time(view: AgentView, now: float) -> str:
    return clock(elapsed(view, now)) if view.started else ""


def _time_of(view: AgentView, now: float) -> str:
    words = _time(view, now)
    if not words or not view.timeout or view.outcome is not None:
        return words
    return f"{words} / {clock(view.timeout).removesuffix(' 0 s')}"


def _turn_words(view: AgentView, now: float) -> str:
    turn = _turn(view, now)
    return f"turn {turn}" if turn else ""


def _tokens(view: AgentView, _: float) -> str:
    return tokens(view.tokens) if view.tokens else ""


def _cost(view: AgentView, _: float) -> str:
    return money(view.cost_usd)


NARROW: Final = (Column(_turn, 0), Column(_time, 0), Column(_tokens, 72), Column(_cost, 84))
WIDE: Final = (Column(_turn_words, 0), Column(_time_of, 0), Column(_tokens, 0), Column(_cost, 0))
WIDE_FROM: Final = 100
"""Cells of a row from which words and deadlines are spelt out, and the profile is shown."""


def elapsed(view: AgentView, now: float) -> float:
    """Seconds it has worked; `now` is wall clock."""
    return max((view.ended or now) - view.started, 0.0) if view.started else 0.0


def glyph_of(view: AgentView) -> Glyph:
    """Its state as a sign."""
    if view.outcome is not None:
        return _END_GLYPHS[view.outcome.status]
    if view.waits:
        return WAITING
    return ASKING if isinstance(view.state, AwaitingApproval) else AGENTS


_END_GLYPHS: Final = {
    AgentStatus.SUCCESS: DONE,
    AgentStatus.FAILURE: FAILED,
    AgentStatus.TIMEOUT: FAILED,
    AgentStatus.CANCELLED: STOPPED,
}


def ending_words(outcome: AgentOutcome) -> str:
    """The first line of a result, or why there is none."""
    if outcome.status is AgentStatus.SUCCESS:
        return first_line(outcome.text) or "done"
    reason = first_line(outcome.reason) or outcome.status.value
    return f"{reason} (partial kept)" if outcome.text else reason


def first_line(text: str) -> str:
    """The first line that says something, cleaned."""
    return clean_line(next((line.strip() for line in text.splitlines() if line.strip()), ""))


def doing(view: AgentView, now: float, *, plain: bool) -> Content:
    """What it does this moment, in words."""
    if view.outcome is not None:
        return Content(ending_words(view.outcome))
    if view.waits:
        return Content.styled("waiting to start", Tone.QUIET.value)
    sign, words, tone = _moment(view)
    shown = Content.assemble((f"{sign.mark(plain)} ", sign.tone.value) if sign else "", (words, tone))
    silent = now - view.last_output
    if view.last_output and silent >= SILENT_FROM and not isinstance(view.state, AwaitingApproval):
        quiet = Content.styled(f"silent {clock(silent)} · ", Tone.NEEDS_YOU.value)
        return Content.assemble(quiet, shown)
    return shown


def _moment(view: AgentView) -> tuple[Glyph | None, str, str]:
    match view.state:
        case AwaitingApproval(round=tool_round):
            return None, f"asks you: {clean_line(view.activity or tool_round.current.name)}", Tone.NEEDS_YOU.value
        case ToolExecuting(round=tool_round):
            return RUNNING, clean_line(view.activity or tool_round.current.name), ""
        case AwaitingLlm(phase=RetryWait(cause=cause)):
            return RETRYING, f"retrying: {clean_line(cause)}", ""
        case AwaitingLlm(phase=CompactingContext()):
            return THINKING, "compacting", Tone.QUIET.value
        case Cancelling():
            return None, "stopping", Tone.QUIET.value
        case _:
            return THINKING, "writing" if view.writing else "thinking", Tone.QUIET.value


def agent_rows(views: Sequence[AgentView], width: int, now: float, *, plain: bool) -> list[Content]:
    """One row each, their columns aligned over all of them; `now` is wall clock."""
    wide = width >= WIDE_FROM
    columns = [column for column in (WIDE if wide else NARROW) if width >= column.from_width]
    figures = [[column.words(view, now) for column in columns] for view in views]
    widths = [max(len(row[place]) for row in figures) for place in range(len(columns))]
    kinds = [clean_line(view.profile) if wide else "" for view in views]
    kind = min(max((len(one) for one in kinds), default=0), 12)
    right = sum(cells + len(GAP) for cells in widths if cells) + (kind + len(GAP) if kind else 0)
    names = [Content(clean_line(" ".join(view.task.split()))) for view in views]
    room = max(width - 2 - right - len(GAP), LEAST_NAME + LEAST_WORDS)
    longest = max((name.cell_length for name in names), default=0)
    name_room = max(min(longest, room * 45 // 100), LEAST_NAME)
    rows: list[Content] = []
    for view, name, profile, row in zip(views, names, kinds, figures, strict=True):
        glyph = glyph_of(view)
        ended = Tone.QUIET.value if view.outcome is not None or view.waits else ""
        name_style = "" if view.waits else "bold"
        words = doing(view, now, plain=plain)
        parts: list[Content] = [
            Content.styled(f"{glyph.mark(plain)} ", glyph.tone.value),
            name.truncate(name_room, ellipsis=True, pad=True).stylize(name_style),
            Content(GAP),
            words.truncate(max(room - name_room, 1), ellipsis=True, pad=True).stylize_before(ended),
        ]
        if kind:
            parts.append(Content.styled(f"{GAP}{profile[:kind]:<{kind}}", Tone.QUIET.value))
        figures_text = "".join(f"{GAP}{text:>{cells}}" for text, cells in zip(row, widths, strict=True) if cells)
        parts.append(Content.styled(figures_text, Tone.QUIET.value))
        rows.append(Content("").join(parts).truncate(width, ellipsis=True))
    return rows
