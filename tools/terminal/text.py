"""Output of a program in a terminal as text with colours: bounded, and nothing in it acts or hides."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Sequence
from copy import deepcopy
from itertools import pairwise
from typing import Final, NamedTuple

from msgspec.structs import replace

from tools.process.capture import HeadAndTail
from tools.terminal.cells import CellRow
from tools.terminal.screen import CellScreen
from tools.terminal.stream import PartKind, StreamPart, StreamReader
from tools.terminal.values import TerminalModes, TerminalRows, TerminalSize, TextRun

MOST_RUNS: Final = 10_000
"""Coloured pieces that are kept at either end; those between are plain."""
RECENT_ROWS: Final = 50
"""Rows above the screen that are kept for what is shown of a running program."""
LEAST_AT_ONCE: Final = 2_000
"""Bytes of plain lines from which they are taken in one step."""
_PLAIN_LINES: Final = re.compile(rb"(?:[ -~]*+\r\n)*+")
_OVERWRITING: Final = re.compile(rb"(?:\r[ -~]*+){4,}+")
"""One row written several times, as a progress bar is."""


class Place(NamedTuple):
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
        self._recent: deque[CellRow] = deque(maxlen=RECENT_ROWS)
        self._place = Place()
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

    def captured(self) -> tuple[HeadAndTail, tuple[TextRun, ...]]:
        """All rows so far, those of the screen included, without blank ones at the end."""
        kept, runs, place = deepcopy(self._kept), [*self._first, *self._last], self._place
        for row, below in pairwise([*self._written_rows(), CellRow()]):
            text, more, place = _piece(row, below, place)
            kept.feed(text.encode())
            runs += more
        return kept, tuple(runs)

    def finish(self) -> None:
        """End it: the rows of the screen are final, too."""
        self._read(b"", final=True)
        for row, below in pairwise([*self._written_rows(), CellRow()]):
            self._leave(row, below)
        self.screen.rows = [CellRow()]

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

    def _written_rows(self) -> list[CellRow]:
        rows = list(self.screen.rows)
        while rows and not rows[-1].text(whole=False):
            rows.pop()
        return rows

    def _read(self, data: bytes, *, final: bool = False) -> None:
        if self._reader.rests:
            data = _OVERWRITING.sub(self._seen, data)
        for part in self._reader.feed(data, final=final):
            self._obey(part)

    def _seen(self, match: re.Match[bytes]) -> bytes:
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
            for row, below in pairwise([*self.screen.rows[:-1], CellRow()]):
                self._leave(row, below)
            self.screen.rows, self.screen.row = [CellRow()], 0
            self._recent.clear()
            text = "\n".join(line.rstrip(" ") for line in unseen)
            self._keep(text if self._place.line < 0 else f"\n{text}")
            self._place = Place(self._place.line + len(unseen), len(unseen[-1]))
        for line in last[:-1]:
            self.screen.write(line)
            self.screen.column = 0
            self.screen.line_feed()

    def _obey(self, part: StreamPart) -> None:
        match part.kind:
            case PartKind.TEXT:
                self.screen.write(part.text)
            case PartKind.CONTROL:
                self.screen.control(part.text)
            case PartKind.SEQUENCE if part.text.startswith("?"):
                self._set_modes(part.text.split(";"), part.letter)
            case PartKind.SEQUENCE:
                self.screen.sequence(part.text, part.letter)
            case PartKind.ESCAPE:
                self.screen.escape(part.text)
            case PartKind.STRING:
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

    def _leave(self, row: CellRow, below: CellRow) -> None:
        """A row is final."""
        text, runs, self._place = _piece(row, below, self._place)
        for run in runs:
            (self._first if len(self._first) < MOST_RUNS else self._last).append(run)
        self._keep(text)
        self._recent.append(row)

    def _keep(self, text: str) -> None:
        self._kept.feed(text.encode())
        self._untaken.append(text)


def _piece(row: CellRow, below: CellRow, place: Place) -> tuple[str, list[TextRun], Place]:
    """A row behind the final ones: what it adds to their text, its runs, and the place behind it."""
    begins = not row.joined or place.line < 0
    line, offset = (place.line + 1, 0) if begins else place
    text = row.text(whole=below.joined)
    return f"\n{text}" if begins and line else text, row.runs(line, offset), Place(line, offset + len(text))


def folder_of(spelled: str) -> str:
    """A folder spelled in hexadecimal bytes; empty where it is no absolute path."""
    try:
        folder = bytes.fromhex(spelled).decode("utf-8", "surrogateescape")
    except ValueError:
        return ""
    return folder if folder.startswith("/") and "\0" not in folder else ""
