"""Conversations that are being opened, each with a note on disk until its first frames stand: notes of processes that
ended before tell that drawing it hung.

Each note is a file of its own with a lock; one whose lock is free belongs to a process that died.
"""

from __future__ import annotations

import fcntl
import os
import re
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

from tools.files.own_files import look_at_lock, make_folder, open_file

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
