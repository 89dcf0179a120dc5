"""The notes of the project in view and of the user: listed, read, deleted and brought back."""

from __future__ import annotations

import time
from collections.abc import Awaitable
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

from engine.executor.requests import EngineError
from engine.memory.memory import USER, NoteRefused, NoteRow
from engine.records.runs import CallPurpose
from phoenix_tui.features.front_end import TAKE, FrontEnd, ListPage, PageAction, PageRow
from phoenix_tui.features.trust import folder_in_view
from phoenix_tui.text.labels import tokens
from phoenix_tui.text.statistics_text import call_lines
from tools.clean import clean, clean_line

if TYPE_CHECKING:
    from engine.memory.memory import Memory

T = TypeVar("T")
BYTES_PER_TOKEN: Final = 4
UNAVAILABLE: Final = "Notes are not available here."
NEW: Final = "\n"
"""Content of a new file: an editor opens it."""


def notes_of(front: FrontEnd) -> Memory:
    """The notes; raises EngineError where there are none."""
    if front.services.notes is None:
        raise EngineError(UNAVAILABLE)
    return front.services.notes


async def show_notes(front: FrontEnd, argument: str) -> None:
    """Show the notes of the project in view and of the user. Raises EngineError, StorageError."""
    await front.show(NotesPage(front).read, argument)


class NotesPage:
    """Notes that agents can find from the conversation in view: read, edited, added, deleted and restored."""

    def __init__(self, front: FrontEnd) -> None:
        self._front = front
        self._notes = notes_of(front)
        self._undo_steps = front.undo_steps

    async def read(self) -> ListPage:
        """List them, with the cost of calls for notes before summaries of this conversation."""
        notes, conversation = self._notes, self._front.conversation
        project = await with_note_errors(notes.project(folder_in_view(self._front)))
        scopes = (("This project", project), ("Yours, in every project", USER))
        rows = [
            self._row(heading, row) for heading, scope in scopes for row in await with_note_errors(notes.rows(scope))
        ]
        calls = await self._front.services.library.calls(conversation.id) if conversation is not None else ()
        cost = " ".join(call_lines([one for one in calls if one.purpose is CallPurpose.MEMORY]))
        return ListPage(
            "Notes",
            tuple(rows),
            (
                ("sheet_take", "reads"),
                ("note_edit", "edits"),
                ("note_new", "new"),
                ("note_remove", "deletes"),
                ("note_undo", "undoes"),
            ),
            "There are no notes yet.",
            (clean_line(cost),) if cost else (),
            actions=(
                PageAction(self._new, "note_new", argument="new"),
                PageAction(self._undo_steps.undo, "note_undo", argument="undo"),
            ),
        )

    def _row(self, heading: str, row: NoteRow) -> PageRow:
        size = f"~{tokens(max(row.size // BYTES_PER_TOKEN, 1))} tokens"
        return PageRow(
            heading,
            row.path,
            row.name,
            row.first_line,
            size,
            about=(clean_line(row.first_line),),
            spoken=f"{row.name}, {heading}, {size}: {row.first_line}",
            name=row.name,
            actions=(
                PageAction(partial(self._show, row), TAKE, "read it"),
                PageAction(partial(self._edit, row), "note_edit", "show its path, to edit it"),
                PageAction(partial(self._remove, row), "note_remove", "delete it"),
            ),
        )

    async def _show(self, row: NoteRow) -> str:
        self._front.read(row.name, clean(await with_note_errors(self._notes.read(row.path))))
        return ""

    async def _edit(self, row: NoteRow) -> str:
        await self._front.edit(await with_note_errors(self._notes.place(row.path)))
        return ""

    async def _new(self) -> str:
        """Edit today's file of the user's own notes, made where it is missing."""
        path = f"{USER}/{time.strftime('%Y-%m-%d')}.md"
        try:
            await self._notes.put_back(path, NEW.encode())
        except FileExistsError:
            pass
        except OSError as error:
            raise EngineError(_sentence(error)) from error
        await self._front.edit(await with_note_errors(self._notes.place(path)), "Write your note in ")
        return ""

    async def _remove(self, row: NoteRow) -> str:
        content = await with_note_errors(self._notes.remove(row.path))

        async def put_back() -> str:
            await with_note_errors(self._notes.put_back(row.path, content))
            return f"{row.name} restored."

        self._undo_steps.add(put_back)
        return f"{row.name} deleted; {self._front.name_way('note_undo', '/memory undo')} restores it."


async def with_note_errors(work: Awaitable[T]) -> T:
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
