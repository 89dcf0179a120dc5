"""Lines of a program's stderr for a log, and the one that most likely says why it ended."""

from __future__ import annotations

from typing import Final

from tools.clean import clean_line
from tools.contract import Captured

MOST_LINES: Final = 20
LONGEST: Final = 200


def stderr_lines(captured: Captured) -> list[str]:
    """The last lines, cleaned."""
    return [f"stderr: {clean_line(line)}" for line in _lines(captured)[-MOST_LINES:] if line.strip()]


def error_line(captured: Captured) -> str:
    """The last line that names an error, else the last one; empty where there is none."""
    lines = _lines(captured)
    named = [line for line in lines[-MOST_LINES:] if "error" in line.lower()]
    return clean_line((named or lines)[-1])[:LONGEST] if lines else ""


def _lines(captured: Captured) -> list[str]:
    return (captured.head + captured.tail).decode("utf-8", "replace").strip().splitlines()
