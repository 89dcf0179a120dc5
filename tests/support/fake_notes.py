"""Notes of a test's own folder, as the screens see them: real files, without an index."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from engine.memory.memory import Memory, NoteFolder
from engine.ports.note_index import NoteFile, NoteHit, ReadNote


class NoIndex:
    """An index in which nothing is found."""

    async def list_known(self, scope: str) -> Mapping[str, NoteFile]:
        return {}

    async def update(self, scope: str, files: Sequence[ReadNote], gone: Sequence[str]) -> None:
        return

    async def search(self, words: Sequence[str], scopes: Sequence[str], limit: int) -> Sequence[NoteHit]:
        return ()

    async def flush_is_due(self, conversation_id: str) -> bool:
        return False

    async def mark_flushed(self, conversation_id: str) -> None:
        return


def notes_below(folder: Path) -> Memory:
    """Notes in the folder `memory`."""
    return Memory(NoteFolder(folder / "memory"), NoIndex())


async def some_notes(folder: Path, cwd: Path) -> Memory:
    """Two files of the project and one of the user."""
    notes = notes_below(folder)
    project = await notes.project(cwd)
    heading = "## 14:03 UTC, conversation relay-work\n"
    await notes.append(f"{project}/2026-11-23.md", f"{heading}The relay keeps its queue in SQLite, not in Redis.")
    await notes.append(f"{project}/2026-11-24.md", f"{heading}Tests run with `make test`; CI uses two workers.\n- x\n")
    await notes.append("user/2026-11-20.md", "I want short answers in English, and tabs.")
    return notes
