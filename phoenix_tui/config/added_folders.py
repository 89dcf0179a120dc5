"""Further folders whose files are read and searched without a question, as rules."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from tools.clean import clean_line

READING: Final = ("Read", "Glob", "Grep")
_SIGNS: Final = re.compile(r"[*?\[\](){},\x00-\x1f]")
"""Signs that have a meaning in rules."""


def folder_rules(folder: str, cwd: Path) -> list[str]:
    """Rules that let files of a further folder be read and searched; `cwd` is where a relative one begins.

    Raises:
        ValueError: it is no folder, or its name would mean others too in a rule.
    """
    shown = clean_line(folder)[:200]
    try:
        real = (cwd / Path(folder).expanduser()).resolve(strict=True)
    except (OSError, RuntimeError, ValueError) as error:
        raise ValueError(f"the folder {shown} cannot be added: there is none") from error
    if not real.is_dir() or _SIGNS.search(str(real)):
        why = "its name has signs of a pattern" if real.is_dir() else "it is no folder"
        raise ValueError(f"the folder {shown} cannot be added: {why}")
    place = str(real).rstrip("/")
    return [f"{name}(/{place}{end})" for name in READING for end in ("", "/**")]
