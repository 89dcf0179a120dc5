"""Changes of a conversation to files, and the list of turns with their effects."""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine, Sequence
from typing import ClassVar, Final

from textual.app import App, ComposeResult
from textual.binding import BindingType
from textual.containers import Container, Vertical
from textual.content import Content
from textual.widgets import Static

from engine.records.runs import TurnSummary
from phoenix_tui.features.changes import ChangeSet, FolderChanges, ShownFile, without_lines
from phoenix_tui.keys.active_keys import hint
from phoenix_tui.keys.keymap import KEYS, Scope, bindings
from phoenix_tui.modals.rewind_sheet import file_row, join_row, sum_row
from phoenix_tui.modals.rows_sheet import PickerRow, PickerSheet, heading
from phoenix_tui.modals.text_sheet import READING, DiffSheet
from phoenix_tui.text.labels import Tone, age, money
from phoenix_tui.text.shell_words import quote_change
from phoenix_tui.widgets.bases import first_visible, move_choice
from phoenix_tui.widgets.blocks.rows import duration_text
from phoenix_tui.widgets.diff_view import DiffView
from tools.clean import clean_line
from tools.wording import pluralize

BESIDE_FROM: Final = 120
"""Columns from which the files are beside their change."""
FILES_WIDTH: Final = 40
FILES_ABOVE: Final = 6
"""Rows of files when they are above it."""
LOOKING: Final = "Reading the folder …"
NOTHING: Final = "No files changed."

OpenFile = Callable[[App[object], str], Coroutine[None, None, None]]
Copy = Callable[[str], Coroutine[None, None, None]]
Ask = Callable[[str], None]
"""Function that puts a quotation into the message being written."""


class ChangesSheet(DiffSheet):
    """Shows changes: Up and Down scroll, other keys go from change to change, file to file and turn to turn."""

    DEFAULT_CSS = """
    ChangesSheet {
        & > .sheet { height: 1fr; max-height: 100%; }
        & Static { height: auto; }
        & #body { height: 1fr; layout: vertical; }
        & #files { width: 1fr; margin: 0 0 1 0; }
        &.-beside #body { layout: horizontal; }
        &.-beside #files { width: 40; margin: 0 2 0 0; }
    }
    """
    HORIZONTAL_BREAKPOINTS = [(0, "-above"), (BESIDE_FROM, "-beside")]  # noqa: RUF012 - Textual declares it so
    BINDINGS: ClassVar[list[BindingType]] = bindings(
        Scope.CHANGES, *(key.id for key in KEYS if key.scope is Scope.CHANGES and key.id not in READING)
    )

    def __init__(self, changes: FolderChanges, open_file: OpenFile, copy: Copy, ask: Ask) -> None:
        super().__init__()
        self._changes = changes
        self._open_file = open_file
        self._copy = copy
        self._ask = ask
        self._sets: Sequence[ChangeSet] = ()
        self._set = 0
        self._file = 0

    def compose(self) -> ComposeResult:
        with Vertical(classes="sheet"):
            yield Static(id="heading", markup=False)
            yield Static(id="set", markup=False)
            with Container(id="body"):
                yield Static(id="files", markup=False)
                yield DiffView()
            yield Static(id="note", markup=False)

    def begin(self) -> None:
        self.action_again()

    def action_again(self) -> None:
        """Look at the folder now: a run may be under way."""
        self._view.show(None, LOOKING)
        self._draw_files()
        self.run_worker(self._look(), group="look")

    def action_set(self, by: int) -> None:
        """Another turn, or all of them."""
        if self._sets:
            self._set = move_choice(self._set, by, len(self._sets))
            self._choose(0)

    def action_file(self, by: int) -> None:
        if 0 <= self._file + by < len(self._files):
            self._choose(self._file + by)

    def action_change(self, by: int) -> None:
        """Another change; beyond the last one of a file the next file's."""
        if not self._view.to_change(by):
            self.action_file(by)

    def action_open(self) -> None:
        """The file in the user's editor."""
        if file := self._chosen:
            self.run_worker(self._open_file(self.app, file.name), group="open")

    def action_copy(self) -> None:
        """The change as a patch."""
        if self._display is not None:
            self.run_worker(self._copy(self._display.diff), group="copy")

    def action_ask(self) -> None:
        """Quote the selection, else the visible change, in the message being written."""
        if self._display is not None:
            selected = self.get_selected_text() or ""
            self._ask(quote_change(self._display, self._view.visible_change(), selected))
            self.dismiss(None)

    @property
    def _files(self) -> Sequence[ShownFile]:
        return self._sets[self._set].files if self._sets else ()

    @property
    def _chosen(self) -> ShownFile | None:
        return self._files[self._file] if self._files else None

    async def _look(self) -> None:
        chosen = self._chosen.name if self._chosen is not None else ""
        first, self._sets = not self._sets, await self._changes.sets()
        self._set = min(self._set, len(self._sets) - 1)
        if first:
            self._set = next((place for place, one in enumerate(self._sets) if one.files), 0)
        self._choose(next((place for place, one in enumerate(self._files) if one.name == chosen), 0))

    def _choose(self, place: int) -> None:
        self._file = place
        self._display = None
        self._draw_files()
        if self._chosen is None:
            self._view.show(None, NOTHING)
        else:
            self.run_worker(self._read(self._chosen), group="read")

    async def _read(self, file: ShownFile) -> None:
        found = await self._changes.diff(file)
        if file is self._chosen:
            self._display = found
            self._view.show(found, file.remark if found is not None else without_lines(file))

    def _draw(self) -> None:
        self.call_after_refresh(self._draw_files)

    def _draw_files(self) -> None:
        if not self.is_mounted:
            return
        width = self.measure
        self.query_one("#heading", Static).update(_heading(width))
        self.query_one("#set", Static).update(self._set_row(width))
        self.query_one("#files", Static).update(Content("\n").join(self._file_rows(width)))
        note = self.query_one("#note", Static)
        words = self._sets[self._set].note if self._sets else ""
        note.display = bool(words)
        note.update(Content.styled(words, Tone.QUIET.value).truncate(width, ellipsis=True))

    def _set_row(self, width: int) -> Content:
        if not self._sets:
            return Content("")
        one = self._sets[self._set]
        sides = ("‹ " if self._set else "  ", " ›" if self._set < len(self._sets) - 1 else "")
        left = Content.assemble((sides[0], Tone.QUIET.value), one.title, (sides[1], Tone.QUIET.value))
        return join_row(left, sum_row(one.files), width)

    def _file_rows(self, width: int) -> list[Content]:
        beside = self.size.width >= BESIDE_FROM
        most = max(self._view.size.height, 1) if beside else FILES_ABOVE
        first = first_visible(self._file, len(self._files), most)
        return [
            file_row(one, FILES_WIDTH if beside else width, chosen=place == self._file)
            for place, one in enumerate(self._files[first : first + most], start=first)
        ]


def _heading(width: int) -> Content:
    words = hint(
        ("changes_set_before changes_set_after", "turn"),
        ("changes_file_before changes_file_after", "file"),
        ("changes_before changes_after", "change"),
        ("changes_ask", "asks"),
        ("changes_open", "opens"),
        ("changes_copy", "copies"),
        ("changes_turn", "layout"),
    )
    return heading("Changes", words, width)


SUMMARY_ROWS: Final = 3
DETAIL_ROWS: Final = 2


class TurnsSheet(PickerSheet):
    """Like every list to pick from, with rows on the chosen turn below it. Gives the seq of a prompt."""

    TAKES = "Enter jumps to it"
    DEFAULT_CSS = "TurnsSheet { & #turn { margin: 1 0 0 0; } }"

    def __init__(self, turns: Sequence[TurnSummary], current: int) -> None:
        self._turns = {str(turn.seq): turn for turn in turns}
        self._summed_up = any(turn.summary for turn in turns)
        self.rows_below = 1 + DETAIL_ROWS + (SUMMARY_ROWS if self._summed_up else 0)
        nearest = max((turn.seq for turn in turns if turn.seq <= current), default=0)
        width = len(str(len(turns)))
        choices = [
            PickerRow(str(turn.seq), f"{number:>{width}}  {turn.words or 'an image'}", remark(turn), turn.summary)
            for number, turn in enumerate(turns, 1)
        ]
        super().__init__("Turns", choices, current=str(nearest))

    def begin(self) -> None:
        self.query_one(".sheet").mount(Static(id="turn", markup=False))
        super().begin()

    def _draw(self) -> None:
        super()._draw()
        places = list(self.query("#turn").results(Static))
        if places:
            turn = self._turns[self._found[self._chosen].key] if self._found else None
            width = self.measure
            rows = [Content()] * DETAIL_ROWS if turn is None else detail(turn, width, time.time())
            if self._summed_up:
                rows[:0] = summary_rows(turn.summary if turn is not None else "", width)
            places[0].update(Content("\n").join(rows))


def remark(turn: TurnSummary) -> str:
    """A turn in the fewest words: calls, files, time, cost."""
    calls = sum(count for _, count in turn.tools)
    words = [
        pluralize(calls, "call") if calls else "",
        pluralize(len(turn.files), "file") if turn.files else "",
        duration_text(turn.seconds) if turn.seconds else "",
        money(turn.cost_usd) if turn.cost_usd is not None else "",
    ]
    return " · ".join(word for word in words if word)


def summary_rows(summary: str, width: int) -> list[Content]:
    """Summary of a turn by a model; always the same number of rows, so that nothing below moves."""
    lines = Content(clean_line(summary)).wrap(max(width, 1)) if summary else []
    shown = lines[:SUMMARY_ROWS]
    if len(lines) > SUMMARY_ROWS:
        shown[-1] = Content(f"{shown[-1].plain.rstrip()} …").truncate(width, ellipsis=True)
    return [*shown, *[Content()] * (SUMMARY_ROWS - len(shown))]


def detail(turn: TurnSummary, width: int, now: float) -> list[Content]:
    """Actions of a turn by name: its tools, then its files; always two rows, so that nothing below moves."""
    tools = ", ".join(f"{name} {count}" if count > 1 else name for name, count in turn.tools) or "no tools"
    failed = f" · {turn.failed} failed" if turn.failed else ""
    first = f"{age(now - turn.created_at)} ago · {tools}"
    second = "changed " + ", ".join(clean_line(path) for path in turn.files) if turn.files else ""
    return [
        Content.assemble(
            Content.styled(clean_line(first), Tone.QUIET.value), Content.styled(failed, Tone.BAD.value)
        ).truncate(width, ellipsis=True),
        Content.styled(second, Tone.QUIET.value).truncate(width, ellipsis=True),
    ]
