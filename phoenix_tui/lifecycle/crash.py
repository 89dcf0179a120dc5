"""Reports of crashes, the conversation that was open, and the ones whose opening hung.

Each Phoenix holds a lock on a file of its own; a file whose lock is free belongs to one that died. The next start
offers the conversation that it had open, and draws plainly what hung while it was opened.
"""

from __future__ import annotations

import fcntl
import os
import platform
import re
import sys
import time
import traceback
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from phoenix_tui.cli.names import VERSION
from tools.files.own_files import look_at_lock, make_folder, open_file

KEPT: Final = 50
"""Reports in the folder at most; the oldest are removed."""


class CrashReports(Struct, frozen=True):
    """Reports of crashes in a private folder, without these secrets."""

    folder: Path
    secrets: Sequence[str] = ()

    def write(self, error: BaseException) -> str:
        """Write where it happened, without the values of any variable; returns the path, or why there is none."""
        # Only in a crash: the log's own modules load after the first frame.
        from phoenix_tui.cli.logs import redact_keys  # noqa: PLC0415 - as above
        from tools.files.own_files import write_file  # noqa: PLC0415 - as above

        path = self.folder / f"crash-{time.strftime('%Y%m%dT%H%M%S')}-{time.time_ns() // 1000 % 10**6:06}.txt"
        head = f"Phoenix {VERSION}, Python {platform.python_version()}, {sys.platform}\n\n"
        try:
            write_file(path, head + redact_keys("".join(traceback.format_exception(error)), self.secrets))
            for old in sorted(self.folder.glob("crash-*.txt"))[:-KEPT]:
                old.unlink(missing_ok=True)
        except OSError as trouble:
            return f"no report could be written ({trouble.strerror})"
        return str(path)


def crash_note(error: BaseException, report: str, resume: str) -> str:
    """Sentence printed after the screen is gone."""
    way_back = f"; `{resume}` continues" if resume else ""
    return f"phoenix: Internal error ({type(error).__name__}). Report: {report}{way_back}."


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
            if self._descriptor < 0:
                make_folder(self._path.parent)
                self._descriptor = open_file(self._path, os.O_RDWR)
                fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.ftruncate(self._descriptor, 0)
            os.pwrite(self._descriptor, content, 0)
        except OSError:
            self._drop()

    def _drop(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def clear(self) -> None:
        """Phoenix is left properly."""
        if self._descriptor >= 0:
            self._path.unlink(missing_ok=True)
            self._drop()


def find_left_open(folder: Path, working_dir: Path) -> Open:
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


HUNG_AFTER: Final = 10.0
"""Seconds after which a living process that still opens a conversation hangs."""
FRAMES: Final = 1.0
"""Seconds after the first frame until the note goes: colouring and laying out begin behind it."""
PLAIN_FROM: Final = 2
"""Openings that never ended, from which on a conversation is drawn plainly."""
CLOSED_FROM: Final = 4
"""Openings that never ended, from which on a start opens it no more by itself: drawing it plainly did not help."""
_NAME: Final = re.compile(r"[0-9A-Za-z_-]{1,64}")


class OpeningNotes:
    """Notes of this process."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self._held: dict[str, tuple[Path, int]] = {}

    def begin(self, conversation_id: str) -> None:
        """Note that this conversation is being opened. A disk that accepts nothing is ignored."""
        if self._folder is None or conversation_id in self._held or not _NAME.fullmatch(conversation_id):
            return
        path = self._folder / f"{conversation_id}.{os.urandom(16).hex()}"
        try:
            make_folder(self._folder)
            descriptor = open_file(path, os.O_RDWR)
        except OSError:
            return
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        self._held[conversation_id] = path, descriptor

    def end(self, conversation_id: str, *, drawn: bool = False) -> None:
        """Remove the note of this process; those of dead ones too once the conversation was `drawn` fully."""
        gone = self._hung(conversation_id) if drawn else []
        if conversation_id in self._held:
            path, descriptor = self._held.pop(conversation_id)
            gone.append(path)
            os.close(descriptor)
        for note in gone:
            with suppress(OSError):
                note.unlink(missing_ok=True)

    def leave(self) -> None:
        """Phoenix is left properly."""
        for conversation_id in tuple(self._held):
            self.end(conversation_id)

    def count(self, conversation_id: str) -> int:
        """Openings of this conversation that ended with their process, or hang in one."""
        return len(self._hung(conversation_id))

    def _hung(self, conversation_id: str) -> list[Path]:
        if self._folder is None or not _NAME.fullmatch(conversation_id):
            return []
        own = self._held.get(conversation_id)
        notes = self._folder.glob(f"{conversation_id}.*")
        return [path for path in notes if (own is None or path != own[0]) and _is_hung(path)]


def _is_hung(path: Path) -> bool:
    try:
        with look_at_lock(path) as (descriptor, has_died):
            return has_died or time.time() - os.fstat(descriptor).st_mtime > HUNG_AFTER
    except OSError:
        return False
