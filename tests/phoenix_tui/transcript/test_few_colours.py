"""Colours of terminals with 256: distinguishable surfaces and tints."""

from __future__ import annotations

import pytest
from rich.color import Color as RichColor
from rich.color import ColorSystem
from textual.color import Color
from textual.theme import Theme

from phoenix_tui.markdown.lines import Surface, TextStyle
from phoenix_tui.styles.palette import grey, in_palette
from phoenix_tui.styles.themes import COLOUR_BLIND, DARK, HIGH_CONTRAST, LIGHT, THEMES
from phoenix_tui.widgets.transcript.painter import Colours, Painter

TINTS = (Surface.ADDED, Surface.REMOVED, Surface.ADDED_WORDS, Surface.REMOVED_WORDS)


def number(colour: str) -> int | None:
    """The colour of the palette that Rich writes for it."""
    return RichColor.parse(colour).downgrade(ColorSystem.EIGHT_BIT).number


@pytest.mark.parametrize("theme", THEMES, ids=lambda theme: theme.name)
def test_background_surface_and_panel_are_three_colours_of_the_palette(theme: Theme) -> None:
    made = in_palette(theme)
    numbers = {number(made.background or ""), number(made.surface or ""), number(made.panel or "")}
    assert len(numbers) == 3
    assert made.foreground == theme.foreground


def test_dark_surfaces_come_from_the_grey_ramp() -> None:
    shown = [
        (number(made.background or ""), number(made.surface or ""), number(made.panel or ""))
        for made in map(in_palette, (DARK, COLOUR_BLIND, HIGH_CONTRAST))
    ]
    assert shown == [(233, 234, 235), (233, 234, 235), (16, 234, 235)]
    assert in_palette(LIGHT) is LIGHT


@pytest.mark.parametrize("colour", ["ansi_blue", "#000000", "#ffffff"])
def test_what_is_no_tinted_grey_stays(colour: str) -> None:
    assert grey(colour) == colour


@pytest.mark.parametrize(("theme", "numbers"), [(DARK, [22, 52, 23, 88]), (LIGHT, [194, 224, 157, 217])])
def test_changed_rows_and_words_have_a_tint_of_the_palette(theme: Theme, numbers: list[int]) -> None:
    background, text = Color.parse(theme.background or ""), Color.parse(theme.foreground or "")
    colours = Colours(background, background, text, text, text, text, text, text, text, text, few=True)
    painter = Painter(colours, 80)
    shown = [painter.style(TextStyle(surface=tint)).bgcolor for tint in TINTS]
    assert [one.downgrade(ColorSystem.EIGHT_BIT).number for one in shown if one is not None] == numbers
