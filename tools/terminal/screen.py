"""The screen of a program in a terminal: rows, a cursor, and what leaves them at the top."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from tools.terminal.cells import BLANK, COVERED, CellRow, width_of
from tools.terminal.look import PLAIN, after_sgr

TAB: Final = 8
_MOVES: Final = frozenset("ABCDEFGH`adef")
"""Letters of sequences that move the cursor."""
MOST_COLUMNS: Final = 1000
MOST_ROWS: Final = 50
"""Rows of a screen at most, which bounds what a program can change; rows above are final."""


class CellScreen:
    """Rows of at most `columns` cells, the cursor, and the look of the next characters."""

    def __init__(self, columns: int, height: int, leaves: Callable[[CellRow, CellRow], None]) -> None:
        self.rows: list[CellRow] = [CellRow()]
        self.row = 0
        self.column = 0
        """Behind the last column while the next character begins a new row."""
        self._saved = (0, 0)
        self._leaves = leaves
        """Called with a row that leaves at the top, and the one below it."""
        self._look = PLAIN
        self._code = ""
        self.columns = self.height = 1
        self.resize(columns, height)

    def resize(self, columns: int, height: int) -> None:
        """Take another size; rows keep their cells."""
        self.columns = min(max(columns, 1), MOST_COLUMNS)
        self.height = min(max(height, 1), MOST_ROWS)
        while len(self.rows) > self.height:
            if self.row < len(self.rows) - 1 and not self.rows[-1].chars:
                self.rows.pop()
            else:
                self._scroll()
        self.column = min(self.column, self.columns)

    @property
    def is_at_start(self) -> bool:
        """True on an empty last row, in the usual look."""
        return self.column == 0 and self.row == len(self.rows) - 1 and not (self.rows[-1].chars or self._code)

    @property
    def characters_before(self) -> int:
        """Number of characters before the cursor in its row, blanks that are not written included."""
        written = self.rows[self.row].chars[: self.column]
        return len("".join(written)) + self.column - len(written)

    def write(self, text: str) -> None:
        """Put printable characters at the cursor."""
        if not text.isascii():
            for character in text:
                self._write_one(character)
            return
        while text:
            if self.column >= self.columns:
                self._wrap()
            piece = text[: self.columns - self.column]
            self.rows[self.row].put(self.column, piece, self._code)
            self.column += len(piece)
            text = text[len(piece) :]

    def line_feed(self) -> None:
        """Go one row down; at the bottom the first row leaves."""
        if self.row + 1 < len(self.rows):
            self.row += 1
            return
        self.rows.append(CellRow())
        if len(self.rows) > self.height:
            self._scroll()
        self.row = len(self.rows) - 1

    def control(self, character: str) -> None:
        """Obey a control character; one that does not move the cursor is passed over."""
        match character:
            case "\n" | "\v" | "\f":
                self.line_feed()
            case "\r":
                self.column = 0
            case "\b":
                self.column = max(min(self.column, self.columns) - 1, 0)
            case "\t":
                self.column = min((self.column // TAB + 1) * TAB, self.columns - 1)
            case _:
                pass

    def escape(self, letter: str) -> None:
        """Obey `ESC letter`: save and restore the cursor, next line, one row up, or start again."""
        match letter:
            case "7":
                self._saved = (self.row, self.column)
            case "8":
                self._restore()
            case "D":
                self.line_feed()
            case "E":
                self.column = 0
                self.line_feed()
            case "M":
                self.row = max(self.row - 1, 0)
            case "c":
                self._set_look("")
                self._erase_screen(2)
                self.row = self.column = 0
            case _:
                pass

    def sequence(self, parameters: str, letter: str) -> None:
        """Obey `CSI parameters letter`; what is not about rows, the cursor or colours is passed over."""
        numbers = _numbers(parameters)
        if letter == "m":
            self._set_look(parameters)
        elif numbers is not None and letter in _MOVES:
            self._move(letter, max(numbers[0], 1), numbers)
        elif numbers is not None:
            self._change(letter, numbers[0])

    def _change(self, letter: str, number: int) -> None:
        """Erase, delete, insert, or keep the cursor's place."""
        row, count = self.rows[self.row], min(max(number, 1), self.columns)
        match letter:
            case "K":
                self._erase_line(number)
            case "J":
                self._erase_screen(number)
            case "P":
                row.delete(min(self.column, self.columns), count)
            case "@":
                row.insert(self.column, count, self.columns)
            case "X":
                row.erase(self.column, min(self.column + count, self.columns))
            case "s":
                self._saved = (self.row, self.column)
            case "u":
                self._restore()
            case _:
                pass

    def _move(self, letter: str, count: int, numbers: Sequence[int]) -> None:
        match letter:
            case "A" | "F":
                self.row = max(self.row - count, 0)
            case "B" | "E" | "e":
                self._go_to(self.row + count)
            case "C" | "a":
                self.column = min(self.column + count, self.columns - 1)
            case "D":
                self.column = max(min(self.column, self.columns - 1) - count, 0)
            case "G" | "`":
                self.column = min(count, self.columns) - 1
            case "d":
                self._go_to(count - 1)
            case _:  # H and f: row and column
                self._go_to(count - 1)
                second = numbers[1] if len(numbers) > 1 else 1
                self.column = min(max(second, 1), self.columns) - 1
        if letter in {"E", "F"}:
            self.column = 0

    def _go_to(self, row: int) -> None:
        """Go to a row of the screen, which is made where no line has reached it yet."""
        self.row = min(row, self.height - 1)
        while len(self.rows) <= self.row:
            self.rows.append(CellRow())

    def _write_one(self, character: str) -> None:
        width = min(width_of(character), self.columns)
        if width == 0:
            self.rows[self.row].mark(self.column, character)
        if width <= 0:
            return
        if self.column + width > self.columns:
            self._wrap()
        self.rows[self.row].put(self.column, [character, COVERED] if width > 1 else [character], self._code)
        self.column += width

    def _wrap(self) -> None:
        self.rows[self.row].pad(self.columns)
        self.column = 0
        self.line_feed()
        self.rows[self.row].joined = True

    def _scroll(self) -> None:
        self._leaves(self.rows.pop(0), self.rows[0])
        self.row = max(self.row - 1, 0)

    def _erase_line(self, part: int) -> None:
        row, column = self.rows[self.row], min(self.column, self.columns - 1)
        if part == 0:
            row.cut(column)
        elif part == 1 and row.chars:
            row.put(0, [BLANK] * min(column + 1, len(row.chars)), "")
        elif part == 2:
            row.cut(0)

    def _erase_screen(self, part: int) -> None:
        if part == 0:
            self._erase_line(0)
            del self.rows[self.row + 1 :]
        elif part in {1, 2}:
            for row in self.rows if part == 2 else self.rows[: self.row]:
                row.cut(0)
                row.joined = False
            if part == 1:
                self._erase_line(1)
            else:
                del self.rows[self.row + 1 :]

    def _restore(self) -> None:
        row, column = self._saved
        self._go_to(row)
        self.column = min(column, self.columns)

    def _set_look(self, parameters: str) -> None:
        self._look = after_sgr(self._look, parameters)
        self._code = self._look.code


def _numbers(parameters: str) -> list[int] | None:
    """The numbers of a sequence, 0 where one is left out; None where it is a private one."""
    parts = parameters.split(";")
    if not all(part.isascii() and (part.isdecimal() or not part) for part in parts):
        return None
    return [min(int(part[-9:] or 0), 99_999) for part in parts]
