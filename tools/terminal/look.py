"""Looks of cells: the attributes and colours that SGR sequences set, as one canonical text (ECMA-48 8.3.117)."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

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
    numbers = _numbers(parameters)
    while numbers:
        number = numbers.pop(0)
        look = _extended(look, number, numbers) if number in {38, 48} else _simple(look, number)
    return look


def look_of(code: str) -> Look:
    """The look that SGR parameters set where none was set before."""
    return after_sgr(PLAIN, code)


def _numbers(parameters: str) -> list[int]:
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


def _extended(look: Look, number: int, rest: list[int]) -> Look:
    """Take a colour of the palette, or an exact one, from the front of `rest`."""
    kind = rest.pop(0) if rest else 0
    length = _LENGTHS.get(kind, 0)
    values, rest[:length] = rest[:length], []
    if not length or len(values) < length or max(values) > MOST_NUMBER:
        return look
    code = ";".join(map(str, (number, kind, *values)))
    return replace(look, colour=code) if number == 38 else replace(look, ground=code)
