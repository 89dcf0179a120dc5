"""`PHOENIX_GGUF=FILE`: the user's own model file, as local/<file stem>."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

VARIABLE = "PHOENIX_GGUF"


def own_file(environment: Mapping[str, str]) -> Path | None:
    """The file the user names, whether it exists or not; None when none is named."""
    value = environment.get(VARIABLE, "").strip()
    return Path(value).expanduser().absolute() if value else None
