"""The screen of a program in a terminal: rows of cells with their looks, a cursor, and what leaves at the top."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import groupby
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from tools.clean import MOST_MARKS, compile_hidden_pattern
from tools.terminal.values import TextRun

BLANK: Final = " "
COVERED: Final = ""
"""Cell that the wide character before it covers."""
_NO_WIDTH: Final = frozenset({"Mn", "Me", "Cf", "Cc", "Cs"})


@lru_cache(maxsize=4096)
def width_of(character: str) -> int:
    """Cells that a character takes: 0, 1 or 2; -1 for one that is never shown."""
    if unicodedata.category(character) in _NO_WIDTH:
        return 0
    if compile_hidden_pattern().match(character):
        return -1
    return 2 if unicodedata.east_asian_width(character) in {"W", "F"} else 1


@lru_cache(maxsize=4096)
def is_kept(base: str, mark: str) -> bool:
    """True where a character without width may stand on the cell `base`: it neither hides nor reorders."""
    if unicodedata.category(mark) in {"Cc", "Cs"} or mark == "\u200d" or len(base) > MOST_MARKS:
        return False
    return compile_hidden_pattern().search(base + mark) is None


class ScreenRow:
    """One row of the screen."""

    __slots__ = ("chars", "joined", "looks", "styled")

    def __init__(self, *, joined: bool = False) -> None:
        self.chars: list[str] = []
        self.looks: list[str] = []
        self.joined = joined
        """True where it goes on the row above: the line was longer than the screen."""
        self.styled = False
        """True once a cell may have a look of its own."""

    def put(self, column: int, cells: Sequence[str], look: str) -> None:
        """Write cells from a column on."""
        if column > len(self.chars):
            self.pad(column)
        end = column + len(cells)
        self._split(column)
        self._split(end)
        self.chars[column:end] = cells
        self.looks[column:end] = [look] * len(cells)
        self.styled = self.styled or bool(look)

    def mark(self, column: int, character: str) -> None:
        """Put a character without width on the cell before a column."""
        place = min(column, len(self.chars)) - 1
        if place > 0 and self.chars[place] == COVERED:
            place -= 1
        if place >= 0 and is_kept(self.chars[place], character):
            self.chars[place] += character

    def pad(self, column: int) -> None:
        """Fill it with blanks up to a column."""
        missing = column - len(self.chars)
        self.chars += [BLANK] * missing
        self.looks += [""] * missing

    def cut(self, column: int) -> None:
        """Erase from a column on."""
        self._split(column)
        del self.chars[column:], self.looks[column:]

    def erase(self, start: int, end: int) -> None:
        """Put blanks in place of cells that are there."""
        if end >= len(self.chars):
            self.cut(start)
        elif start < end:
            self.put(start, [BLANK] * (end - start), "")

    def delete(self, column: int, count: int) -> None:
        """Take cells out; those behind move to the left."""
        self._split(column)
        self._split(column + count)
        del self.chars[column : column + count], self.looks[column : column + count]

    def insert(self, column: int, count: int, columns: int) -> None:
        """Put blanks before a column; what moves beyond the last of `columns` is gone."""
        self._split(column)
        if column < len(self.chars):
            self.chars[column:column] = [BLANK] * count
            self.looks[column:column] = [""] * count
            self.cut(columns)

    def text(self, *, whole: bool) -> str:
        """Return the characters; without `whole` no plain blanks at the end."""
        end = len(self.chars)
        while not whole and end and self.chars[end - 1] == BLANK and not self.looks[end - 1]:
            end -= 1
        return "".join(self.chars[:end])

    def runs(self, row: int, offset: int) -> list[TextRun]:
        """Return pieces with a look of their own, as parts of the line `row` from the character `offset` on."""
        if not self.styled:
            return []
        found: list[TextRun] = []
        place = offset
        for look, cells in groupby(zip(self.looks, self.chars, strict=True), key=lambda cell: cell[0]):
            end = place + sum(len(char) for _, char in cells)
            if look and end > place:
                found.append(TextRun(row, place, end, look))
            place = end
        return found

    def _split(self, column: int) -> None:
        """Let no wide character stand across the left edge of a column."""
        if 0 < column < len(self.chars) and self.chars[column] == COVERED:
            self.chars[column - 1] = self.chars[column] = BLANK


MOST_NUMBER: Final = 255
_ON: Final = {1: "bold", 2: "dim", 3: "italic", 4: "underline", 7: "reverse", 9: "strike"}
"""Attributes that are kept; blinking and hidden text are not."""
_OFF: Final = {22: ("bold", "dim"), 23: ("italic",), 24: ("underline",), 27: ("reverse",), 29: ("strike",)}
_COLOURS: Final = frozenset({*range(30, 38), *range(90, 98)})
_GROUNDS: Final = frozenset({*range(40, 48), *range(100, 108)})
_LENGTHS: Final = {5: 1, 2: 3}
"""Numbers of an extended colour behind its kind: an index of the palette, or red, green and blue."""


class Look(Struct, frozen=True):
    """Attributes and colours of a cell."""

    bold: bool = False
    dim: bool = False
    italic: bool = False
    underline: bool = False
    reverse: bool = False
    strike: bool = False
    colour: str = ""
    """SGR parameters of the foreground, such as `31` or `38;5;208`; empty for the usual one, as `ground`."""
    ground: str = ""

    @property
    def code(self) -> str:
        """The SGR parameters that set it; empty for the usual look."""
        attributes = (str(number) for number, name in _ON.items() if getattr(self, name))
        return ";".join(filter(None, (*attributes, self.colour, self.ground)))


PLAIN: Final = Look()


@lru_cache(maxsize=1024)
def after_sgr(look: Look, parameters: str) -> Look:
    """The look after `CSI parameters m`; a number that means nothing here changes nothing."""
    numbers = _sgr_numbers(parameters)
    while numbers:
        number = numbers.pop(0)
        look = _extend_colour(look, number, numbers) if number in {38, 48} else _simple(look, number)
    return look


def look_of(code: str) -> Look:
    """The look that SGR parameters set where none was set before."""
    return after_sgr(PLAIN, code)


def _sgr_numbers(parameters: str) -> list[int]:
    """Numbers of a sequence; `:` separates as `;` does, the form that leaves a colour space out included."""
    parts = parameters.replace("::", ":").replace(":", ";").split(";")
    if not all(part.isascii() and (part.isdecimal() or not part) for part in parts):
        return []
    return [min(int(part[-9:] or 0), 9999) for part in parts]


def _simple(look: Look, number: int) -> Look:
    if number == 0:
        return PLAIN
    if number in _ON:
        return replace(look, **{_ON[number]: True})
    if number == 21:  # doubly underlined
        return replace(look, underline=True)
    if number in _OFF:
        return replace(look, **dict.fromkeys(_OFF[number], False))
    if number in _COLOURS or number == 39:
        return replace(look, colour="" if number == 39 else str(number))
    if number in _GROUNDS or number == 49:
        return replace(look, ground="" if number == 49 else str(number))
    return look


def _extend_colour(look: Look, number: int, rest: list[int]) -> Look:
    """Take a colour of the palette, or an exact one, from the front of `rest`."""
    kind = rest.pop(0) if rest else 0
    length = _LENGTHS.get(kind, 0)
    values, rest[:length] = rest[:length], []
    if not length or len(values) < length or max(values) > MOST_NUMBER:
        return look
    code = ";".join(map(str, (number, kind, *values)))
    return replace(look, colour=code) if number == 38 else replace(look, ground=code)


TAB: Final = 8
_MOVES: Final = frozenset("ABCDEFGH`adef")
"""Letters of sequences that move the cursor."""
MOST_COLUMNS: Final = 1000
MOST_ROWS: Final = 50
"""Rows of a screen at most, which bounds what a program can change; rows above are final."""


class CellScreen:
    """Rows of at most `columns` cells, the cursor, and the look of the next characters."""

    def __init__(self, columns: int, height: int, leaves: Callable[[ScreenRow, ScreenRow], None]) -> None:
        self.rows: list[ScreenRow] = [ScreenRow()]
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
        self.rows.append(ScreenRow())
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
            self.rows.append(ScreenRow())

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
