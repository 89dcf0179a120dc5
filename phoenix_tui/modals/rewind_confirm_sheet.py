"""The confirmation of a rewind: the changes on disk, and the restored parts."""

from __future__ import annotations

import textwrap
from collections.abc import Awaitable, Callable
from typing import ClassVar, Final

from msgspec import Struct
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from engine.ports.files import FileChange
from engine.rewind.values import Preview, PreviewFile, RewindScope
from phoenix_tui.features.changes import words_of
from phoenix_tui.features.rewind import HowFar, Instead
from phoenix_tui.keys import keymap
from phoenix_tui.keys.active_keys import hint
from phoenix_tui.keys.keymap import Scope
from phoenix_tui.modals.base import Sheet
from phoenix_tui.modals.diff_sheet import DiffSheet
from phoenix_tui.modals.rewind_rows import preview_row, sum_of
from phoenix_tui.modals.rewind_sheet import FRAME, SHARE
from phoenix_tui.text.context_text import left_alone
from phoenix_tui.text.labels import Tone
from phoenix_tui.widgets.bases import first_visible, move_choice
from tools.contract import DiffDisplay

DiffOf = Callable[[FileChange], Awaitable[DiffDisplay | None]]
LEAST_FILES: Final = 3
COVERED_ROWS: Final = 3
"""Rows about files that a rewind does not restore."""


class LastLook(Struct, frozen=True):
    """Choice to confirm."""

    heading: str
    preview: Preview
    ways: tuple[tuple[RewindScope, str], ...]
    """Parts that a rewind can restore, and their names."""
    summarizes: bool = False
    """True when the earlier messages can become a summary instead."""


class RewindConfirmSheet(Sheet[HowFar]):
    """Confirms a rewind: Up and Down go through the ways and then the files; Enter takes the marked way."""

    DEFAULT_CSS = """
    RewindConfirmSheet { & > .sheet { max-height: 92%; } & Static { height: auto; } }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        *keymap.bindings(Scope.ROWS),
        *keymap.bindings(Scope.REWIND, "rewind_overwrite", "rewind_diff", "rewind_summarize"),
    ]

    def __init__(self, look: LastLook, diff: DiffOf, *, plain: bool = False) -> None:
        super().__init__()
        self._look = look
        self._diff = diff
        self._plain = plain
        self._files = tuple(one for one in look.preview.files if not one.change.only_folder)
        self._overwrite: frozenset[bytes] = frozenset()
        self._way = 0
        self._place = 0

    def compose(self) -> ComposeResult:
        """One text, drawn for the size there is."""
        with Vertical(classes="sheet"):
            yield Static(id="go-back", markup=False)

    def on_mount(self) -> None:
        """Draw."""
        self._draw()

    def on_resize(self) -> None:
        """Rows are as wide as the screen."""
        self._draw()

    def action_move(self, by: int) -> None:
        """Another way, or another file."""
        self._place = move_choice(self._place, by, len(self._look.ways) + len(self._files))
        if self._place < len(self._look.ways):
            self._way = self._place
        self._draw()

    def action_take(self) -> None:
        """Go back this way."""
        self.dismiss(HowFar(self._look.ways[self._way][0], self._overwrite))

    def action_summarize(self) -> None:
        """Choose the summary of the earlier messages instead of a rewind."""
        if self._look.summarizes:
            self.dismiss(HowFar(Instead.SUMMARY))

    def action_overwrite(self) -> None:
        """Overwrite the changes of another author, or keep them."""
        file = self._file()
        if file is not None and file.conflict and file.possible:
            self._overwrite ^= {file.change.path}
            self._draw()

    def action_diff(self) -> None:
        """Show the change that the rewind makes to the selected file."""
        if file := self._file():
            self.run_worker(self._read(file.change), group="diff")

    async def _read(self, change: FileChange) -> None:
        """Read the diff in the background: a folder may be slow."""
        found = await self._diff(change)
        lines = found if found is not None and found.diff else None
        if self.is_current:
            self.app.push_screen(DiffSheet(lines, "" if lines else words_of(change)))

    def _file(self) -> PreviewFile | None:
        place = self._place - len(self._look.ways)
        return self._files[place] if 0 <= place < len(self._files) else None

    def _draw(self) -> None:
        if self.is_mounted:
            self.query_one("#go-back", Static).update(Content("\n").join(self._rows()))

    def _rows(self) -> list[Content]:
        width = self.measure
        head = Content.assemble((self._look.heading, "bold")).truncate(width, ellipsis=True)
        top = [head, *self._way_rows(width), Content(""), self._sum(width)]
        below = [Content.styled(row, Tone.QUIET.value).truncate(width, ellipsis=True) for row in self._notes()]
        room = max(int(self.size.height * SHARE) - len(top) - len(below) - FRAME, LEAST_FILES)
        return [*top, *self._file_rows(width, room), *below]

    def _way_rows(self, width: int) -> list[Content]:
        rows: list[Content] = []
        for place, (_, words) in enumerate(self._look.ways):
            chosen = place == self._way
            mark = (">" if self._plain else "›") if chosen else " "
            row = Content(f"{mark} {words}").truncate(width, ellipsis=True, pad=True)
            rows.append(
                Content.styled(row.plain, "reverse" if chosen and self._place == place else "bold" if chosen else "")
            )
        return rows

    def _sum(self, width: int) -> Content:
        touches = self._look.ways[self._way][0] is not RewindScope.CONVERSATION
        words = f"On disk: {sum_of(self._look.preview, self._overwrite)}" if touches else "On disk: nothing changes"
        if self._look.preview.refusal:
            words = self._look.preview.refusal
        return Content.styled(words, Tone.NEEDS_YOU.value if self._look.preview.refusal else "bold").truncate(
            width, ellipsis=True
        )

    def _file_rows(self, width: int, room: int) -> list[Content]:
        place = self._place - len(self._look.ways)
        first = first_visible(place, len(self._files), room)
        quiet = self._look.ways[self._way][0] is RewindScope.CONVERSATION
        rows = [
            preview_row(
                one,
                width,
                chosen=number == place,
                taken=one.change.path in self._overwrite,
                plain=self._plain,
            )
            for number, one in enumerate(self._files[first : first + room], start=first)
        ]
        return [Content.styled(row.plain, Tone.QUIET.value) for row in rows] if quiet else rows

    def _notes(self) -> list[str]:
        conflict = any(one.conflict and one.possible for one in self._files)
        overwrites = ("rewind_overwrite", "overwrites") if conflict else ""
        shows = ("rewind_diff", "shows diff") if self._files else ""
        summarizes = ("rewind_summarize", "summarizes instead") if self._look.summarizes else ""
        notes = [hint(("sheet_take", "rewinds"), overwrites, shows, summarizes)]
        covered = left_alone(self._look.preview.coverage) if not self._look.preview.refusal else ""
        return [*textwrap.wrap(covered, self.measure, max_lines=COVERED_ROWS, placeholder=" …"), *notes]
