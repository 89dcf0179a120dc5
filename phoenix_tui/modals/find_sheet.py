"""Find in the open conversation, go from hit to hit, and search the prompts that were sent."""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, ClassVar, Final

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static, TextArea

from engine.ports import StorageError
from engine.records import FoundText
from phoenix_tui.features.composing import PromptHistory
from phoenix_tui.keys.active_keys import fitting, hint
from phoenix_tui.keys.active_keys import keys as keys_of
from phoenix_tui.keys.keymap import Scope, bindings
from phoenix_tui.modals.base import Sheet
from phoenix_tui.text.labels import Tone
from phoenix_tui.widgets.bases import first_visible, move_choice
from phoenix_tui.widgets.dock import Dock
from phoenix_tui.widgets.line_input import LineInput
from phoenix_tui.widgets.transcript.marks import Goal
from phoenix_tui.widgets.transcript.view import TranscriptView
from tools.clean import clean, clean_line
from tools.wording import pluralize

if TYPE_CHECKING:
    from engine.store.library import Library

PAUSE: Final = 0.06
"""Seconds without a letter before the store is searched."""


class FoundPlaces:
    """Every place of a text, by number; millions of matches are possible, so none is an object."""

    def __init__(self, found: Sequence[FoundText]) -> None:
        self._found = found
        self._ends = list(accumulate(one.count for one in found))
        self.count = self._ends[-1] if self._ends else 0

    def goal(self, place: int) -> Goal:
        """The place of that number."""
        number = bisect_right(self._ends, place)
        one = self._found[number]
        return Goal(one.seq, one.call_id, place - self._ends[number] + one.count)

    def last_up_to(self, seq: int) -> int:
        """The number of the last place in the messages up to this one; the first of all where there is none."""
        number = bisect_right(self._found, seq, key=lambda one: one.seq)
        return self._ends[number - 1] - 1 if number else 0


class FindSheet(Sheet[str]):
    """Type to find; Enter and Up go to older places, Shift+Enter and Down to newer ones, Esc stays where one is.

    Gives the text where Ctrl+F asks to search all conversations for it, else None.
    """

    DEFAULT_CSS = """
    FindSheet {
        & > .sheet { max-height: 4; }
        & Static { height: 1; }
        & LineInput { margin: 0 0 0 2; background: $background; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings(
            Scope.TYPED,
            typed_up="step(-1)",
            typed_down="step(1)",
            typed_page_up="scroll(-1)",
            typed_page_down="scroll(1)",
        ),
        *bindings(Scope.FIND),
        Binding("ctrl+f", "everywhere", "In all conversations", priority=True, id="workspace.find"),
    ]

    def __init__(self, library: Library, conversation_id: str, transcript: TranscriptView, text: str = "") -> None:
        super().__init__()
        self._library = library
        self._conversation_id = conversation_id
        self._transcript = transcript
        self._lock = asyncio.Lock()
        """A question whose text is gone by the time of its turn is not asked."""
        self._places = FoundPlaces(())
        self._place = -1
        self._trouble = ""
        self._text = ""
        self._given = text

    def compose(self) -> ComposeResult:
        with Vertical(classes="sheet"):
            yield Static(id="heading", markup=False)
            yield LineInput(self._given, placeholder="find in this conversation")

    def on_mount(self) -> None:
        line = self.query_one(LineInput)
        line.move_cursor(line.document.end)
        self.set_focus(line)
        self._begin(self._given)
        self._draw()

    def on_unmount(self) -> None:
        self._mark("")

    def on_text_area_changed(self, event: TextArea.Changed) -> None:
        """Look for another text; the answer to the one before is dropped."""
        if event.text_area.text != self._text:
            self._begin(event.text_area.text)

    def on_line_input_submitted(self, event: LineInput.Submitted) -> None:
        """Enter: an older place."""
        event.stop()
        self.action_step(-1)

    def action_step(self, by: int) -> None:
        """Another place, from the last one to the first again."""
        if self._places.count:
            self._show((self._place + by) % self._places.count)

    def action_scroll(self, by: int) -> None:
        self._transcript.scroller.page(by)

    def action_everywhere(self) -> None:
        """Search all conversations instead."""
        self.dismiss(self._text)

    def _begin(self, text: str) -> None:
        self._text = text
        self.run_worker(self._find(text), group="find")

    async def _find(self, text: str) -> None:
        await asyncio.sleep(PAUSE)
        async with self._lock:
            if text == self._text:
                await self._ask(text)

    async def _ask(self, text: str) -> None:
        try:
            found = await self._library.find(self._conversation_id, text) if text else ()
        except StorageError as error:
            self._trouble = str(error)
            found = ()
        else:
            self._trouble = ""
        if text == self._text and self.is_drawable:
            self._places = FoundPlaces(found)
            self._mark(text)
            if self._places.count:
                lowest = max((slot for slot, _, _ in self._transcript.canvas.viewport.rows()), default=0)
                self._show(self._places.last_up_to(lowest + 1))
            self._draw()

    def _mark(self, text: str) -> None:
        self._transcript.canvas.marks.look_for((text,) if text else ())
        self._transcript.scroller.place_again()

    def _show(self, place: int) -> None:
        self._place = place
        self._transcript.canvas.marks.go(self._places.goal(place))
        self._transcript.scroller.place_again()
        self._draw()

    def _draw(self) -> None:
        if self._trouble:
            words = Content.styled(self._trouble, Tone.BAD.value)
        else:
            total = self._places.count
            count = f"{self._place + 1:,} of {total:,}" if total else "nothing" if self._text else ""
            tone = Tone.NEEDS_YOU if self._text and not total else Tone.QUIET
            keys = hint(f"Enter {keys_of('typed_up')} older", ("typed_down", "newer"), ("find", "everywhere"))
            words = Content.assemble((f"{count}   " if count else "", tone.value), (keys, Tone.QUIET.value))
        line = Content.assemble(("Find", "bold"), "   ", words)
        self.query_one("#heading", Static).update(line.truncate(self.measure, ellipsis=True))


class HitSheet(Sheet[str]):
    """Gives `stay`, `next`, `previous`, or None for back."""

    DEFAULT_CSS = """
    HitSheet { & > .sheet { max-height: 3; } & Static { height: 1; } }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings(Scope.HIT),
        *bindings(
            Scope.TYPED, "typed_page_up", "typed_page_down", typed_page_up="scroll(-1)", typed_page_down="scroll(1)"
        ),
    ]

    esc_hint = "Esc returns to the results"

    def __init__(self, transcript: TranscriptView, place: int, count: int) -> None:
        super().__init__()
        self._transcript = transcript
        self._words = f"{place + 1} of {count}"

    def compose(self) -> ComposeResult:
        with Vertical(classes="sheet"):
            yield Static(id="heading", markup=False)

    def _draw(self) -> None:
        keys = hint(("hit_stay", "stays here"), ("hit_previous hit_next", "other hits"))
        line = Content.assemble(("Hit ", "bold"), (self._words, "bold"), "   ", (keys, Tone.QUIET.value))
        self.query_one("#heading", Static).update(line.truncate(self.measure, ellipsis=True))

    def action_answer(self, answer: str) -> None:
        self.dismiss(answer)

    def action_scroll(self, by: int) -> None:
        self._transcript.scroller.page(by)


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
        with Vertical(classes="sheet"):
            yield Static(id="heading", markup=False)
            yield Static(id="rows", markup=False)
            yield LineInput(self._text, placeholder="search your prompts")
            yield Static(id="preview", markup=False)

    def on_mount(self) -> None:
        line = self.query_one(LineInput)
        line.fill(self._text)
        self.set_focus(line)
        self._search()

    def on_unmount(self) -> None:
        """Move the lifted widgets back."""
        self._dock.lift(0)

    def on_text_area_changed(self, event: TextArea.Changed) -> None:
        """Narrow to prompts that hold every word."""
        event.stop()
        self._search()

    def on_line_input_submitted(self, event: LineInput.Submitted) -> None:
        event.stop()
        self.action_take()

    def action_take(self) -> None:
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
                lines = [*lines[: most - 1], f"+{pluralize(len(lines) - most + 1, 'line')}"]
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
