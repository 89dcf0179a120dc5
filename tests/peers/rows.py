"""Rows of the tables that the runs with counterparts print."""

from __future__ import annotations

import sys
from dataclasses import dataclass

SHOWN = 160
"""Characters of a cell."""


@dataclass(frozen=True, slots=True)
class Row:
    """Action, result, and deviation from the expectation."""

    what: str
    showed: str
    fault: str = ""
    remark: str = ""
    """Known gap of the counterpart for every client."""


def judged(what: str, showed: str, is_right: bool) -> Row:
    """A row whose cells say enough of its fault."""
    return Row(what, showed, "" if is_right else "otherwise")


def heading(*columns: str) -> None:
    """The head of a table; the last column is the judgement."""
    _say((*columns, "judgement"))
    _say(("---",) * (len(columns) + 1))


def told(row: Row, *ahead: str) -> int:
    """Print a row behind the cells `ahead`; 1 where it is not as it must be."""
    showed = " ".join(row.showed.split())[:SHOWN].replace("|", "/")
    _say((*ahead, row.what, showed, row.remark or row.fault or "ok"))
    return int(bool(row.fault) and not row.remark)


def _say(cells: tuple[str, ...]) -> None:
    sys.stdout.write("| " + " | ".join(cells) + " |\n")
    sys.stdout.flush()
