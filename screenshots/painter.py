"""A terminal's cells as a picture: colours, bold, italic, dim, underline, reverse and wide characters."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Final, TypeAlias

from PIL import Image, ImageDraw, ImageFont

from screenshots.cells import Cell

FONTS: Final = Path("/usr/share/fonts/truetype/dejavu")
SIZE: Final = 20
"""Pixels of an em; DejaVu Sans Mono is then 12 wide."""
WIDTH, HEIGHT, MARGIN = 12, 24, 14
"""Pixels of a cell and of the border round the screen."""
Rectangle: TypeAlias = tuple[float, float, float, float]
STROKES: Final[dict[str, tuple[Rectangle, ...]]] = {
    "─": ((0, 11 / 24, 1, 12 / 24),),
    "━": ((0, 10 / 24, 1, 13 / 24),),
    "│": ((5 / 12, 0, 6 / 12, 1),),
    "┃": ((4 / 12, 0, 7 / 12, 1),),
    "┼": ((0, 11 / 24, 1, 12 / 24), (5 / 12, 0, 6 / 12, 1)),
    "█": ((0, 0, 1, 1),),
    "▀": ((0, 0, 1, 0.5),),
    "▌": ((0, 0, 0.5, 1),),
    "▐": ((0.5, 0, 1, 1),),
    "▎": ((0, 0, 0.25, 1),),
    "▏": ((0, 0, 0.125, 1),),
    "▊": ((0, 0, 0.75, 1),),
    **{sign: ((0, 1 - share / 8, 1, 1),) for share, sign in enumerate("▁▂▃▄▅▆▇", 1)},
}
"""Signs that touch their neighbours, as shares of a cell: a font leaves gaps between the rows."""

STAND_INS: Final = {"␠": "␣"}
"""Signs that the font lacks, and what means the same."""


def paint(rows: list[list[Cell]]) -> Image.Image:
    """The picture of a screen."""
    ground = rows[0][0].ground
    size = (len(rows[0]) * WIDTH + 2 * MARGIN, len(rows) * HEIGHT + 2 * MARGIN)
    image = Image.new("RGB", size, ground)
    draw = ImageDraw.Draw(image)
    for y, row in enumerate(rows):
        for x, cell in enumerate(row):
            _fill(draw, _corner(x, y), cell)
    for y, row in enumerate(rows):
        for x, cell in enumerate(row):
            if cell.text.strip():
                _write(draw, _corner(x, y), cell)
    return image


def _corner(x: int, y: int) -> tuple[int, int]:
    return MARGIN + x * WIDTH, MARGIN + y * HEIGHT


def _fill(draw: ImageDraw.ImageDraw, corner: tuple[int, int], cell: Cell) -> None:
    x, y = corner
    draw.rectangle((x, y, x + WIDTH - 1, y + HEIGHT - 1), cell.ground)
    if cell.underlined:
        draw.line((x, y + HEIGHT - 3, x + WIDTH - 1, y + HEIGHT - 3), cell.ink)


def _write(draw: ImageDraw.ImageDraw, corner: tuple[int, int], cell: Cell) -> None:
    x, y = corner
    strokes = STROKES.get(cell.text)
    for left, top, right, bottom in strokes or ():
        box = (x + round(left * WIDTH), y + round(top * HEIGHT))
        draw.rectangle((*box, x + round(right * WIDTH) - 1, y + round(bottom * HEIGHT) - 1), cell.ink)
    if strokes is None:
        sign = STAND_INS.get(cell.text, cell.text)
        font = _font(bold=cell.bold, slanted=cell.slanted) if _known(sign) else _font_of("DejaVuSans")
        draw.text((x, y + HEIGHT - 6), sign, cell.ink, font, anchor="ls")
    if cell.struck:
        draw.line((x, y + HEIGHT // 2, x + WIDTH - 1, y + HEIGHT // 2), cell.ink)


def _font(*, bold: bool, slanted: bool) -> ImageFont.FreeTypeFont:
    style = ("Bold" if bold else "") + ("Oblique" if slanted else "")
    return _font_of(f"DejaVuSansMono{f'-{style}' if style else ''}")


@cache
def _font_of(name: str) -> ImageFont.FreeTypeFont:
    return ImageFont.truetype(FONTS / f"{name}.ttf", SIZE)


@cache
def _known(text: str) -> bool:
    """True when the monospaced font has this sign: an unknown one looks as U+FFFF does."""
    return _looks(text) != _looks("\uffff")


def _looks(text: str) -> bytes:
    image = Image.new("L", (2 * WIDTH, HEIGHT))
    ImageDraw.Draw(image).text((0, HEIGHT - 6), text, 255, _font_of("DejaVuSansMono"), anchor="ls")
    return image.tobytes()
