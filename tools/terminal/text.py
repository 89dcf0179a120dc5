"""Output of a program in a terminal as text with colours: bounded, and nothing in it acts or hides."""

from __future__ import annotations

import codecs
import re
from collections import deque
from collections.abc import Iterator, Sequence
from copy import deepcopy
from enum import Enum, auto
from functools import cache
from itertools import pairwise
from typing import Final, NamedTuple

from msgspec.structs import replace

from tools.process.output import HeadAndTail
from tools.terminal.screen import CellScreen, ScreenRow
from tools.terminal.values import TerminalModes, TerminalRows, TerminalSize, TextRun

MOST_ARGUMENTS: Final = 256
"""Characters of the arguments of a control sequence; one with more ends there and the rest is text."""
LONGEST_STRING: Final = 9_000
"""Characters of a string sequence, such as a title, that are read; a longer one is passed over."""
_BODY: Final = r"[^\x00-\x1f\x80-\x9f]"
_OPENS: Final = r"(?:\x1b[\]PX^_]|[\x90\x98\x9d\x9e\x9f])"
_BETWEEN: Final = rf"[\x20-\x2f]{{0,{MOST_ARGUMENTS}}}+"
_CSI: Final = rf"(?:\x1b\[|\x9b)(?P<arguments>[\x30-\x3f]{{0,{MOST_ARGUMENTS}}}+{_BETWEEN})"


_STRING_ENDS: Final = re.compile(r"[\x00-\x1f\x80-\x9f]")


class SequenceKind(Enum):
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

    kind: SequenceKind
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
def _compile_unfinished() -> re.Pattern[str]:
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
        held = None if final else _compile_unfinished().search(text, max(place, len(text) - LONGEST_STRING - 3))
        if held is not None:
            text, self._held = text[: held.start()], held[0]
        while place < len(text):
            match = _tokens().match(text, place)
            assert match is not None, "every character begins a part"
            place = match.end()
            if (token := _token(match)) is not None:
                yield token
                if token.kind is SequenceKind.STRING and len(token.text) == LONGEST_STRING:
                    place = self._behind_string(text, place)

    def _behind_string(self, text: str, place: int) -> int:
        """The end of a string sequence that is passed over, or of the text where it has none yet."""
        end = _STRING_ENDS.search(text, place)
        self._passing_over = end is None
        return len(text) if end is None else end.start()


def _token(match: re.Match[str]) -> StreamPart | None:
    match match.lastgroup:
        case "text":
            return StreamPart(SequenceKind.TEXT, match[0])
        case "control":
            return StreamPart(SequenceKind.CONTROL, match[0])
        case "csi":
            return StreamPart(SequenceKind.SEQUENCE, match["arguments"], match["letter"])
        case "string":
            return StreamPart(SequenceKind.STRING, match["body"])
        case "escape":
            return StreamPart(SequenceKind.ESCAPE, match["name"])
        case _:
            return None


MOST_RUNS: Final = 10_000
"""Coloured pieces that are kept at either end; those between are plain."""
RECENT_ROWS: Final = 50
"""Rows above the screen that are kept for what is shown of a running program."""
LEAST_AT_ONCE: Final = 2_000
"""Bytes of plain lines from which they are taken in one step."""
_PLAIN_LINES: Final = re.compile(rb"(?:[ -~]*+\r\n)*+")
_OVERWRITING: Final = re.compile(rb"(?:\r[ -~]*+){4,}+")
"""One row written several times, as a progress bar is."""


class RowsEnd(NamedTuple):
    """End of the final rows: the number of their last line, -1 before the first, and its characters so far."""

    line: int = -1
    offset: int = 0


class TerminalText:
    """Reads the stream of a terminal. Rows that leave the screen are final and go into `kept`."""

    def __init__(self, size: TerminalSize, kept: HeadAndTail, mark: str = "") -> None:
        self._reader = StreamReader()
        self.screen = CellScreen(size.columns, size.rows, self._leave)
        self._kept = kept
        self._mark = mark
        """Beginning of the system command with which the shell names its folder; empty for none."""
        self._first: list[TextRun] = []
        self._last: deque[TextRun] = deque(maxlen=MOST_RUNS)
        self._recent: deque[ScreenRow] = deque(maxlen=RECENT_ROWS)
        self._place = RowsEnd()
        self._untaken: list[str] = []
        self.folder = ""
        """Folder that the shell named last."""
        self.modes = TerminalModes()
        self.shows_cursor = True

    def feed(self, data: bytes, *, final: bool = False) -> None:
        """Take the next bytes."""
        first = data.find(b"\n") + 1
        lines = _PLAIN_LINES.match(data, first)
        if lines is None or lines.end() - first < LEAST_AT_ONCE:
            self._read(data, final=final)
            return
        self._read(data[:first])
        if self._reader.rests and self.screen.is_at_start:
            self._take_lines(lines[0].decode())
        else:
            self._read(lines[0])
        self._read(data[lines.end() :], final=final)

    def capture(self) -> tuple[HeadAndTail, tuple[TextRun, ...]]:
        """All rows so far, those of the screen included, without blank ones at the end."""
        kept, runs, place = deepcopy(self._kept), [*self._first, *self._last], self._place
        for row, below in pairwise([*self._list_written_rows(), ScreenRow()]):
            text, more, place = _piece(row, below, place)
            kept.feed(text.encode())
            runs += more
        return kept, tuple(runs)

    def finish(self) -> None:
        """End it: the rows of the screen are final, too."""
        self._read(b"", final=True)
        for row, below in pairwise([*self._list_written_rows(), ScreenRow()]):
            self._leave(row, below)
        self.screen.rows = [ScreenRow()]

    def take_final(self) -> bytes:
        """Text of the rows that became final since the last call."""
        text, self._untaken = "".join(self._untaken), []
        return text.encode()

    def newest(self, count: int) -> TerminalRows:
        """The last rows of the screen and above it, each on a line of its own, down to the cursor at least."""
        rows = [*self._recent, *self.screen.rows]
        least = len(self._recent) + self.screen.row
        while len(rows) > least + 1 and not rows[-1].text(whole=False):
            rows.pop()
        cursor = (least - max(len(rows) - count, 0), self.screen.characters_before)
        rows = rows[-count:]
        runs = [run for number, row in enumerate(rows) for run in row.runs(number, 0)]
        return TerminalRows(
            "\n".join(row.text(whole=False) for row in rows), tuple(runs), "", cursor if self.shows_cursor else None
        )

    def _list_written_rows(self) -> list[ScreenRow]:
        rows = list(self.screen.rows)
        while rows and not rows[-1].text(whole=False):
            rows.pop()
        return rows

    def _read(self, data: bytes, *, final: bool = False) -> None:
        if self._reader.rests:
            data = _OVERWRITING.sub(self._keep_visible, data)
        for part in self._reader.feed(data, final=final):
            self._obey(part)

    def _keep_visible(self, match: re.Match[bytes]) -> bytes:
        """Keep those texts of one row that no later one covers."""
        kept: list[bytes] = []
        longest = -1
        for text in reversed(match[0].split(b"\r")[1:]):
            if len(text) > self.screen.columns:
                return match[0]
            if len(text) > longest:
                longest = len(text)
                kept.append(text)
        return b"".join(b"\r" + text for text in reversed(kept))

    def _take_lines(self, text: str) -> None:
        """Take plain lines at the foot of the screen; all but the last of them go through it unseen."""
        lines = text.split("\r\n")
        last = lines[-self.screen.height - 1 :]
        unseen = lines[: len(lines) - len(last)]
        if unseen:
            for row, below in pairwise([*self.screen.rows[:-1], ScreenRow()]):
                self._leave(row, below)
            self.screen.rows, self.screen.row = [ScreenRow()], 0
            self._recent.clear()
            text = "\n".join(line.rstrip(" ") for line in unseen)
            self._keep(text if self._place.line < 0 else f"\n{text}")
            self._place = RowsEnd(self._place.line + len(unseen), len(unseen[-1]))
        for line in last[:-1]:
            self.screen.write(line)
            self.screen.column = 0
            self.screen.line_feed()

    def _obey(self, part: StreamPart) -> None:
        match part.kind:
            case SequenceKind.TEXT:
                self.screen.write(part.text)
            case SequenceKind.CONTROL:
                self.screen.control(part.text)
            case SequenceKind.SEQUENCE if part.text.startswith("?"):
                self._set_modes(part.text.split(";"), part.letter)
            case SequenceKind.SEQUENCE:
                self.screen.sequence(part.text, part.letter)
            case SequenceKind.ESCAPE:
                self.screen.escape(part.text)
            case SequenceKind.STRING:
                if self._mark and part.text.startswith(self._mark):
                    self.folder = folder_of(part.text.removeprefix(self._mark))

    def _set_modes(self, modes: Sequence[str], letter: str) -> None:
        for mode in modes:
            mode = f"?{mode.removeprefix('?')}"
            if mode == "?25" and letter in {"h", "l"}:
                self.shows_cursor = letter == "h"
            elif mode == "?1" and letter in {"h", "l"}:
                self.modes = replace(self.modes, application_keys=letter == "h")
            elif mode == "?2004" and letter in {"h", "l"}:
                self.modes = replace(self.modes, brackets_pastes=letter == "h")

    def _leave(self, row: ScreenRow, below: ScreenRow) -> None:
        """A row is final."""
        text, runs, self._place = _piece(row, below, self._place)
        for run in runs:
            (self._first if len(self._first) < MOST_RUNS else self._last).append(run)
        self._keep(text)
        self._recent.append(row)

    def _keep(self, text: str) -> None:
        self._kept.feed(text.encode())
        self._untaken.append(text)


def _piece(row: ScreenRow, below: ScreenRow, place: RowsEnd) -> tuple[str, list[TextRun], RowsEnd]:
    """A row behind the final ones: what it adds to their text, its runs, and the place behind it."""
    begins = not row.joined or place.line < 0
    line, offset = (place.line + 1, 0) if begins else place
    text = row.text(whole=below.joined)
    return f"\n{text}" if begins and line else text, row.runs(line, offset), RowsEnd(line, offset + len(text))


def folder_of(spelled: str) -> str:
    """A folder spelled in hexadecimal bytes; empty where it is no absolute path."""
    try:
        folder = bytes.fromhex(spelled).decode("utf-8", "surrogateescape")
    except ValueError:
        return ""
    return folder if folder.startswith("/") and "\0" not in folder else ""


MOST_MODES: Final = 64
"""Private modes that are remembered."""
_NUMBERS: Final = rb"[0-9;]{0,64}+"
_SWITCH: Final = re.compile(
    rb"(?:\x1b\[|\xc2\x9b)\?(?:[0-9]{1,5};){0,16}(?:1049|1047|47)(?:;[0-9]{1,5}){0,16}(?P<letter>[hl])|(?P<reset>\x1bc)"
)
"""Sequences that switch to the alternate screen and back; a reset leaves it, too (xterm)."""
_UNFINISHED: Final = re.compile(rb"(?:\x1b(?:\[(?:\?" + _NUMBERS + rb")?)?|\xc2(?:\x9b(?:\?" + _NUMBERS + rb")?)?)\Z")
_MODES: Final = re.compile(rb"\x1b\[\?(?P<numbers>[0-9;]{1,64})(?P<letter>[hl])|\x1b(?P<keypad>[=>])")
_NOT_KEPT: Final = frozenset({b"1049", b"1047", b"1048", b"47", b"2026"})
"""The screens, the saved cursor, and half-drawn frames."""
ENTERS: Final = b"\x1b[?1049h\x1b[H\x1b[2J"
WHOLE_SCREEN: Final = b"\x1b7\x1b[r\x1b8"
"""Lets all rows scroll, which a terminal does that has another size: programs rely on it (vim)."""

_OPEN: Final = re.compile(rb"(?:\x1b(?:\[[0-?]*[ -/]*|[\]PX^_][^\x07\x1b]*\x1b?|[ -/]*)|[\xc2-\xf4][\x80-\xbf]{0,2})\Z")
"""A sequence or a character at the end that may go on with the next bytes."""
LONGEST_OPEN: Final = 4_096


def append_whole_screen(drawn: bytes) -> bytes:
    """Add `WHOLE_SCREEN` to what a program has drawn, before a sequence whose rest is still to come."""
    unfinished = _OPEN.search(drawn, max(len(drawn) - LONGEST_OPEN, 0))
    edge = unfinished.start() if unfinished is not None else len(drawn)
    return drawn[:edge] + WHOLE_SCREEN + drawn[edge:]


class OutputPiece(NamedTuple):
    """Bytes for one of the screens; the sequences that switch are drawn."""

    is_drawn: bool
    content: bytes


class ScreenSplitter:
    """Follows one program; holds back at most one unfinished sequence."""

    def __init__(self) -> None:
        self.is_drawing = False
        """True while the program uses the alternate screen."""
        self._held = b""
        self._modes: dict[bytes, bytes] = {}
        self._keypad = b""

    def feed(self, data: bytes, *, final: bool = False) -> Iterator[OutputPiece]:
        """The next bytes in order; `is_drawing` is that behind the newest piece. Take all of them."""
        data, self._held = self._held + data, b""
        unfinished = None if final else _UNFINISHED.search(data, max(len(data) - 70, 0))
        if unfinished is not None:
            data, self._held = data[: unfinished.start()], unfinished[0]
        place = 0
        for switch in _SWITCH.finditer(data):
            draws = switch["letter"] == b"h"
            if draws is self.is_drawing:
                continue
            edge = switch.start() if draws else switch.end()
            yield from self._piece(data[place:edge])
            place, self.is_drawing = edge, draws
        yield from self._piece(data[place:])

    def sequences(self) -> bytes:
        """Sequences that put another terminal into the modes that the program has set, on its alternate screen."""
        modes = [b"\x1b[?" + number + letter for number, letter in self._modes.items()]
        return ENTERS + b"".join(modes) + self._keypad

    def _piece(self, content: bytes) -> Iterator[OutputPiece]:
        if not content:
            return
        if b"\x1b" in content:
            for mode in _MODES.finditer(content):
                if mode["keypad"]:
                    self._keypad = mode[0]
                for number in (mode["numbers"] or b"").split(b";"):
                    if number and number not in _NOT_KEPT and (number in self._modes or len(self._modes) < MOST_MODES):
                        self._modes[number] = mode["letter"]
        yield OutputPiece(self.is_drawing, content)
