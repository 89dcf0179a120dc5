"""Terminal output of a program, as cells with resolved colours and stopped clocks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

import pyte
from msgspec import Struct
from msgspec.structs import replace

from tests.support.program import UNKNOWN_TO_PYTE

INK, GROUND = "#d5d9e0", "#101317"
"""Replacements of the terminal's own colours."""
NAMED: Final = {
    "black": "#1d2127",
    "red": "#ff7b81",
    "green": "#83cd86",
    "brown": "#ecb65c",
    "blue": "#6cb2ff",
    "magenta": "#c5a3ff",
    "cyan": "#6fd3d3",
    "white": "#d5d9e0",
}
DIM: Final = 0.6
"""The share of the ink that dim text keeps."""
TIMES: Final = re.compile(r"(?<![\w.])(\d+)(?:\.(\d+))?(?=\s?(?:ms|s|m|tok/s)(?!\w))")
"""Numbers before a unit of time or a rate."""
CLOCK: Final = re.compile(r"(?<=[› ] )\d\d:\d\d:\d\d(?= \S+ · )")
"""The time of a run in a list."""
CHANCE: Final = re.compile(r"(?<=last call )[\d,]+|(?<=phoenix-pictures-)\w{8}")
"""Durations and names of temporary folders."""
PROCESS: Final = re.compile(r"(?<=process {6})[\d ]{8}")
PORT: Final = re.compile(r"(?<=127\.0\.0\.1:)\d{5}")
LIST: Final = 31
"""Columns of the list at the left, its border included, and its clocks."""
LAST: Final = re.compile(r"(?:  |· )\S+(?:s|m)[ ▁-█]*$")
"""The clock that ends a row: set off by blanks or a point, as nothing that was said is."""
TURNING: Final = str.maketrans("◓◑◒", "◐◐◐")


class Cell(Struct, frozen=True):
    """One place of the screen; `text` is empty behind a wide character. Colours are `#rrggbb`."""

    text: str
    ink: str
    ground: str
    bold: bool = False
    slanted: bool = False
    underlined: bool = False
    struck: bool = False


class Screen(pyte.Screen):
    """A screen that knows dim text, which pyte forgets: kept in the place of blinking text."""

    def select_graphic_rendition(self, *attributes: int, **flags: Any) -> None:
        """SGR, with 2 read as 5."""
        super().select_graphic_rendition(*_blinking_for_dim(attributes), **flags)


def cells(raw: bytes, columns: int, rows: int) -> list[list[Cell]]:
    """The screen after these bytes, its clocks stopped."""
    screen = Screen(columns, rows)
    pyte.ByteStream(screen).feed(UNKNOWN_TO_PYTE.sub(b"", raw))
    return [_stopped([_cell(screen.buffer[y][x]) for x in range(columns)], anywhere=y == rows - 1) for y in range(rows)]


def _blinking_for_dim(attributes: tuple[int, ...]) -> Iterator[int]:
    """Dim becomes blinking; the numbers of a colour are left alone."""
    left = list(attributes)
    while left:
        code = left.pop(0)
        if code in (38, 48) and left:
            length = 4 if left[0] == 2 else 2
            yield from (code, *left[:length])
            del left[:length]
        elif code == 22:
            yield from (22, 25)
        else:
            yield 5 if code == 2 else code


def _cell(char: Any) -> Cell:
    ink, ground = _colour(char.fg, INK), _colour(char.bg, GROUND)
    if char.reverse:
        ink, ground = ground, ink
    if char.blink:
        ink = _mixed(ink, ground)
    return Cell(char.data, ink, ground, char.bold, char.italics, char.underscore, char.strikethrough)


def _colour(name: str, default: str) -> str:
    if name == "default":
        return default
    return NAMED.get(name.removeprefix("bright"), f"#{name}")


def _mixed(ink: str, ground: str) -> str:
    """Ink thinned with its ground."""
    pairs = zip(bytes.fromhex(ink[1:]), bytes.fromhex(ground[1:]), strict=True)
    return "#" + bytes(round(one * DIM + other * (1 - DIM)) for one, other in pairs).hex()


def _stopped(row: list[Cell], *, anywhere: bool) -> list[Cell]:
    """The same row with the same digits in its clocks at every making, no column moved."""
    text = "".join(cell.text[:1] or "\0" for cell in row).translate(TURNING)
    last = len(row) if (found := LAST.search(text)) is None else found.start()
    everywhere = anywhere or "■" in text
    listed = text[:LIST].rfind("│") + 1
    still = TIMES.sub(
        lambda found: _still(found) if everywhere or found.start() < listed or found.start() > last else found[0], text
    )
    still = CLOCK.sub("09:41:07", PORT.sub("50443", still))
    still = PROCESS.sub("4567    ", still)
    still = CHANCE.sub(lambda found: re.sub(r"\w", "4", found[0]), still)
    return [
        cell if sign in {cell.text[:1], "\0"} else replace(cell, text=sign)
        for cell, sign in zip(row, still, strict=True)
    ]


def _still(found: re.Match[str]) -> str:
    whole, tenths = found[1], found[2]
    small = "0" if tenths else "4"
    return (small if len(whole) == 1 else "4".rjust(len(whole), "1")) + ("." + "4" * len(tenths) if tenths else "")
