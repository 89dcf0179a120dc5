"""One typed line: keys in, echo out. Only the part changed by a key at the cursor is drawn."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeAlias

from msgspec import Struct

from tools.clean import clean

if TYPE_CHECKING:
    from phoenix_tui.features.composing import PromptHistory

BACK: Final = "\b"


class LineTyped(Struct, frozen=True):
    """Enter: the present line."""

    text: str


class StopWanted(Struct, frozen=True):
    """Esc: stop the run."""


class LeaveTyped(Struct, frozen=True):
    """Ctrl+D on an empty line, or the end of the input."""


LineRequest: TypeAlias = LineTyped | StopWanted | LeaveTyped


_TOKEN: Final = re.compile(
    r"\x1b\[200~(?P<paste>.*?)\x1b\[201~|(?P<keys>\x1b\[[0-9;:?<>=]*[A-Za-z~]|\x1bO[A-Za-z])"
    r"|\x1b[\]P_][^\x07\x1b]*(?:\x07|\x1b\\)|(?P<letter>.)",
    re.DOTALL,
)


def tokens(text: str) -> Iterator[tuple[str, str]]:
    """Pieces of input as kind and text: `paste`, `keys` (a sequence) or `letter`; terminal replies are dropped."""
    for match in _TOKEN.finditer(text):
        if match.lastgroup is not None:
            yield match.lastgroup, match[match.lastgroup]


@dataclass(slots=True)
class LineBuffer:
    """The line being typed and its cursor; every method returns the output for the terminal."""

    history: PromptHistory | None = None
    text: str = ""
    cursor: int = 0
    requests: list[LineRequest] = field(default_factory=list["LineRequest"])
    """Requests by Enter, Esc and Ctrl+D, in order; the reader of the line takes them."""

    def feed(self, text: str) -> str:
        """Take input; returns the echo."""
        return "".join(self._take(kind, piece) for kind, piece in tokens(text))

    def put(self, text: str) -> str:
        """Replace the line; the echo overwrites the old text, with blanks behind the new one."""
        echo = self._to(len(self.text))
        gone, text = cells(self.text), clean(text)
        self.text, self.cursor = text, len(text)
        return echo + BACK * gone + " " * gone + BACK * gone + show_as_row(text)

    def take(self) -> str:
        """The line, which is empty now."""
        text, self.text, self.cursor = self.text, "", 0
        if self.history is not None:
            self.history.leave()
        return text

    def _take(self, kind: str, piece: str) -> str:
        if kind == "paste":
            return self._insert("".join(letter for letter in piece.replace("\r", "\n") if _writes(letter)))
        action = KEYS.get(piece)
        if action is not None:
            return action(self)
        return self._insert(piece) if kind == "letter" and _writes(piece) else ""

    def _insert(self, text: str) -> str:
        if self.history is not None:
            self.history.leave()
        rest = self.text[self.cursor :]
        self.text = self.text[: self.cursor] + text + rest
        self.cursor += len(text)
        return show_as_row(text + rest) + BACK * cells(rest)

    def _remove(self, first: int, last: int) -> str:
        """Take out a part; the cursor ends at its beginning."""
        if first == last:
            return ""
        echo = self._to(first)
        gone = cells(self.text[first:last])
        rest = self.text[last:]
        self.text = self.text[:first] + rest
        return echo + show_as_row(rest) + " " * gone + BACK * (cells(rest) + gone)

    def _to(self, place: int) -> str:
        """Move the cursor: over existing text, or back."""
        place = max(0, min(place, len(self.text)))
        before, self.cursor = self.cursor, place
        return show_as_row(self.text[before:place]) if place >= before else BACK * cells(self.text[place:before])

    def _word_left(self) -> int:
        before = self.text[: self.cursor].rstrip()
        return len(before) - len(re.split(r"\s", before)[-1]) if before else 0

    def enter(self) -> str:
        """The line is finished."""
        self.requests.append(LineTyped(self.take()))
        return ""

    def newline(self) -> str:
        """Ctrl+J."""
        return self._insert("\n")

    def stop(self) -> str:
        """Esc."""
        self.requests.append(StopWanted())
        return ""

    def end_or_delete(self) -> str:
        """Ctrl+D."""
        if self.text:
            return self._remove(self.cursor, min(self.cursor + 1, len(self.text)))
        self.requests.append(LeaveTyped())
        return ""

    def older(self) -> str:
        """Recall the previous line of the history."""
        found = self.history.older(self.text) if self.history is not None else None
        return self.put(found) if found is not None else ""

    def newer(self) -> str:
        """Down."""
        found = self.history.newer() if self.history is not None else None
        return self.put(found) if found is not None else ""

    def move(self, by: int) -> str:
        """Left and Right."""
        return self._to(self.cursor + by)

    def edge(self, *, end: bool) -> str:
        """Home and End."""
        return self._to(len(self.text) if end else 0)

    def rub(self, *, word: bool = False, everything: bool = False) -> str:
        """Backspace, Ctrl+W and Ctrl+U."""
        first = 0 if everything else self._word_left() if word else max(self.cursor - 1, 0)
        return self._remove(first, self.cursor)

    def cut(self) -> str:
        """Ctrl+K."""
        return self._remove(self.cursor, len(self.text))


KEYS: Final[dict[str, Callable[[LineBuffer], str]]] = {
    "\r": LineBuffer.enter,
    "\n": LineBuffer.newline,
    "\x1b": LineBuffer.stop,
    "\x04": LineBuffer.end_or_delete,
    "\x7f": LineBuffer.rub,
    "\b": LineBuffer.rub,
    "\x17": lambda line: line.rub(word=True),
    "\x15": lambda line: line.rub(everything=True),
    "\x0b": LineBuffer.cut,
    "\x01": lambda line: line.edge(end=False),
    "\x05": lambda line: line.edge(end=True),
    "\x10": LineBuffer.older,
    "\x0e": LineBuffer.newer,
    "\x1b[A": LineBuffer.older,
    "\x1bOA": LineBuffer.older,
    "\x1b[B": LineBuffer.newer,
    "\x1bOB": LineBuffer.newer,
    "\x1b[C": lambda line: line.move(1),
    "\x1b[D": lambda line: line.move(-1),
    "\x1b[H": lambda line: line.edge(end=False),
    "\x1b[F": lambda line: line.edge(end=True),
    "\x1b[3~": lambda line: line.end_or_delete() if line.text else "",
}
"""Keys that do something; every other control is ignored."""


def _writes(letter: str) -> bool:
    return letter == "\n" or unicodedata.category(letter)[0] != "C"


def show_as_row(text: str) -> str:
    """The text as one row."""
    return text.replace("\n", " ").replace("\t", " ")


def cells(text: str) -> int:
    """Columns a text takes."""
    return sum(
        0 if unicodedata.combining(letter) else 2 if unicodedata.east_asian_width(letter) in "WF" else 1
        for letter in show_as_row(text)
    )
