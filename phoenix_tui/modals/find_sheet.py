"""Find in the open conversation: a line at the foot, the place in sight above it, marked."""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static, TextArea

from engine.api.engine import LibraryApi
from engine.ports import StorageError
from engine.records import FoundText
from phoenix_tui.keys.active_keys import hint
from phoenix_tui.keys.active_keys import keys as keys_of
from phoenix_tui.keys.keymap import Scope, bindings
from phoenix_tui.modals.base import Sheet
from phoenix_tui.text.labels import Tone
from phoenix_tui.widgets.line_input import LineInput
from phoenix_tui.widgets.transcript.marks import Goal
from phoenix_tui.widgets.transcript.view import TranscriptView

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

    def __init__(self, library: LibraryApi, conversation_id: str, transcript: TranscriptView, text: str = "") -> None:
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
        """Heading and line."""
        with Vertical(classes="sheet"):
            yield Static(id="heading", markup=False)
            yield LineInput(self._given, placeholder="find in this conversation")

    def on_mount(self) -> None:
        """Take the keys."""
        line = self.query_one(LineInput)
        line.move_cursor(line.document.end)
        self.set_focus(line)
        self._begin(self._given)
        self._draw()

    def on_unmount(self) -> None:
        """Remove all marks."""
        self._mark("")

    def on_resize(self) -> None:
        """The heading is as wide as the screen."""
        self._draw()

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
        """Read around the place."""
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
            self._take(text, found)
            self._draw()

    def _take(self, text: str, found: Sequence[FoundText]) -> None:
        self._places = FoundPlaces(found)
        self._mark(text)
        if self._places.count:
            lowest = max((slot for slot, _, _ in self._transcript.canvas.viewport.rows()), default=0)
            self._show(self._places.last_up_to(lowest + 1))

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
