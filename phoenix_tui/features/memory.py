"""The notes of the project in view and of the user: listed, read, deleted and brought back."""

from __future__ import annotations

import time
from collections.abc import Awaitable
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from msgspec import Struct

from engine.executor.requests import EngineError
from engine.memory.memory import USER, NoteRefused, NoteRow
from engine.records.runs import CallPurpose
from phoenix_tui.features.front_end import FrontEnd
from phoenix_tui.text.labels import tokens
from phoenix_tui.text.statistics_text import call_lines

if TYPE_CHECKING:
    from engine.api.engine import NotesApi

T = TypeVar("T")
BYTES_PER_TOKEN: Final = 4
NO_NOTES: Final = "There are no notes yet."
UNAVAILABLE: Final = "Notes are not available here."
NEW: Final = "\n"
"""Content of a new file: an editor opens it."""


class NoteScope(Struct, frozen=True):
    """Files of one scope under its heading."""

    heading: str
    rows: tuple[NoteRow, ...]


class Notes(Struct, frozen=True):
    """The notes that agents can find from the conversation in view, and the cost of writing some of them."""

    scopes: tuple[NoteScope, ...]
    cost: str
    """Calls for notes before summaries of this conversation; empty without any."""

    @property
    def rows(self) -> list[tuple[str, NoteRow]]:
        """Every file with the heading of its scope."""
        return [(scope.heading, row) for scope in self.scopes for row in scope.rows]


def notes_of(front: FrontEnd) -> NotesApi:
    """The notes; raises EngineError where there are none."""
    if front.services.notes is None:
        raise EngineError(UNAVAILABLE)
    return front.services.notes


async def notes_in_view(front: FrontEnd) -> Notes:
    """List the notes of the project in view and of the user. Raises EngineError, StorageError."""
    notes, conversation = notes_of(front), front.conversation
    cwd = conversation.record.cwd if conversation is not None else front.launch.cwd
    project = await said(notes.project(cwd))
    scopes = (
        NoteScope("This project", tuple(await said(notes.rows(project)))),
        NoteScope("Yours, in every project", tuple(await said(notes.rows(USER)))),
    )
    calls = await front.services.library.calls(conversation.id) if conversation is not None else ()
    return Notes(scopes, " ".join(call_lines([one for one in calls if one.purpose is CallPurpose.MEMORY])))


def describe_note(row: NoteRow) -> str:
    """Size of a note in tokens, estimated."""
    return f"~{tokens(max(row.size // BYTES_PER_TOKEN, 1))} tokens"


async def new_note(front: FrontEnd) -> Path:
    """Today's file of the user's own notes, made where it is missing. Raises EngineError."""
    notes, path = notes_of(front), f"{USER}/{time.strftime('%Y-%m-%d')}.md"
    try:
        await notes.put_back(path, NEW.encode())
    except FileExistsError:
        pass
    except OSError as error:
        raise EngineError(_sentence(error)) from error
    return await said(notes.place(path))


class NoteChanges:
    """Deletions since the list was opened. Each method returns its result in words, or raises EngineError."""

    def __init__(self, notes: NotesApi, way_back: str) -> None:
        self._notes = notes
        self._way_back = way_back
        """Keys that undo the last deletion, in words."""
        self._removed: list[tuple[NoteRow, bytes]] = []

    async def remove(self, row: NoteRow) -> str:
        """Delete a file."""
        self._removed.append((row, await said(self._notes.remove(row.path))))
        return f"{row.name} deleted; {self._way_back}."

    async def undo(self) -> str:
        """Bring the last deleted file back."""
        if not self._removed:
            return "There is nothing to undo."
        row, content = self._removed[-1]
        await said(self._notes.put_back(row.path, content))
        self._removed.pop()
        return f"{row.name} restored."


async def said(work: Awaitable[T]) -> T:
    """The result of a call of the notes; a failure is an EngineError with one sentence."""
    try:
        return await work
    except (NoteRefused, OSError) as error:
        raise EngineError(_sentence(error)) from error


def _sentence(error: Exception) -> str:
    if isinstance(error, FileExistsError):
        return "There is a new note of this name; it was not replaced."
    if isinstance(error, FileNotFoundError):
        return "This note no longer exists."
    return f"The note cannot be used: {error.strerror}." if isinstance(error, OSError) else str(error)
