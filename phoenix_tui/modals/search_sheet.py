"""Search in all messages: results as you type, Enter jumps to the hit."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Final

from msgspec.structs import replace
from rich.cells import cell_len
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static, TextArea

from engine.api.engine import LibraryApi
from engine.records import SearchHit
from engine.search import SearchQuery, SearchSyntaxError, parse_search
from phoenix_tui.keys.active_keys import hint, key
from phoenix_tui.keys.keymap import Scope, bindings
from phoenix_tui.modals.base import Sheet
from phoenix_tui.modals.hit_list import HitList
from phoenix_tui.modals.search_loop import SearchLoop, SearchResults
from phoenix_tui.modals.search_rows import when
from phoenix_tui.text.labels import Tone
from phoenix_tui.widgets.line_input import LineInput
from tools.clean import clean_line

AHEAD: Final = 5
"""Hits below the last visible one at which the next page is requested."""
EXAMPLES: Final = (
    ('"two words"', "exact words"),
    ("-word", "without it"),
    ("after:2026-11-01", "since that day; after:7d, after:yesterday"),
    ("before:2026-11-01", "up to the day before"),
    ("role:user", "said by you; assistant, tool"),
    ("in:~/project", "in that folder and below it"),
    ("title:parser", "in conversations with that title"),
    ("is:trash", "only deleted ones; archived ones are always searched"),
)
EXAMPLE_WIDTH: Final = 20
ROOMY: Final = 72
"""Columns from which the heading says all of it."""
MOST_CARETS: Final = 20
MARGIN: Final = 4
PROMPT: Final = 2
"""Cells before the text of the input."""


@dataclass(slots=True)
class SearchMemory:
    """A search as it was left, to come back to."""

    text: str = ""
    only_here: bool = False
    chosen: int = 0
    query: SearchQuery = field(default_factory=SearchQuery)
    found: SearchResults = field(default_factory=SearchResults)
    below: int | None = None


class SearchSheet(Sheet[SearchHit]):
    """Type to search, Up and Down to choose, Enter to go there, Tab for this folder only, Esc to leave."""

    DEFAULT_CSS = """
    SearchSheet {
        & > .sheet { height: 1fr; max-height: 100%; }
        & Static { height: 1; }
        & LineInput { margin: 0 0 0 2; background: $background; }
        & HitList { height: 1fr; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [*bindings(Scope.TYPED), *bindings(Scope.SEARCH)]

    def __init__(self, library: LibraryApi, folder: Path, memory: SearchMemory) -> None:
        super().__init__()
        self._folder = folder
        self._memory = memory
        self._loop = SearchLoop(library, self._show)
        self._error: SearchSyntaxError | None = None
        self._at_once = False
        """Enter came before the answer."""

    def compose(self) -> ComposeResult:
        """Heading, input, the place of a mistake, results."""
        with Vertical(classes="sheet"):
            yield Static(id="heading", markup=False)
            yield LineInput(self._memory.text, placeholder="words, a “phrase”, -without …")
            yield Static(id="remark", markup=False)
            yield HitList()

    def on_mount(self) -> None:
        """Take the focus and begin with the given query."""
        line = self.query_one(LineInput)
        line.move_cursor(line.document.end)
        self.set_focus(line)
        if self._memory.found.hits:
            self._loop.resume(self._memory.query, self._memory.found, self._memory.below)
        else:
            self._ask()
        self.run_worker(self._loop.run(), group="search")
        self._draw()

    def on_resize(self) -> None:
        """Rows are as wide as the screen."""
        self._draw()

    def on_text_area_changed(self, event: TextArea.Changed) -> None:
        """Another question, unless it is the one that was brought along."""
        if event.text_area.text != self._memory.text:
            self._memory.text = event.text_area.text
            self._memory.chosen = 0
            self._ask()

    def on_line_input_submitted(self, event: LineInput.Submitted) -> None:
        """Go to the selected hit, or to the first one of the pending answer."""
        event.stop()
        if self._error is not None:
            return
        if self._loop.found.stale:
            self._at_once = True
        else:
            self._take()

    def _take(self) -> None:
        memory, loop = self._memory, self._loop
        if memory.chosen < len(loop.found.hits):
            memory.found, memory.below = replace(loop.found, looking=False), loop.below
            self.dismiss(loop.found.hits[memory.chosen])

    def action_move(self, by: int) -> None:
        """Choose another hit; near the last one older hits are requested."""
        hits = self._loop.found.hits
        self._memory.chosen = max(0, min(self._memory.chosen + by, len(hits) - 1))
        if self._memory.chosen >= len(hits) - AHEAD:
            self._loop.more()
        self._draw()

    def action_page(self, by: int) -> None:
        """A screenful on."""
        self.action_move(by * max(self.query_one(HitList).fitting - 1, 1))

    def action_here(self) -> None:
        """Search only in this folder, or everywhere."""
        self._memory.only_here = not self._memory.only_here
        self._memory.chosen = 0
        self._ask()

    def on_hit_list_clicked(self, event: HitList.Clicked) -> None:
        """A click opens a hit as Enter does."""
        self._memory.chosen = event.place
        self._take()

    def on_hit_list_turned(self, event: HitList.Turned) -> None:
        """The wheel moves on."""
        self.action_move(event.by)

    def _ask(self) -> None:
        self._error, self._at_once = None, False
        try:
            query = parse_search(self._memory.text, cwd=self._folder)
        except SearchSyntaxError as error:
            self._error = error
            self._draw()
            return
        if self._memory.only_here and query.folder is None and not query.is_empty:
            query = replace(query, folder=self._folder)
        self._memory.query = query
        self._loop.ask(query)
        self._draw()

    def _show(self, found: SearchResults) -> None:
        self._memory.chosen = max(0, min(self._memory.chosen, len(found.hits) - 1))
        if self.is_drawable:
            self._draw()
            if self._at_once and not (found.looking and not found.hits):
                self._at_once = False
                self._take()

    def _draw(self) -> None:
        found = self._loop.found
        width = self.measure
        self.query_one("#heading", Static).update(self._heading(found).truncate(width, ellipsis=True))
        self.query_one("#remark", Static).update(self._remark(found).truncate(width, ellipsis=True))
        rows = self.query_one(HitList)
        if found.hits:
            rows.show(found.hits, self._memory.chosen, self._memory.query.words, width)
        else:
            rows.update(Content.styled(self._nothing(found), Tone.QUIET.value))

    def _heading(self, found: SearchResults) -> Content:
        if self._error is not None and not self._fits(self._error):
            return Content.styled(clean_line(str(self._error)), Tone.BAD.value)
        count = len(found.hits)
        place = f"{self._memory.chosen + 1} of {count}{'+' if found.reached else ''}" if count else ""
        scope, other = ("this folder", "everywhere") if self._memory.only_here else ("everywhere", "this folder")
        switch = scope
        if tab := key("search_here"):
            switch = f"{scope}, {tab} {other}" if self.measure >= ROOMY else f"{scope} ({tab})"
        keys = " · ".join(part for part in (place, switch, "Enter opens") if part)
        return Content.assemble(("Search", "bold"), "   ", (keys, Tone.QUIET.value))

    def _remark(self, found: SearchResults) -> Content:
        """The row under the input: the fault and its place, else the progress of the search."""
        if self._error is not None:
            sentence = clean_line(str(self._error)) if self._fits(self._error) else ""
            return Content.styled(f"{self._carets(self._error)} {sentence}", Tone.BAD.value)
        if found.trouble:
            return Content.styled(f"  {found.trouble}", Tone.BAD.value)
        words: list[str] = []
        if found.looking:
            words.append(f"searching further back than {when(found.reached, 0.0)}")
        if found.unindexed:
            words.append(f"{found.unindexed:.0%} of the older messages are still being indexed")
        return Content.styled(f"  {' · '.join(words)}" if words else "", Tone.QUIET.value)

    def _fits(self, error: SearchSyntaxError) -> bool:
        """True when the sentence has room next to its signs; else it replaces the heading."""
        return len(self._carets(error)) + cell_len(str(error)) + MARGIN <= self.measure

    def _carets(self, error: SearchSyntaxError) -> str:
        """Signs under the invalid piece of the input."""
        line = self.query_one(LineInput)
        before, piece = line.text[: error.start], line.text[error.start : error.end]
        start = max(cell_len(before) - round(line.scroll_offset.x), 0)
        return " " * (PROMPT + start) + "^" * max(min(cell_len(piece), MOST_CARETS), 1)

    def _nothing(self, found: SearchResults) -> str:
        if self._error is not None or found.looking or found.trouble:
            return ""
        if self._memory.query.is_empty:
            rows = [f"  {written:<{EXAMPLE_WIDTH}}{meaning}" for written, meaning in EXAMPLES]
            return "\n".join(["  All words must occur, anywhere in a text, in upper or lower case.", "", *rows])
        wide = hint(("search_here", "searches everywhere")) if self._memory.only_here else ""
        return f"  No matches. Use fewer words to find more{'; ' if wide else ''}{wide}."
