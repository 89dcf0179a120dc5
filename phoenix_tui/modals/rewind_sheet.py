"""Rewind: choose a prompt, see the changes on disk, choose the restored parts."""

from __future__ import annotations

import time
from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from engine.rewind.values import RewindList, RewindPoint
from phoenix_tui.features.changes import files_of, when
from phoenix_tui.features.rewind import OtherWay, RewindTarget
from phoenix_tui.keys.active_keys import hint
from phoenix_tui.keys.keymap import Scope, bindings
from phoenix_tui.modals.base import Sheet
from phoenix_tui.modals.rewind_rows import change_row, point_row, stay_row
from phoenix_tui.text.context_text import left_alone
from phoenix_tui.text.labels import Tone
from phoenix_tui.widgets.bases import first_visible, move_choice
from tools.wording import counted

INDENT: Final = 2
SHARE: Final = 0.92
"""Share of the screen's height that the sheet may take."""
FRAME: Final = 3
"""Rows of that for border and margin."""
FILES_SHOWN: Final = 6


class RewindSheet(Sheet[RewindTarget]):
    """Prompts, newest first. The first row stays here, so that Enter by habit changes nothing."""

    DEFAULT_CSS = """
    RewindSheet { & > .sheet { max-height: 92%; } & Static { height: auto; } }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings(Scope.ROWS),
        *bindings(Scope.REWIND, "rewind_undo", "rewind_branches", "rewind_finish", "rewind_take_back"),
    ]

    def __init__(self, found: RewindList, *, plain: bool = False) -> None:
        super().__init__()
        self._found = found
        self._plain = plain
        self._chosen = 0

    def compose(self) -> ComposeResult:
        """One text, drawn for the size there is."""
        with Vertical(classes="sheet"):
            yield Static(id="rewind", markup=False)

    def on_mount(self) -> None:
        """Draw."""
        self._draw()

    def on_resize(self) -> None:
        """Rows are as wide as the screen."""
        self._draw()

    def action_move(self, by: int) -> None:
        """Choose another prompt."""
        self._chosen = move_choice(self._chosen, by, len(self._found.points) + 1)
        self._draw()

    def action_take(self) -> None:
        """Continue with the chosen prompt; the first row closes."""
        self.dismiss(self._point())

    def action_order(self, name: str) -> None:
        """Another way out, where there is one."""
        way = OtherWay[name.upper()]
        offered = {
            OtherWay.UNDO: self._found.takeback is not None,
            OtherWay.BRANCHES: True,
            OtherWay.FINISH: self._found.unfinished > 0,
            OtherWay.TAKE_BACK: self._found.unfinished > 0,
        }
        if offered[way]:
            self.dismiss(way)

    def _point(self) -> RewindPoint | None:
        return self._found.points[self._chosen - 1] if self._chosen else None

    def _draw(self) -> None:
        if self.is_mounted:
            self.query_one("#rewind", Static).update(Content("\n").join(self._rows()))

    def _rows(self) -> list[Content]:
        width = self.measure
        top = [self._heading(width), *self._unfinished(width)]
        below = self._files(width)
        room = max(int(self.size.height * SHARE) - len(top) - len(below) - FRAME, FRAME)
        return [*top, *self._list(width, room), *below]

    def _heading(self, width: int) -> Content:
        long, short = [("sheet_take", "selects")], [("sheet_take", "selects")]
        if self._found.takeback is not None:
            at = when(self._found.takeback.at, time.time())
            long.append(("rewind_undo", f"undoes the rewind of {at}"))
            short.append(("rewind_undo", f"undo {at}"))
        if self._found.branches > 1:
            long.append(("rewind_branches", f"shows {self._found.branches} branches"))
            short.append(("rewind_branches", "branches"))
        heading = _heading(hint(*long))
        return heading if heading.cell_length <= width else _heading(hint(*short)).truncate(width, ellipsis=True)

    def _unfinished(self, width: int) -> list[Content]:
        if not self._found.unfinished:
            return []
        ways = hint(("rewind_finish", "finishes it"), ("rewind_take_back", "undoes it"))
        words = f"A restore of {counted(self._found.unfinished, 'file')} was interrupted; {ways}."
        return [Content.styled(words, Tone.NEEDS_YOU.value).truncate(width, ellipsis=True)]

    def _list(self, width: int, room: int) -> list[Content]:
        points, now = self._found.points, time.time()
        first = first_visible(self._chosen, len(points) + 1, room)
        rows: list[Content] = []
        for place in range(first, min(first + room, len(points) + 1)):
            chosen = place == self._chosen
            if place == 0:
                rows.append(stay_row(width, chosen=chosen, plain=self._plain))
            else:
                rows.append(point_row(points[place - 1], width, now, chosen=chosen, plain=self._plain))
        return rows

    def _files(self, width: int) -> list[Content]:
        """The files of the chosen turn; always as many rows, so that the list does not move."""
        point = self._point()
        files = files_of(point.files) if point else []
        shown = files if len(files) <= FILES_SHOWN else files[: FILES_SHOWN - 1]
        rows = [Content.assemble("  ", change_row(one, width - INDENT)) for one in shown]
        if len(shown) < len(files):
            rows.append(Content.styled(f"  and {len(files) - len(shown)} more", Tone.QUIET.value))
        if point and not files:
            rows.append(Content.styled("  This turn changed no file.", Tone.QUIET.value))
        most = min(FILES_SHOWN, max((len(files_of(one.files)) for one in self._found.points), default=0) or 1)
        rows += [Content("")] * (most - len(rows))
        note = left_alone(point.coverage) if point else ""
        return [Content(""), *rows, Content.styled(note, Tone.QUIET.value).truncate(width, ellipsis=True)]


def _heading(keys: str) -> Content:
    return Content.assemble(("Rewind", "bold"), (f"   {keys}", Tone.QUIET.value))
