"""Colours of programs in a theme: text that cannot be read on its ground becomes black or white."""

from __future__ import annotations

import pytest
from textual.color import Color

from phoenix_tui.widgets.transcript.program_colours import ProgramColours

EIGHT = ("#1d2127", "#ff7b81", "#83cd86", "#ecb65c", "#6cb2ff", "#c5a3ff", "#6fd3d3", "#d5d9e0")
COLOURS = ProgramColours(tuple(map(Color.parse, EIGHT)), Color.parse("#d5d9e0"), Color.parse("#101317"))


@pytest.mark.parametrize("code", ["41;97", "42;37", "7;31;47", "43;97"])
def test_light_text_on_a_pale_colour_of_the_theme_becomes_dark(code: str) -> None:
    colour = COLOURS.style(code).color
    assert colour is not None
    assert Color.from_rich_color(colour).brightness < 0.1


@pytest.mark.parametrize(("code", "expected"), [("31", "#ff7b81"), ("38;2;255;0;0", "#ff0000"), ("44;30", "#1d2127")])
def test_text_that_can_be_read_keeps_its_colour(code: str, expected: str) -> None:
    colour = COLOURS.style(code).color
    assert colour is not None
    assert Color.from_rich_color(colour).hex.lower() == expected
