"""Memory, by folder, of the conversations that were side by side when Phoenix was left."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from tools.files.own_files import read_file, write_file

FILE: Final = "panes.json"
MOST_BYTES: Final = 1024 * 1024
"""Bytes of the file; 200 folders take 60 kB."""
MOST_FOLDERS: Final = 200
"""Folders that are remembered; the one used longest ago goes first."""


class Panes(Struct, frozen=True):
    """Conversation ids from left to right, and which of them had the focus."""

    ids: tuple[str, ...] = ()
    focus: int = 0


def recall(state_folder: Path, cwd: Path) -> Panes:
    """The panes of a folder; none where nothing is remembered or the file is invalid."""
    return _read(state_folder).get(str(cwd), Panes())


def remember(state_folder: Path, cwd: Path, panes: Panes) -> None:
    """Remember the panes of a folder; fewer than two are forgotten.

    Raises:
        OSError: it cannot be written.
    """
    kept = _read(state_folder)
    before = kept.pop(str(cwd), Panes())
    if len(panes.ids) > 1:
        kept[str(cwd)] = panes
    elif not before.ids:
        return
    newest = dict(list(kept.items())[-MOST_FOLDERS:])
    write_file(state_folder / FILE, msgspec.json.encode(newest).decode())


def _read(state_folder: Path) -> dict[str, Panes]:
    try:
        return msgspec.json.decode(read_file(state_folder / FILE, MOST_BYTES), type=dict[str, Panes])
    except (OSError, msgspec.DecodeError):
        return {}
