"""Light or dark: the terminal is queried for its background (OSC 11), and its answer kept for the next start."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path
from typing import Final

from tools.files.own_files import read_file, write_file

QUESTION: Final = "\x1b]11;?\x1b\\"
LIGHT_FROM: Final = 0.5
"""Relative luminance of a background that counts as light."""
WEIGHTS: Final = (0.2126, 0.7152, 0.0722)
FILE: Final = "background.txt"
MOST_BYTES: Final = 64
_ANSWER: Final = re.compile(r"11;rgba?:([0-9a-fA-F]{1,4})/([0-9a-fA-F]{1,4})/([0-9a-fA-F]{1,4})")


def is_light(reply: str) -> bool | None:
    """True for a light background; None when the reply is about something else."""
    found = _ANSWER.search(reply)
    if found is None:
        return None
    shares = [int(part, 16) / int("f" * len(part), 16) for part in found.groups()]
    return sum(weight * share for weight, share in zip(WEIGHTS, shares, strict=True)) > LIGHT_FROM


def recall_light(state_folder: Path) -> bool:
    """True when the terminal reported a light background last time, so that the first frame keeps its colours."""
    try:
        return read_file(state_folder / FILE, MOST_BYTES).strip() == b"light"
    except OSError:
        return False


def remember(state_folder: Path, *, light: bool) -> None:
    """Keep it, where it is news; a folder that cannot be written forgets."""
    if recall_light(state_folder) is not light:
        with suppress(OSError):
            write_file(state_folder / FILE, "light\n" if light else "dark\n")
