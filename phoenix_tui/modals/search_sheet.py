"""Search in all messages: results as you type, Enter jumps to the hit."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final

from msgspec import Struct
from msgspec.structs import replace
from rich.cells import cell_len
from textual import events
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.widgets import Static, TextArea

from engine.ports import StorageError
from engine.records import SearchHit
from engine.search import SearchQuery, SearchSyntaxError, Speaker, occurrences, parse_search
from phoenix_tui.keys.active_keys import hint, key
from phoenix_tui.keys.keymap import Scope, bindings
from phoenix_tui.modals.base import Sheet
from phoenix_tui.text.labels import Tone, short_path
from phoenix_tui.widgets.bases import first_visible
from phoenix_tui.widgets.line_input import LineInput
from tools.clean import clean_line

if TYPE_CHECKING:
    from engine.store.library import Library

HIT_ROWS: Final = 2
"""Rows of one hit."""
YEAR: Final = 330 * 86_400
"""Seconds after which a date needs its year."""
DAY: Final = 86_400
WEEK: Final = 7 * DAY
WHO: Final = {
    Speaker.USER: ("you", Tone.YOU),
    Speaker.ASSISTANT: ("agent", Tone.WORK),
    Speaker.TOOL: ("tool", Tone.QUIET),
}
WHO_WIDTH: Final = 5
DATE_WIDTH: Final = 12
"""Cells of the longest one, `21 Nov 23:50`."""
FOLDER_FROM: Final = 90
"""Columns from which the folder is shown."""
FENCE: Final = re.compile(r"(?:^|(?<!\s)\s++)(?:```|~~~)[\w+#-]*(?:\s+|$)")
"""Begin and end of code in a Markdown text: noise when all is on one line."""
MARK: Final = "bold $warning"
INDENT: Final = 2
LONGEST_PIECE: Final = 12
"""Letters of a word that are left out rather than shown without its beginning."""


def hit_rows(hit: SearchHit, words: Sequence[str], width: int, *, chosen: bool, now: float | None = None) -> Content:
    """Draw both rows of a hit, each exactly `width` cells."""
    first = _heading(hit, width, now=time.time() if now is None else now, chosen=chosen)
    second = _snippet(hit, words, width, chosen=chosen)
    return Content("\n").join([first, second])


def _heading(hit: SearchHit, width: int, *, now: float, chosen: bool) -> Content:
    who, tone = WHO[hit.speaker]
    mark = "old branch  " if hit.left_behind else "archived  " if hit.archived else ""
    known = Content.assemble(
        (mark, Tone.NEEDS_YOU.value),
        (f"{who:<{WHO_WIDTH}}", tone.value),
        (f" {when(hit.created_at, now):>{DATE_WIDTH}}", Tone.QUIET.value),
    )
    widest = max(width * 2 // 3, 1)
    folder = f"{clean_line(short_path(hit.cwd))}  " if width >= FOLDER_FROM else ""
    # A long folder is cut, speaker and time never are.
    where = Content.styled(folder, Tone.QUIET.value).truncate(max(widest - known.cell_length, 0), ellipsis=True)
    right = (where + known).truncate(widest, ellipsis=True)
    title = Content.styled(clean_line(hit.title) or "New conversation", "bold")
    left = (_edge(chosen) + title).truncate(max(width - right.cell_length - 1, 1), ellipsis=True, pad=True)
    return left + " " + right


def _snippet(hit: SearchHit, words: Sequence[str], width: int, *, chosen: bool) -> Content:
    text = clean_line(hit.snippet)
    bare = FENCE.sub(" ", text).strip()
    text = bare if occurrences(bare, words) else text
    room = max(width - INDENT, 1)
    text = _around(text, words, room)
    line = Content.styled(text, "" if chosen else Tone.QUIET.value)
    for start, end in occurrences(text, words):
        line = line.stylize(MARK, start, end)
    return (_edge(chosen) + line).truncate(width, ellipsis=True, pad=True)


def _edge(chosen: bool) -> Content:
    """Marker left of both rows."""
    return Content.styled("▌ " if chosen else "  ", Tone.YOU.value)


def _around(text: str, words: Sequence[str], room: int) -> str:
    """The text, begun later where its first mark would be outside the room."""
    places = occurrences(text, words)
    if not places or places[0][1] <= room - 1:
        return text
    start = max(places[0][0] - room // 3, 0)
    word = text.find(" ", start, min(start + LONGEST_PIECE, places[0][0]))
    return f"…{text[start if word < 0 else word + 1 :]}" if start else text


def when(details: float, now: float) -> str:
    """A date as short as it may be: the time today, else the day, with its year once that is another."""
    if not details:
        return ""
    date = datetime.fromtimestamp(details).astimezone()
    if 0 <= now - details < DAY and date.day == datetime.fromtimestamp(now).astimezone().day:
        return date.strftime("%H:%M")
    distance = abs(now - details)
    pattern = "%d %b %H:%M" if distance < WEEK else "%d %b" if distance < YEAR else "%d %b %Y"
    return date.strftime(pattern).lstrip("0")


class HitList(Static):
    """Shows a window of the hits round the chosen one."""

    class Clicked(Message):
        """A hit was clicked."""

        def __init__(self, place: int) -> None:
            super().__init__()
            self.place = place

    class Turned(Message):
        """The wheel was turned."""

        def __init__(self, by: int) -> None:
            super().__init__()
            self.by = by

    def __init__(self) -> None:
        super().__init__(markup=False)
        self._first = 0
        self._count = 0

    @property
    def fitting(self) -> int:
        """Hits that are in sight at once."""
        return max(self.size.height // HIT_ROWS, 1)

    def show(self, hits: Sequence[SearchHit], chosen: int, words: Sequence[str], width: int) -> None:
        """Draw the hits round the chosen one."""
        self._count = len(hits)
        self._first = first_visible(chosen, len(hits), self.fitting)
        rows = [
            hit_rows(hit, words, width, chosen=place == chosen)
            for place, hit in enumerate(hits[self._first : self._first + self.fitting], start=self._first)
        ]
        self.update(Content("\n").join(rows))

    def on_click(self, event: events.Click) -> None:
        """Post the hit at this row."""
        place = self._first + event.y // HIT_ROWS
        if place < self._count:
            self.post_message(self.Clicked(place))

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """Post a request for later hits."""
        event.stop()
        self.post_message(self.Turned(1))

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """Post a request for earlier hits."""
        event.stop()
        self.post_message(self.Turned(-1))


PAUSE: Final = 0.06
"""Seconds without a letter before the store is searched."""
BREATH: Final = 0.01
"""Seconds between two looks at older messages, so that another question is never far from its turn."""
PAGE: Final = 300
"""Hits ranked together: the newest ones, so that a common word costs no more than a rare one."""


class HitRows(Struct, frozen=True):
    """Results of the current query."""

    hits: tuple[SearchHit, ...] = ()
    looking: bool = False
    """True while more may come without a request."""
    reached: float = 0.0
    """Time down to which was searched, seconds since the epoch; 0 when everything was."""
    unindexed: float = 0.0
    trouble: str = ""
    stale: bool = False
    """True when this answers the query before the current one."""


class SearchLoop:
    """Runs as one worker; calls `show` after every change."""

    def __init__(self, library: Library, show: Callable[[HitRows], None]) -> None:
        self._library = library
        self._show = show
        self._query = SearchQuery()
        self._asked = asyncio.Event()
        self._number = 0
        """Counts questions; an answer to an older one is not shown."""
        self._wanted = PAGE
        self.found = HitRows()
        self.below: int | None = None
        """Start of the next part of the current query."""

    def ask(self, query: SearchQuery) -> None:
        """Another question; an empty one clears the answer."""
        self._query = query
        self._number += 1
        self._wanted = PAGE
        self.found = replace(self.found, stale=True)
        self._asked.set()

    def more(self) -> None:
        """The last hits came into sight: look for another page."""
        if self.found.reached and not self.found.looking:
            self._wanted = len(self.found.hits) + PAGE
            self._asked.set()

    def resume(self, query: SearchQuery, found: HitRows, below: int | None) -> None:
        """Start with the earlier results."""
        self._query, self.found, self.below = query, found, below

    async def run(self) -> None:
        """Answer queries until cancelled."""
        answered = 0
        while True:
            await self._asked.wait()
            self._asked.clear()
            if answered != self._number:
                await asyncio.sleep(PAUSE)
                self._asked.clear()
                answered = self._number
                self.below = None
                await self._answer(answered, ())
            else:
                await self._answer(answered, self.found.hits)

    async def _answer(self, number: int, before: tuple[SearchHit, ...]) -> None:
        """Look until the page is full, everything was looked through, or another question came."""
        hits, query = before, self._query
        if query.is_empty:
            self._tell(HitRows())
            return
        while number == self._number:
            try:
                answer = await self._library.search(query, limit=PAGE, below=self.below)
            except StorageError as error:
                self._tell(HitRows(hits, trouble=str(error)))
                return
            if number != self._number:
                return
            hits += answer.hits
            self.below = answer.next
            more = answer.next is not None
            looking = more and len(hits) < self._wanted
            self._tell(HitRows(hits, looking, answer.reached if more else 0.0, answer.unindexed))
            if not looking:
                return
            await asyncio.sleep(BREATH)

    def _tell(self, found: HitRows) -> None:
        self.found = found
        self._show(found)


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
    found: HitRows = field(default_factory=HitRows)
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

    def __init__(self, library: Library, folder: Path, memory: SearchMemory) -> None:
        super().__init__()
        self._folder = folder
        self._memory = memory
        self._loop = SearchLoop(library, self._show)
        self._error: SearchSyntaxError | None = None
        self._at_once = False
        """Enter came before the answer."""

    def compose(self) -> ComposeResult:
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
        self.action_move(by * max(self.query_one(HitList).fitting - 1, 1))

    def action_here(self) -> None:
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

    def _show(self, found: HitRows) -> None:
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

    def _heading(self, found: HitRows) -> Content:
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

    def _remark(self, found: HitRows) -> Content:
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

    def _nothing(self, found: HitRows) -> str:
        if self._error is not None or found.looking or found.trouble:
            return ""
        if self._memory.query.is_empty:
            rows = [f"  {written:<{EXAMPLE_WIDTH}}{meaning}" for written, meaning in EXAMPLES]
            return "\n".join(["  All words must occur, anywhere in a text, in upper or lower case.", "", *rows])
        wide = hint(("search_here", "searches everywhere")) if self._memory.only_here else ""
        return f"  No matches. Use fewer words to find more{'; ' if wide else ''}{wide}."
