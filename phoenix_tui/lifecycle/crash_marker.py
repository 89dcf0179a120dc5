"""Open conversation, kept on disk until Phoenix is left properly: after a crash, or where a lost terminal or a signal
interrupted its run, the next start offers it.

Each Phoenix holds a lock on a file of its own; a file whose lock is free belongs to one that died.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from tools.files.own_files import look_at_lock, make_folder, open_file

MOST_MARKS: Final = 20
"""Files looked at; a folder with more has lost track."""


class Open(Struct, frozen=True):
    """A conversation, and the folder Phoenix was started in."""

    conversation_id: str
    folder: str
    interrupted: bool = False
    """Phoenix ended in order, and interrupted its run; False after a crash."""


NOTHING: Final = Open("", "")


class OpenMark:
    """The mark of this process."""

    def __init__(self, folder: Path, working_dir: Path) -> None:
        self._path = folder / f"{os.getpid()}.json"
        self._working_dir = working_dir
        self._descriptor = -1
        self._shown = ""

    def show(self, conversation_id: str) -> None:
        """Mark this conversation as open; costs nothing while it stays. A disk that accepts nothing is ignored."""
        if conversation_id == self._shown:
            return
        self._shown = conversation_id
        self._write(Open(conversation_id, str(self._working_dir)))

    def keep(self) -> None:
        """Leave the mark behind: Phoenix ends and interrupts the run of this conversation."""
        self._write(Open(self._shown, str(self._working_dir), interrupted=True))
        self._drop()

    def _write(self, mark: Open) -> None:
        content = msgspec.json.encode(mark)
        try:
            self._take()
            os.ftruncate(self._descriptor, 0)
            os.pwrite(self._descriptor, content, 0)
        except OSError:
            self._drop()

    def _take(self) -> None:
        if self._descriptor < 0:
            make_folder(self._path.parent)
            self._descriptor = open_file(self._path, os.O_RDWR)
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def _drop(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def clear(self) -> None:
        """Phoenix is left properly."""
        if self._descriptor >= 0:
            self._path.unlink(missing_ok=True)
            self._drop()


def left_open(folder: Path, working_dir: Path) -> Open:
    """The conversation that an ended Phoenix had open here, or `NOTHING`; marks of dead processes are removed."""
    try:
        marks = sorted(folder.glob("*.json"), key=lambda path: path.stat().st_mtime)[-MOST_MARKS:]
    except OSError:
        return NOTHING
    found = [mark for path in marks if (mark := _of_the_dead(path)) is not None]
    here = [mark for mark in found if mark.folder == str(working_dir) and mark.conversation_id]
    return here[-1] if here else NOTHING


def _of_the_dead(path: Path) -> Open | None:
    """The mark of a Phoenix that died, which is removed by this; None while its owner lives."""
    try:
        with look_at_lock(path) as (descriptor, has_died):
            if not has_died:
                return None
            content = os.read(descriptor, 65_536)
            path.unlink(missing_ok=True)
        return msgspec.json.decode(content, type=Open)
    except (OSError, msgspec.DecodeError):
        return None
