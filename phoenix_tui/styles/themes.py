"""Themes: six meanings as colours (docs/decisions/looks.md), dark, light, high contrast and colour-blind.

For a dark surface with a hint of a hue, Rich chooses the nearest colour of the 6x6x6 cube, which is black. Terminals of
256 colours get surfaces from the grey ramp of their palette.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from textual.app import App
from textual.color import Color
from textual.theme import Theme

DARK: Final = Theme(
    name="phoenix-dark",
    dark=True,
    background="#101317",
    surface="#191d23",
    panel="#20252d",
    foreground="#d5d9e0",
    accent="#c5a3ff",
    primary="#6cb2ff",
    secondary="#6cb2ff",
    warning="#ecb65c",
    success="#83cd86",
    error="#ff7b81",
    variables={
        "text-muted": "#8b94a3",
        "screen-selection-background": "#4a3d6b",
        "scrollbar": "#343b46",
        "scrollbar-hover": "#4a5362",
        "scrollbar-active": "#c5a3ff",
        "scrollbar-background": "#101317",
        "scrollbar-background-hover": "#101317",
        "scrollbar-background-active": "#101317",
    },
)
LIGHT: Final = Theme(
    name="phoenix-light",
    dark=False,
    background="#fbfbf9",
    surface="#f0f0ec",
    panel="#e6e6e1",
    foreground="#24272c",
    accent="#6d3fc4",
    primary="#0b62b8",
    secondary="#0b62b8",
    warning="#8f5a00",
    success="#1f7a33",
    error="#bf2430",
    variables={
        "text-muted": "#62676f",
        "screen-selection-background": "#d9c9f7",
        "scrollbar": "#cfcfc8",
        "scrollbar-hover": "#b4b4ac",
        "scrollbar-active": "#6d3fc4",
        "scrollbar-background": "#fbfbf9",
        "scrollbar-background-hover": "#fbfbf9",
        "scrollbar-background-active": "#fbfbf9",
    },
)
HIGH_CONTRAST: Final = Theme(
    name="phoenix-high-contrast",
    dark=True,
    background="#000000",
    surface="#1c1c1c",
    panel="#262626",
    foreground="#ffffff",
    accent="#e0b3ff",
    primary="#66ccff",
    secondary="#66ccff",
    warning="#ffd633",
    success="#5cff7a",
    error="#ff8080",
    variables={
        "text-muted": "#c8c8c8",
        "screen-selection-background": "#5b2d8c",
        "scrollbar": "#8a8a8a",
        "scrollbar-hover": "#b0b0b0",
        "scrollbar-active": "#ffffff",
        "scrollbar-background": "#000000",
        "scrollbar-background-hover": "#000000",
        "scrollbar-background-active": "#000000",
    },
)
COLOUR_BLIND: Final = Theme(
    name="phoenix-colour-blind",
    dark=True,
    background="#101317",
    surface="#191d23",
    panel="#20252d",
    foreground="#d5d9e0",
    accent="#d98fbb",
    primary="#56b4e9",
    secondary="#56b4e9",
    warning="#f0e442",
    success="#14b88a",
    error="#f0822d",
    variables={
        "text-muted": "#8b94a3",
        "screen-selection-background": "#5a3a50",
        "scrollbar": "#343b46",
        "scrollbar-hover": "#4a5362",
        "scrollbar-active": "#d98fbb",
        "scrollbar-background": "#101317",
        "scrollbar-background-hover": "#101317",
        "scrollbar-background-active": "#101317",
    },
)
"""Hues that stay apart without red or green: after Okabe and Ito, Color Universal Design (2008)."""
THEMES: Final = (DARK, LIGHT, HIGH_CONTRAST, COLOUR_BLIND)
"""All of them; the first is the default."""


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
    grounds = (colour and grey(colour) for colour in (theme.background, theme.surface, theme.panel))
    background, surface, panel = grounds
    return replace(theme, background=background, surface=surface, panel=panel, variables=variables)
