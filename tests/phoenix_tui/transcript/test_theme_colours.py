"""The themes: five hues that differ, and a quiet colour that can be read (LOOK 7)."""

from __future__ import annotations

from itertools import combinations

import pytest
from textual.color import Color
from textual.theme import Theme

from phoenix_tui.themes import THEMES

READABLE = 4.5
"""Contrast of text by WCAG 2.1 AA."""
FAR_APART = 25.0
"""Degrees between two hues."""


def colour(theme: Theme, name: str) -> Color:
    value = theme.to_color_system().generate()[name]
    return Color.parse(value)


def contrast(first: Color, second: Color) -> float:
    def luminance(each: Color) -> float:
        channels = [
            channel / 12.92 if channel <= 0.03928 else ((channel + 0.055) / 1.055) ** 2.4 for channel in each.normalized
        ]
        return 0.2126 * channels[0] + 0.7152 * channels[1] + 0.0722 * channels[2]

    lighter, darker = sorted((luminance(first), luminance(second)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


@pytest.mark.parametrize("theme", THEMES, ids=lambda theme: theme.name)
def test_the_five_meanings_have_five_hues(theme: Theme) -> None:
    roles = ("accent", "primary", "warning", "success", "error")
    hues = {role: colour(theme, role).hsl.h * 360 for role in roles}
    for first, second in combinations(roles, 2):
        apart = abs(hues[first] - hues[second])
        assert min(apart, 360 - apart) >= FAR_APART, (first, second, hues)


@pytest.mark.parametrize("theme", THEMES, ids=lambda theme: theme.name)
@pytest.mark.parametrize("role", ["text-muted", "foreground", "accent", "primary", "warning", "success", "error"])
def test_every_meaning_is_a_real_colour_that_can_be_read(theme: Theme, role: str) -> None:
    found = colour(theme, role)
    assert found.a == 1
    assert found.ansi is None
    assert contrast(found, colour(theme, "background")) >= READABLE
    assert contrast(found, colour(theme, "surface")) >= READABLE
