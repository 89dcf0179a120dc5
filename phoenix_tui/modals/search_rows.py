"""Hits as rows: speaker, place and time on one line, the text with marked words on the next."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from datetime import datetime
from typing import Final

from textual.content import Content

from engine.records import SearchHit
from engine.search import Speaker, occurrences
from phoenix_tui.text.labels import Tone, short_path
from tools.clean import clean_line

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
