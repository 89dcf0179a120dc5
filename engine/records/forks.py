"""The folder of a copy that does not stay in the one of its source."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct


class ForkPlace(Struct, frozen=True):
    """Working directory of a copy, other than that of its source."""

    cwd: Path
    note: str = ""
    """Paragraph for the model about it, behind the appended system prompt."""
