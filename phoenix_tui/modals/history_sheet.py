"""Search the prompts that were sent: as you type, the newest first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static, TextArea

from phoenix_tui.features.prompt_history import PromptHistory
from phoenix_tui.keys.active_keys import fitting, hint
from phoenix_tui.keys.keymap import Scope, bindings
from phoenix_tui.modals.base import Sheet
from phoenix_tui.text.labels import Tone
from phoenix_tui.widgets.bases import first_visible, move_choice
from phoenix_tui.widgets.dock import Dock
from phoenix_tui.widgets.line_input import LineInput
from tools.clean import clean, clean_line
from tools.wording import counted

MOST_ROWS: Final = 8
PREVIEW_ROWS: Final = 7
AROUND: Final = 7
"""Rows beside prompts and preview: title, one of the talk, rule, heading, line, a rule above the preview, status."""
BEFORE_MATCH: Final = 20
"""Cells that are kept before a match far to the right."""


def matching(words: Sequence[str], prompts: Sequence[str]) -> list[str]:
    """Prompts that hold every word, in their order; capitals count where a word has one."""
    small = [prompt.lower() for prompt in prompts]
    return [
        prompt
        for prompt, low in zip(prompts, small, strict=True)
        if all(word in (low if word.islower() or not word.isalpha() else prompt) for word in words)
    ]


class HistorySheet(Sheet[str]):
    """Ctrl+R again or Up: an older one; Ctrl+S: all folders; Enter inserts it into the composer, Esc leaves."""

    DEFAULT_CSS = """
    HistorySheet {
        & Static { height: auto; }
        & LineInput { margin: 0 0 0 2; background: $background; }
        & #preview { color: $text-muted; border-top: solid $panel; display: none; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings(
            Scope.TYPED,
            typed_up="move(1)",
            typed_down="move(-1)",
            typed_page_up="move(8)",
            typed_page_down="move(-8)",
        ),
        *bindings(Scope.HISTORY),
    ]

    def __init__(self, prompts: PromptHistory, dock: Dock, text: str = "") -> None:
        super().__init__()
        self._kept = dock.queue.rows_taken
        """Rows of the queue, which stay visible."""
        self._dock = dock
        """Dock that makes room above the sheet for the queue."""
        self._history = prompts
        self._prompts: Sequence[str] = prompts.entries
        self._wide = False
        self._text = text
        self._found: list[str] = list(prompts.entries)
        self._chosen = 0
        """Counted from the newest."""

    def compose(self) -> ComposeResult:
        """Heading, rows with the newest nearest to the line, the line, and the full text of the chosen one."""
        with Vertical(classes="sheet"):
            yield Static(id="heading", markup=False)
            yield Static(id="rows", markup=False)
            yield LineInput(self._text, placeholder="search your prompts")
            yield Static(id="preview", markup=False)

    def on_mount(self) -> None:
        """Draw and take the keys."""
        line = self.query_one(LineInput)
        line.fill(self._text)
        self.set_focus(line)
        self._search()

    def on_resize(self) -> None:
        """Rows are as wide as the screen."""
        self._draw()

    def on_unmount(self) -> None:
        """Move the lifted widgets back."""
        self._dock.lift(0)

    def on_text_area_changed(self, event: TextArea.Changed) -> None:
        """Narrow to prompts that hold every word."""
        event.stop()
        self._search()

    def on_line_input_submitted(self, event: LineInput.Submitted) -> None:
        """Enter."""
        event.stop()
        self.action_take()

    def action_take(self) -> None:
        """Give the chosen prompt."""
        if self._found:
            self.dismiss(self._found[self._chosen])

    def action_move(self, by: int) -> None:
        """An older or a newer one."""
        if self._found:
            self._chosen = move_choice(self._chosen, by, len(self._found))
            self._draw()

    def action_widen(self) -> None:
        """Prompts of all folders, or of this one again."""
        self._wide = not self._wide
        self._prompts = self._history.everywhere() if self._wide else self._history.entries
        self._search()

    @property
    def _words(self) -> list[str]:
        return self.query_one(LineInput).text.split()

    def _search(self) -> None:
        self._found = matching(self._words, self._prompts)
        self._chosen = 0
        self._draw()

    def _draw(self) -> None:
        where = "all folders" if self._wide else "this folder"
        place = f"{self._chosen + 1} / {len(self._found)}" if self._found else "0"
        other = "this folder" if self._wide else "all folders"
        words = f"   {place} in {where}   "
        room = self.measure - len(f"History{words}")
        keys = fitting(room, ("history_older", "older"), ("history_wide", other), "Enter inserts")
        heading = Content.assemble(("History", "bold"), (f"{words}{keys}", Tone.QUIET.value))
        self.query_one("#heading", Static).update(heading)
        self.query_one("#rows", Static).update(self._rows())
        preview = self.query_one("#preview", Static)
        chosen = self._found[self._chosen] if self._found else ""
        preview.display = "\n" in chosen.strip()
        if preview.display:
            lines = clean(chosen.strip()).split("\n")
            most = min(PREVIEW_ROWS, max(self._room // 3, 2))
            if len(lines) > most:
                lines = [*lines[: most - 1], f"+{counted(len(lines) - most + 1, 'line')}"]
            preview.update(Content("\n".join(lines)))
        self.call_after_refresh(self._make_room)

    def _make_room(self) -> None:
        if self.is_drawable:
            self._dock.lift(self.query_one(".sheet").outer_size.height)

    @property
    def _room(self) -> int:
        """Rows for prompts and preview."""
        return self.size.height - AROUND - self._kept

    def _rows(self) -> Content:
        if not self._found:
            wide = (
                "Type fewer letters to find more."
                if self._wide
                else f"{hint(('history_wide', 'searches all folders'))}."
            )
            return Content.styled(f"  No prompt matches. {wide}", Tone.QUIET.value)
        rows = max(min(MOST_ROWS, self.size.height // 3, self._room * 2 // 3), 2)
        first = first_visible(self._chosen, len(self._found), rows)
        shown = list(enumerate(self._found[first : first + rows], start=first))
        return Content("\n").join([self._row(prompt, place == self._chosen) for place, prompt in reversed(shown)])

    def _row(self, prompt: str, chosen: bool) -> Content:
        width = self.measure
        line = clean_line(prompt.strip()[:2_000])
        low = line.lower()
        starts = [(low.find(word.lower()), len(word)) for word in self._words]
        first = min((start for start, _ in starts if start >= 0), default=0)
        cut = first - BEFORE_MATCH if first > width - BEFORE_MATCH else 0
        words = Content(f"…{line[cut + 1 :]}" if cut > 0 else line)
        for start, length in starts:
            if start >= cut > -1:
                words = words.stylize(f"bold {Tone.YOU.value}", start - max(cut, 0), start - max(cut, 0) + length)
        words = Content.assemble("› " if chosen else "  ", words).truncate(width, ellipsis=True, pad=chosen)
        return words.stylize("reverse") if chosen else words
