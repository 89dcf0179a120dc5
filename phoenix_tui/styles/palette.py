"""Surfaces for terminals of 256 colours, from the grey ramp of their palette.

For a dark surface with a hint of a hue, Rich chooses the nearest colour of the 6x6x6 cube: black for all of them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from textual.app import App
from textual.color import Color
from textual.theme import Theme

SYSTEM: Final = "256"
"""Rich's name of a terminal with 256 colours."""
DARKEST: Final = 8
STEP: Final = 10
GREYS: Final = 24
"""The ramp: colours 232 to 255, from #080808 on in steps of ten."""
SURFACES: Final = (
    "scrollbar",
    "scrollbar-hover",
    "scrollbar-background",
    "scrollbar-background-hover",
    "scrollbar-background-active",
)


def has_palette(app: App[Any]) -> bool:
    """True when the terminal shows 256 colours and no others."""
    return app.console.color_system == SYSTEM


def for_terminal(theme: Theme, app: App[Any]) -> Theme:
    """The theme as the app's terminal can show it."""
    return in_palette(theme) if has_palette(app) else theme


def grey(colour: str) -> str:
    """The grey of the ramp with the same brightness; pure black and white stay, as do other notations."""
    if not colour.startswith("#") or colour.lower() in {"#000000", "#ffffff"}:
        return colour
    red, green, blue = Color.parse(colour).rgb
    place = round(((max(red, green, blue) + min(red, green, blue)) / 2 - DARKEST) / STEP)
    level = DARKEST + STEP * max(min(place, GREYS - 1), 0)
    return f"#{level:02x}{level:02x}{level:02x}"


def in_palette(theme: Theme) -> Theme:
    """A dark theme whose surfaces such a terminal can show; those of light ones are far enough from each other."""
    if not theme.dark:
        return theme
    variables = {name: grey(colour) if name in SURFACES else colour for name, colour in theme.variables.items()}
    return replace(
        theme,
        background=_grey_or_none(theme.background),
        surface=_grey_or_none(theme.surface),
        panel=_grey_or_none(theme.panel),
        variables=variables,
    )


def _grey_or_none(colour: str | None) -> str | None:
    return grey(colour) if colour else colour
