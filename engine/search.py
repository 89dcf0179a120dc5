"""Search queries and their syntax: words, "phrases", -exclusions, filters such as after:2026-11-01.

Words and phrases are searched verbatim, anywhere in a text, ignoring case; all of them must occur.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

LONGEST: Final = 200
"""Characters of a word or phrase; longer ones find nothing more."""
_PIECE: Final = r'(?P<minus>-?)(?:(?P<name>[A-Za-z]+):)?(?:"(?P<quoted>[^"]*)(?P<end>"?)|(?P<word>\S*))'
_DAYS: Final = {"today": 0, "yesterday": 1}
_AGO: Final = r"(\d{1,4})([dwmy])"
_UNIT_DAYS: Final = {"d": 1, "w": 7, "m": 30, "y": 365}
_DATE: Final = r"(\d{4})(?:-(\d{1,2})(?:-(\d{1,2}))?)?"
"""Patterns, compiled when the first search is written: this module is loaded with the first frame."""


class Speaker(StrEnum):
    """Authors of a found text."""

    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


class SearchQuery(Struct, frozen=True):
    """A search that makes sense. Times are seconds since the epoch; an empty or None filter takes all."""

    words: tuple[str, ...] = ()
    """Words and phrases that must occur."""
    without: tuple[str, ...] = ()
    """Words that must not occur."""
    after: float | None = None
    before: float | None = None
    speakers: frozenset[Speaker] = frozenset()
    folder: Path | None = None
    """Folder to search, including those below it."""
    title: str = ""
    """Text that the title of the conversation contains."""
    trash: bool = False
    """True to search only in the trash, which is left out otherwise; archived conversations are always searched."""

    @property
    def is_empty(self) -> bool:
        """True when it has no condition."""
        return self == SearchQuery()


class SearchSyntaxError(ValueError):
    """Fault of a search: the sentence, and the place in the text as first and last + 1 character."""

    def __init__(self, sentence: str, start: int, end: int) -> None:
        super().__init__(sentence)
        self.start = start
        self.end = end


class _Piece(Struct, frozen=True):
    """One piece of the text."""

    start: int
    end: int
    minus: bool
    name: str
    value: str
    closed: bool
    written: str


def parse_search(text: str, *, cwd: Path, now: datetime | None = None) -> SearchQuery:
    """The search a text means; `in:` is resolved against `cwd`, dates are those of the local clock.

    Raises:
        SearchSyntaxError: a quote without its end, a filter without its value or with an invalid one,
            or exclusions alone.
    """
    asked = _Asked(cwd, now or datetime.now().astimezone())
    for piece in _pieces(text):
        asked.take(piece)
    if asked.query.without and not asked.query.words:
        raise SearchSyntaxError("Add a word to search for; an exclusion alone finds nothing.", 0, len(text))
    return asked.query


def occurrences(text: str, words: Sequence[str]) -> list[tuple[int, int]]:
    """Spans of all words, as first and last + 1 character; overlapping ones are joined."""
    low = fold_case(text)
    spans = sorted(span for word in words for span in _of_one(low, fold_case(word)))
    joined: list[tuple[int, int]] = []
    for start, end in spans:
        if joined and start < joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], end))
        else:
            joined.append((start, end))
    return joined


def fold_case(text: str) -> str:
    """The text without its capitals, letter by letter, as the index sees it too: every place stays where it was."""
    low = text.lower()
    if len(low) != len(text):  # İ alone becomes two
        low = "".join(letter.lower() if len(letter.lower()) == 1 else letter for letter in text)
    return low.replace("ς", "σ")


def _of_one(text: str, word: str) -> Iterator[tuple[int, int]]:
    """Every place of one word that does not overlap the one before; both are folded."""
    place = text.find(word) if word else -1
    while place >= 0:
        yield place, place + len(word)
        place = text.find(word, place + len(word))


def _pieces(text: str) -> Iterator[_Piece]:
    place, piece = 0, re.compile(_PIECE)
    while place < len(text):
        if text[place].isspace():
            place += 1
            continue
        match = piece.match(text, place)
        if match is None or match.end() == place:  # cannot be: a word takes any sign
            return
        quoted = match["quoted"]
        value = match["word"] if quoted is None else quoted
        closed = quoted is None or bool(match["end"])
        yield _Piece(place, match.end(), bool(match["minus"]), match["name"] or "", value, closed, match[0])
        place = match.end()


class _Asked:
    """A query while it is read."""

    def __init__(self, cwd: Path, now: datetime) -> None:
        self.query = SearchQuery()
        self._cwd = cwd
        self._now = now
        self._filters: dict[str, Callable[[_Piece], SearchQuery]] = {
            "after": lambda piece: replace(self.query, after=self._time(piece)),
            "before": lambda piece: replace(self.query, before=self._time(piece)),
            "role": lambda piece: replace(self.query, speakers=self.query.speakers | {_speaker(piece)}),
            "in": lambda piece: replace(self.query, folder=self._folder(piece)),
            "title": lambda piece: replace(self.query, title=piece.value),
            "is": lambda piece: replace(self.query, trash=_trash(piece)),
        }

    def take(self, piece: _Piece) -> None:
        """Add one piece. Raises SearchSyntaxError."""
        if not piece.closed:
            quote = piece.start + piece.written.index('"')
            raise SearchSyntaxError('This quotation has no end; add " after the phrase.', quote, piece.end)
        read = self._filters.get(piece.name.lower())
        if read is not None:
            if piece.minus:
                raise SearchSyntaxError(f"{piece.name}: cannot be excluded; remove the -.", piece.start, piece.end)
            if not piece.value.strip():
                example = _EXAMPLES[piece.name.lower()]
                raise SearchSyntaxError(f"{piece.name}: needs a value, such as {example}.", piece.start, piece.end)
            self.query = read(piece)
            return
        word = (f"{piece.name}:{piece.value}" if piece.name else piece.value)[:LONGEST]
        if not word.strip():
            word = "" if not piece.minus or '"' in piece.written else "-"
        if not word:
            return
        if piece.minus and word != "-":
            self.query = replace(self.query, without=(*self.query.without, word))
        else:
            self.query = replace(self.query, words=(*self.query.words, word))

    def _folder(self, piece: _Piece) -> Path:
        try:
            return (self._cwd / Path(piece.value).expanduser()).resolve()
        except (OSError, RuntimeError, ValueError) as error:
            raise SearchSyntaxError(f"{piece.value} is not a folder.", piece.start, piece.end) from error

    def _time(self, piece: _Piece) -> float:
        value = piece.value.lower()
        midnight = self._now.replace(hour=0, minute=0, second=0, microsecond=0)
        if value in _DAYS:
            return (midnight - timedelta(days=_DAYS[value])).timestamp()
        if ago := re.fullmatch(_AGO, value):
            return (midnight - timedelta(days=int(ago[1]) * _UNIT_DAYS[ago[2]])).timestamp()
        try:
            if date := re.fullmatch(_DATE, value):
                year, month, day = (int(part or 1) for part in date.groups())
                return datetime(year, month, day).astimezone().timestamp()
        except (ValueError, OverflowError, OSError):
            pass  # a day in no calendar; reported below
        sentence = f"{piece.value} is not a day; write {_EXAMPLES['after']}, after:7d or after:yesterday."
        raise SearchSyntaxError(sentence, piece.start, piece.end)


_EXAMPLES: Final = {
    "after": "after:2026-11-01",
    "before": "before:2026-11-01",
    "role": "role:user",
    "in": "in:~/project",
    "title": "title:parser",
    "is": "is:trash",
}


def _speaker(piece: _Piece) -> Speaker:
    value = {"you": "user", "me": "user", "agent": "assistant", "model": "assistant"}.get(piece.value.lower())
    try:
        return Speaker(value or piece.value.lower())
    except ValueError as error:
        names = ", ".join(Speaker)
        raise SearchSyntaxError(f"{piece.value} is not a role; use {names}.", piece.start, piece.end) from error


def _trash(piece: _Piece) -> bool:
    if piece.value.lower() != "trash":
        raise SearchSyntaxError(f"is: accepts only trash, not {piece.value}.", piece.start, piece.end)
    return True
