"""Looks that programs set, in the colours of a theme and readable on its background."""

from __future__ import annotations

from msgspec import Struct
from rich.color import Color as RichColor
from rich.style import Style
from textual.color import Color

from tools.terminal.look import look_of

LEAST_CONTRAST = 0.2
"""Difference of brightness below which a text is hard to read; it gets black or white then."""
LEAST_ON_A_COLOUR = 0.3
"""The same on a ground that the program chose: the theme's colours are pale, and white on its red is hard to read."""
_COLOURS = 8
_EXACT = 16
"""Colours of the palette from this one on are the same everywhere."""


class ProgramColours(Struct, frozen=True):
    """The eight colours of programs, black to white, and those of the theme's text."""

    eight: tuple[Color, ...]
    text: Color
    background: Color

    def style(self, code: str) -> Style:
        """The style of SGR parameters."""
        look = look_of(code)
        ground = self._colour(look.ground[1:] if look.ground.startswith("10") else look.ground) or self.background
        colour = self._colour(look.colour) or self.text
        if look.reverse:
            colour, ground = ground, colour
        least = LEAST_CONTRAST if ground == self.background else LEAST_ON_A_COLOUR
        return Style(
            color=_readable(colour, ground, least).rich_color,
            bgcolor=ground.rich_color,
            bold=look.bold or None,
            dim=look.dim or None,
            italic=look.italic or None,
            strike=look.strike or None,
            underline=look.underline or None,
        )

    def _colour(self, code: str) -> Color | None:
        """The colour of parameters such as `31`, `38;5;208` or `48;2;1;2;3`; None for none."""
        if not code:
            return None
        kind, *rest = (int(number) for number in code.split(";"))
        if rest and rest[0] == 2:
            red, green, blue = rest[1:]
            return Color(red, green, blue)
        number = rest[1] if rest else kind % 10 + (_COLOURS if kind >= 90 or kind < 10 else 0)
        if number < _EXACT:
            return self.eight[number % _COLOURS]
        return Color.from_rich_color(RichColor.from_ansi(number))


def _readable(colour: Color, ground: Color, least: float) -> Color:
    if colour.ansi is not None or ground.ansi is not None:
        return colour  # of the terminal itself: its brightness is not known
    near = abs(colour.brightness - ground.brightness) < least
    return ground.get_contrast_text(1.0) if near else colour
