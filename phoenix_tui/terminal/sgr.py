"""Character styles as a terminal takes them, and the shortest way from one to the next (ECMA-48 8.3.117, SGR)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Final, NamedTuple

from rich.color import ColorSystem
from rich.style import Style

KEPT: Final = 4096
"""Styles, and pairs of them, whose sequences are kept."""
_COLOUR: Final = frozenset(map(str, (*range(30, 38), *range(90, 98), 38, 39)))
_GROUND: Final = frozenset(map(str, (*range(40, 48), *range(100, 108), 48, 49)))
_LONG: Final = {"5": 3, "2": 5}
"""Parameters of a colour by the one behind 38 or 48."""
_OFF: Final = {
    "1": "22", "2": "22", "3": "23", "4": "24", "5": "25", "6": "25", "7": "27", "8": "28", "9": "29", "21": "24",
}  # fmt: skip
_SEEN_ON_BLANKS: Final = frozenset({"4", "7", "9", "21", "51", "52", "53"})
"""Attributes that show where nothing is written: lines, frames, exchanged colours."""


class CellStyle(NamedTuple):
    """A style taken apart."""

    attributes: tuple[str, ...]
    colour: str
    """Empty for the terminal's own, as `ground`."""
    ground: str

    @property
    def code(self) -> str:
        """The parameters of an SGR sequence; empty for a style without any."""
        return ";".join(filter(None, (*self.attributes, self.colour, self.ground)))


@lru_cache(KEPT)
def code_of(style: Style | None, colours: ColorSystem) -> str:
    """The SGR parameters of a style without its link, always the same text for the same look."""
    if style is None:
        return ""
    return look_of(style._make_ansi_codes(colours)).code  # pyright: ignore[reportPrivateUsage] - render() adds the link


@lru_cache(KEPT)
def look_of(code: str) -> CellStyle:
    """The style that SGR parameters set where none was set before."""
    attributes, colour, ground = list[str](), "", ""
    for each in _parameters(code):
        kind = each.partition(";")[0]
        if kind in _COLOUR:
            colour = "" if kind == "39" else each
        elif kind in _GROUND:
            ground = "" if kind == "49" else each
        else:
            attributes.append(each)
    return CellStyle(tuple(attributes), colour, ground)


def _parameters(code: str) -> Iterator[str]:
    """Single parameters; a colour of several is one."""
    parts = code.split(";") if code else []
    place = 0
    while place < len(parts):
        length = _LONG.get(parts[place + 1], 1) if parts[place] in {"38", "48"} and place + 1 < len(parts) else 1
        yield ";".join(parts[place : place + length])
        place += length


@lru_cache(KEPT)
def blank_code(code: str) -> str:
    """The style of a blank that looks the same: its background alone, unless a line goes through it."""
    look = look_of(code)
    return code if _SEEN_ON_BLANKS.intersection(look.attributes) else look.ground


@lru_cache(KEPT)
def is_erasable(code: str) -> bool:
    """True when erasing in this style leaves the same blanks as writing them."""
    return not _SEEN_ON_BLANKS.intersection(look_of(code).attributes)


@lru_cache(KEPT)
def change_of_style(before: str, after: str) -> str:
    """The shortest SGR sequence from one style to another; empty where they are the same."""
    if before == after:
        return ""
    if not after:
        return "\x1b[m"
    step = _step(look_of(before), look_of(after))
    afresh = f"0;{after}"
    return f"\x1b[{step if step is not None and len(step) <= len(afresh) else afresh}m"


def _step(old: CellStyle, new: CellStyle) -> str | None:
    """The parameters that change the differences; None where one that stays would be switched off too."""
    gone = [each for each in old.attributes if each not in new.attributes]
    off = {_OFF.get(each, "") for each in gone}
    if "" in off or any(_OFF.get(each) in off for each in new.attributes):
        return None
    added = [each for each in new.attributes if each not in old.attributes]
    colour = [new.colour or "39"] if new.colour != old.colour else []
    ground = [new.ground or "49"] if new.ground != old.ground else []
    return ";".join([*sorted(off), *added, *colour, *ground])
