"""Look of a screen as text: its rows, then the runs of every row that are not plain, by meaning."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Final, NamedTuple

from rich.cells import cell_len
from rich.color import Color
from rich.color_triplet import ColorTriplet
from rich.segment import Segment
from rich.style import Style
from textual.theme import Theme

from phoenix_tui.text.labels import TURNING

MARKS: Final = ("bold", "dim", "italic", "underline", "underline2", "strike", "reverse", "blink")
ON_BLANKS: Final = ("underline", "underline2", "strike", "reverse")
"""Marks that are seen where nothing is written."""

TURNED: Final = str.maketrans(TURNING, TURNING[0] * len(TURNING))
"""A sign that turns has the same face in every snapshot: it goes by ticks, not by a clock."""


class Look(NamedTuple):
    """Look of a cell."""

    marks: tuple[str, ...] = ()
    ink: str = "foreground"
    """Also where nothing is written and no other can be seen."""
    ground: str = "background"

    def __str__(self) -> str:
        ink = (self.ink,) if self.ink != "foreground" else ()
        ground = ("on", self.ground) if self.ground != "background" else ()
        return " ".join((*self.marks, *ink, *ground))


def meanings(theme: Theme) -> dict[str, str]:
    """The names of a theme's colours (docs/decisions/looks.md) by `#rrggbb`."""
    named = {
        "background": theme.background,
        "surface": theme.surface,
        "panel": theme.panel,
        "foreground": theme.foreground,
        "you": theme.accent,
        "work": theme.primary,
        "needs-you": theme.warning,
        "good": theme.success,
        "bad": theme.error,
        "quiet": theme.variables["text-muted"],
        "selection": theme.variables["screen-selection-background"],
        "scrollbar": theme.variables["scrollbar"],
    }
    return {colour.lower(): name for name, colour in reversed(named.items()) if colour is not None}


def written(rows: Iterable[Iterable[Segment]], names: Mapping[str, str]) -> list[str]:
    """The lines of a snapshot: text of each row, an empty line, the runs of rows that have any."""
    texts: list[str] = []
    runs: list[str] = []
    for number, row in enumerate(rows):
        segments = [one for one in row if one.text and not one.control]
        texts.append(f"{number:2} {''.join(one.text for one in segments)}".rstrip().translate(TURNED))
        runs.append(" · ".join(spans(segments, names)))
    return [*texts, "", *_numbered(runs)]


def _numbered(runs: Iterable[str]) -> Iterator[str]:
    """Each line with its row; equal neighbouring rows take one line."""
    for run, found in groupby(enumerate(runs), lambda numbered: numbered[1]):
        numbers = [number for number, _ in found]
        if run:
            yield f"{_range(numbers[0], numbers[-1])}: {run}"


def spans(segments: Iterable[Segment], names: Mapping[str, str]) -> Iterator[str]:
    """`0-12 bold you on surface` for every run that is not plain; columns count from 0, the last one included."""
    at = 0
    for look, cells in groupby(_joined([cell for segment in segments for cell in _cells(segment, names)])):
        width = len(list(cells))
        if said := str(look):
            yield f"{_range(at, at + width - 1)} {said}"
        at += width


def _range(first: int, last: int) -> str:
    return f"{first}-{last}" if last > first else f"{first}"


def _joined(cells: Sequence[tuple[Look, bool]]) -> Iterator[Look]:
    """Join blanks between two letters of the same look to their run: their colour is invisible."""
    runs = [(look, is_blank, len(list(found))) for (look, is_blank), found in groupby(cells)]
    for at, (look, is_blank, width) in enumerate(runs):
        before, after = (runs[at - 1][0], runs[at + 1][0]) if 0 < at < len(runs) - 1 else (look, look)
        within = is_blank and before == after and look == _blank(before)
        yield from [before if within else look] * width


def _blank(look: Look) -> Look:
    """Visible part of a look without text."""
    marks = tuple(mark for mark in look.marks if mark in ON_BLANKS)
    return Look(marks, look.ink if marks else "foreground", look.ground)


def _cells(segment: Segment, names: Mapping[str, str]) -> Iterator[tuple[Look, bool]]:
    """The look of each cell, and whether nothing is written in it."""
    style = segment.style or Style.null()
    ink, ground = _named(style.color, "foreground", names), _named(style.bgcolor, "background", names)
    look = Look(tuple(mark for mark in MARKS if getattr(style, mark)), ink, ground)
    blank, written = (_blank(look), True), (look, False)
    for letter in segment.text:
        yield from [blank if letter in " \u00a0" else written] * (1 if letter.isascii() else cell_len(letter))


def _named(colour: Color | None, default: str, names: Mapping[str, str]) -> str:
    if colour is None or colour.is_default:
        return default
    if colour.triplet is None:
        return colour.name
    return names.get(colour.triplet.hex) or next(
        (name for known, name in names.items() if _alike(colour.triplet, ColorTriplet(*bytes.fromhex(known[1:])))),
        colour.triplet.hex,
    )


def _alike(one: ColorTriplet, other: ColorTriplet) -> bool:
    """The same but for rounding: Textual computes with fractions."""
    return all(abs(a - b) <= 1 for a, b in zip(one, other, strict=True))
