"""Rows below a diff about what language servers found: new errors in red, all else in one quiet row each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from phoenix_tui.markdown.lines import MARGIN, PLAIN, QUIET, Span, StyledLine, TextStyle, TextTone
from phoenix_tui.widgets.blocks.rows import barred, barred_whole, row
from tools.clean import clean_line
from tools.edit_checks import CodeProblem, EditCheck, check_row, problem_text
from tools.wording import counted

FOLDED: Final = 3
"""Problems that a closed diff shows."""
_BAD: Final = TextStyle(TextTone.BAD)
_FAILED: Final = Span("✗", _BAD)
_PASSED: Final = Span("✓", QUIET)
_NOTED: Final = Span("·", QUIET)


def check_rows(checks: Sequence[EditCheck], width: int, *, is_open: bool, action: str = "") -> Iterator[StyledLine]:
    """All checks of one edit; servers that found nothing new share a row."""
    for check in checks:
        if check.errors:
            yield row(_FAILED, "", clean_line(check_row(check)), "", width, action=action, look=_BAD)
            yield from _problems(check, width, is_open=is_open)
    passed = [check for check in checks if not check.errors and not check.note]
    if passed:
        yield row(_PASSED, "", _together(passed), "", width, action=action, look=QUIET)
    for check in checks:
        if check.note and not check.errors:
            yield row(_NOTED, "", clean_line(check_row(check)), "", width, action=action, look=QUIET)


def _problems(check: EditCheck, width: int, *, is_open: bool) -> Iterator[StyledLine]:
    shown = check.problems if is_open else check.problems[:FOLDED]
    for problem in shown:
        text = _text(problem)
        yield from barred_whole(text, width) if is_open else barred((text,), width, PLAIN)
    if (hidden := check.errors - len(shown)) > 0:
        yield StyledLine((Span(" " * MARGIN), Span(f"  … +{counted(hidden, 'error')}", QUIET)))


def _text(problem: CodeProblem) -> str:
    return clean_line(problem_text(problem))


def _together(checks: Sequence[EditCheck]) -> str:
    """`pyright, ruff: no new errors`, with the warnings of all."""
    if len(checks) == 1:
        return clean_line(check_row(checks[0]))
    names = ", ".join(dict.fromkeys(clean_line(check.server) for check in checks))
    warnings = sum(check.warnings for check in checks)
    return f"{names}: no new errors" + (f", {counted(warnings, 'new warning')}" if warnings else "")
