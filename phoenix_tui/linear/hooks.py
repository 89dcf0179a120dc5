"""Hooks in lines: listed, read, tried out."""

from __future__ import annotations

from typing import Final

from phoenix_tui.features.hooks import hooks
from phoenix_tui.linear.context import LineCommand

RUNS: Final[dict[str, LineCommand]] = {"hooks": hooks}
