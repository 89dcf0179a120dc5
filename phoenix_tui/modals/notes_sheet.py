"""The notes of the project and of the user; Enter reads one, letters edit, add, delete and restore."""

from __future__ import annotations

from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import ClassVar, Final

from textual.binding import BindingType
from textual.content import Content

from engine.executor.requests import EngineError
from engine.memory.memory import NoteRow
from engine.ports import StorageError
from phoenix_tui.features.front_end import FrontEnd
from phoenix_tui.features.memory import (
    NO_NOTES,
    NoteChanges,
    Notes,
    describe_note,
    new_note,
    notes_in_view,
    notes_of,
    said,
)
from phoenix_tui.keys.active_keys import hint, key
from phoenix_tui.keys.keymap import Scope, bindings
from phoenix_tui.modals.rows_sheet import RowsSheet, SheetRow
from phoenix_tui.modals.text_sheet import TextSheet
from phoenix_tui.workspace.external_editor import open_outside
from tools.clean import clean, clean_line

NO_EDITOR: Final = "The editor cannot be started; set VISUAL or EDITOR."


class NotesSheet(RowsSheet):
    """Stays open over changes; the last line says what they did, or what the notes cost."""

    DEFAULT_CSS = "NotesSheet { & #remark { margin: 1 0 0 2; } }"
    TYPED: ClassVar[bool] = False
    EMPTY: ClassVar[str] = NO_NOTES
    BINDINGS: ClassVar[list[BindingType]] = [*bindings(Scope.ROWS), *bindings(Scope.NOTES)]

    def __init__(self, front: FrontEnd, notes: Notes) -> None:
        self._front = front
        self._changes = NoteChanges(notes_of(front), f"{key('note_undo')} restores it")
        self._notes = notes
        self._said = ""
        super().__init__("Notes", self._entries_of(notes), _keys())

    def remark(self, entry: SheetRow | None) -> str:
        """Result of the last change, else the whole first line of the chosen one and the cost of notes."""
        row = self._row_of(entry)
        first = clean_line(row.first_line) if row is not None else ""
        return self._said or "\n".join(filter(None, (first, clean_line(self._notes.cost))))

    def action_move(self, by: int) -> None:
        """Choose another one."""
        self._said = ""
        super().action_move(by)

    def action_take(self) -> None:
        """Read the chosen one."""
        if (row := self._row_of(self.chosen)) is not None:
            self._do(self._read(row))

    def action_edit(self) -> None:
        """Change it in the user's own editor."""
        if (row := self._row_of(self.chosen)) is not None:
            self._do(self._edit(row))

    def action_new(self) -> None:
        """Write today's note of one's own."""
        self._do(self._new())

    def action_remove(self) -> None:
        """Delete the chosen one."""
        if (row := self._row_of(self.chosen)) is not None:
            self._do(self._remove(row))

    def action_undo(self) -> None:
        """Restore the last deleted one."""
        self._do(self._undo())

    def _do(self, work: Coroutine[None, None, None]) -> None:
        self.run_worker(self._done(work), group="notes", exclusive=False)

    async def _done(self, work: Coroutine[None, None, None]) -> None:
        """Carry it out, show the notes as they are then, or the reason of a failure."""
        try:
            self._said = ""
            await work
            self._notes = await notes_in_view(self._front)
        except (EngineError, StorageError) as error:
            self._said = str(error)
        self._entries = self._found = self._entries_of(self._notes)
        self._chosen = max(min(self._chosen, len(self._entries) - 1), 0)
        self._draw()

    async def _read(self, row: NoteRow) -> None:
        text = await said(notes_of(self._front).read(row.path))
        self.app.push_screen(TextSheet(row.name, Content(clean(text))))

    async def _edit(self, row: NoteRow) -> None:
        await self._open(await said(notes_of(self._front).place(row.path)))

    async def _new(self) -> None:
        await self._open(await new_note(self._front))

    async def _open(self, path: Path) -> None:
        if not await open_outside(self.app, path, 1):
            raise EngineError(f"{NO_EDITOR} The file is {clean_line(str(path))}.")

    async def _remove(self, row: NoteRow) -> None:
        self._said = await self._changes.remove(row)

    async def _undo(self) -> None:
        self._said = await self._changes.undo()

    def _row_of(self, entry: SheetRow | None) -> NoteRow | None:
        return next((row for _, row in self._notes.rows if entry is not None and row.path == entry.key), None)

    def _entries_of(self, notes: Notes) -> Sequence[SheetRow]:
        return [
            SheetRow(heading, row.path, row.name, row.first_line, describe_note(row)) for heading, row in notes.rows
        ]


def _keys() -> str:
    return hint(
        ("sheet_take", "reads"),
        ("note_edit", "edits"),
        ("note_new", "new"),
        ("note_remove", "deletes"),
        ("note_undo", "undoes"),
    )
