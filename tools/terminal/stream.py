"""The stream of a terminal taken apart: text, control characters and sequences, however it was cut."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from enum import Enum, auto
from functools import cache
from typing import Final, NamedTuple

MOST_ARGUMENTS: Final = 256
"""Characters of the arguments of a control sequence; one with more ends there and the rest is text."""
LONGEST_STRING: Final = 9_000
"""Characters of a string sequence, such as a title, that are read; a longer one is passed over."""
_BODY: Final = r"[^\x00-\x1f\x80-\x9f]"
_OPENS: Final = r"(?:\x1b[\]PX^_]|[\x90\x98\x9d\x9e\x9f])"
_BETWEEN: Final = rf"[\x20-\x2f]{{0,{MOST_ARGUMENTS}}}+"
_CSI: Final = rf"(?:\x1b\[|\x9b)(?P<arguments>[\x30-\x3f]{{0,{MOST_ARGUMENTS}}}+{_BETWEEN})"


_STRING_ENDS: Final = re.compile(r"[\x00-\x1f\x80-\x9f]")


class PartKind(Enum):
    """Part of a terminal's stream."""

    TEXT = auto()
    """Printable characters."""
    CONTROL = auto()
    ESCAPE = auto()
    """A letter behind `ESC`, perhaps with intermediate characters before it."""
    SEQUENCE = auto()
    """A control sequence: its arguments, and its letter, empty where there is none."""
    STRING = auto()
    """The body of a system command, a device control string and their kin."""


class StreamPart(NamedTuple):
    """One part."""

    kind: PartKind
    text: str
    letter: str = ""


@cache
def _tokens() -> re.Pattern[str]:
    return re.compile(
        rf"(?P<text>[^\x00-\x1f\x7f-\x9f]++)|(?P<control>[\x00-\x1a\x1c-\x1f\x7f])|(?P<csi>{_CSI}(?P<letter>[\x40-\x7e]?))"
        rf"|(?P<string>{_OPENS}(?P<body>{_BODY}{{0,{LONGEST_STRING}}}+)(?:\x07|\x1b\\|\x9c)?)"
        rf"|(?P<escape>\x1b(?P<name>{_BETWEEN}[\x30-\x7e]?))|(?P<other>[\x1b\x80-\x9f])"
    )


@cache
def _unfinished() -> re.Pattern[str]:
    return re.compile(rf"(?:{_OPENS}{_BODY}{{0,{LONGEST_STRING}}}+\x1b?|{_CSI}|\x1b{_BETWEEN})\Z")


class StreamReader:
    """Takes a stream apart; holds back at most one unfinished sequence."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")
        self._held = ""
        self._passing_over = False
        """True within a string sequence that is too long."""

    @property
    def rests(self) -> bool:
        """True while nothing is unfinished."""
        return not (self._held or self._passing_over or self._decoder.getstate()[0])

    def feed(self, data: bytes, *, final: bool = False) -> Iterator[StreamPart]:
        """The parts of the next bytes; `final` gives what may be unfinished, too."""
        text = self._held + self._decoder.decode(data, final)
        self._held = ""
        place = self._behind_string(text, 0) if self._passing_over else 0
        held = None if final else _unfinished().search(text, max(place, len(text) - LONGEST_STRING - 3))
        if held is not None:
            text, self._held = text[: held.start()], held[0]
        while place < len(text):
            match = _tokens().match(text, place)
            assert match is not None, "every character begins a part"
            place = match.end()
            if (token := _token(match)) is not None:
                yield token
                if token.kind is PartKind.STRING and len(token.text) == LONGEST_STRING:
                    place = self._behind_string(text, place)

    def _behind_string(self, text: str, place: int) -> int:
        """The end of a string sequence that is passed over, or of the text where it has none yet."""
        end = _STRING_ENDS.search(text, place)
        self._passing_over = end is None
        return len(text) if end is None else end.start()


def _token(match: re.Match[str]) -> StreamPart | None:
    match match.lastgroup:
        case "text":
            return StreamPart(PartKind.TEXT, match[0])
        case "control":
            return StreamPart(PartKind.CONTROL, match[0])
        case "csi":
            return StreamPart(PartKind.SEQUENCE, match["arguments"], match["letter"])
        case "string":
            return StreamPart(PartKind.STRING, match["body"])
        case "escape":
            return StreamPart(PartKind.ESCAPE, match["name"])
        case _:
            return None
