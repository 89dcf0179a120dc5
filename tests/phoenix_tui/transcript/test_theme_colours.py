"""Colours of a transcript: of the theme, of programs, and of terminals with few."""

from __future__ import annotations

import math
from itertools import combinations

import pytest
from rich.color import Color as RichColor
from rich.color import ColorSystem
from textual.color import Color
from textual.theme import Theme

from phoenix_tui.markdown.lines import Surface, TextStyle, TextTone
from phoenix_tui.styles.themes import COLOUR_BLIND, DARK, HIGH_CONTRAST, LIGHT, THEMES, grey, in_palette
from phoenix_tui.styles.user_themes import KNOWN_THEMES, find_known_theme
from phoenix_tui.widgets.question_text import code_styles
from phoenix_tui.widgets.transcript.painter import Colours, Painter, ProgramColours

ALL = (*THEMES, *KNOWN_THEMES)
READABLE = 4.5
"""Contrast of text by WCAG 2.1 AA."""
DIM = 3.0
"""Contrast in the palettes of others: of a comment on a tint, and of code on changed words."""
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


@pytest.mark.parametrize("theme", ALL, ids=lambda theme: theme.name)
def test_the_five_meanings_have_five_hues(theme: Theme) -> None:
    roles = ("accent", "primary", "warning", "success", "error")
    hues = {role: colour(theme, role).hsl.h * 360 for role in roles}
    for first, second in combinations(roles, 2):
        apart = abs(hues[first] - hues[second])
        assert min(apart, 360 - apart) >= FAR_APART, (first, second, hues)


@pytest.mark.parametrize("theme", ALL, ids=lambda theme: theme.name)
@pytest.mark.parametrize("role", ["text-muted", "foreground", "accent", "primary", "warning", "success", "error"])
def test_every_meaning_is_a_real_colour_that_can_be_read(theme: Theme, role: str) -> None:
    found = colour(theme, role)
    assert found.a == 1
    assert found.ansi is None
    assert contrast(found, colour(theme, "background")) >= READABLE
    assert contrast(found, colour(theme, "surface")) >= READABLE


def test_the_well_known_themes_are_there_under_their_names() -> None:
    assert {theme.name: theme.dark for theme in KNOWN_THEMES} == {
        "catppuccin-mocha": True,
        "catppuccin-latte": False,
        "gruvbox-dark": True,
        "gruvbox-light": False,
        "nord": True,
        "dracula": True,
        "tokyo-night": True,
        "solarized-dark": True,
        "solarized-light": False,
        "rose-pine": True,
        "rose-pine-dawn": False,
        "monokai": True,
    }
    nord = find_known_theme("nord")
    assert nord is not None
    assert (nord.background, nord.foreground, find_known_theme("phoenix-dark")) == ("#2e3440", "#d8dee9", None)


def painter(theme: Theme) -> Painter:
    colours = Colours(
        background=colour(theme, "background"),
        surface=colour(theme, "surface"),
        text=colour(theme, "foreground"),
        quiet=colour(theme, "text-muted"),
        you=colour(theme, "accent"),
        work=colour(theme, "primary"),
        needs_you=colour(theme, "warning"),
        good=colour(theme, "success"),
        bad=colour(theme, "error"),
        selection=colour(theme, "accent"),
    )
    return Painter(colours, 80)


def shown(theme: Theme, tone: TextTone, surface: Surface) -> tuple[Color, Color]:
    style = painter(theme).style(TextStyle(tone, surface))
    assert style.color is not None
    assert style.bgcolor is not None
    return Color.from_rich_color(style.color), Color.from_rich_color(style.bgcolor)


CODE = (TextTone.TEXT, TextTone.KEYWORD, TextTone.STRING, TextTone.NUMBER, TextTone.NAME)


@pytest.mark.parametrize("theme", ALL, ids=lambda theme: theme.name)
@pytest.mark.parametrize("surface", list(Surface))
def test_code_can_be_read_on_every_background_and_a_comment_on_all_but_marked_words(
    theme: Theme, surface: Surface
) -> None:
    on_words = surface in {Surface.ADDED_WORDS, Surface.REMOVED_WORDS}
    found = {tone: contrast(*shown(theme, tone, surface)) for tone in (*CODE, TextTone.QUIET)}
    assert min(found[tone] for tone in CODE) >= (DIM if on_words and theme not in THEMES else READABLE), found
    if not on_words:
        assert found[TextTone.QUIET] >= (READABLE if theme in THEMES or surface is Surface.PLAIN else DIM), found


@pytest.mark.parametrize("theme", ALL, ids=lambda theme: theme.name)
def test_what_changed_stands_out_from_the_line_and_the_line_from_the_rest(theme: Theme) -> None:
    for line, words in ((Surface.ADDED, Surface.ADDED_WORDS), (Surface.REMOVED, Surface.REMOVED_WORDS)):
        plain, tinted, marked = (shown(theme, TextTone.TEXT, each)[1] for each in (Surface.PLAIN, line, words))
        assert contrast(plain, tinted) >= 1.1
        assert contrast(tinted, marked) >= 1.3


@pytest.mark.parametrize("theme", ALL, ids=lambda theme: theme.name)
def test_a_question_shows_code_in_the_colours_of_the_transcript(theme: Theme) -> None:
    styles = code_styles({**theme.to_color_system().generate(), **theme.variables})
    for tone in (*CODE[1:], TextTone.QUIET):
        assert Color.parse(styles[tone]).rgb == shown(theme, tone, Surface.PLAIN)[0].rgb


DEUTERANOPIA = ((0.367, 0.861, -0.228), (0.280, 0.673, 0.047), (-0.012, 0.043, 0.969))
PROTANOPIA = ((0.152, 1.053, -0.205), (0.115, 0.786, 0.099), (-0.004, -0.048, 1.052))
"""Linear RGB as it is seen without green or red cones (Machado, Oliveira, Fernandes 2009)."""
TOLD_APART = 15.0
"""CIE 1976 distance; 2.3 is the smallest that can be seen side by side."""


def seen(found: Color, kind: tuple[tuple[float, ...], ...]) -> tuple[float, ...]:
    """Distance in CIELAB."""
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in found.normalized]
    red, green, blue = (sum(a * b for a, b in zip(row, linear, strict=True)) for row in kind)
    x = (0.4124 * red + 0.3576 * green + 0.1805 * blue) / 0.9505
    y = 0.2126 * red + 0.7152 * green + 0.0722 * blue
    z = (0.0193 * red + 0.1192 * green + 0.9505 * blue) / 1.089
    along, up, across = (max(each, 0.0) ** (1 / 3) for each in (x, y, z))
    return 116 * up - 16, 500 * (along - up), 200 * (up - across)


@pytest.mark.parametrize("kind", [DEUTERANOPIA, PROTANOPIA])
def test_the_colour_blind_tell_the_five_meanings_apart(kind: tuple[tuple[float, ...], ...]) -> None:
    roles = ("accent", "primary", "warning", "success", "error")
    found = {role: seen(colour(COLOUR_BLIND, role), kind) for role in roles}
    assert min(math.dist(found[one], found[other]) for one, other in combinations(roles, 2)) >= TOLD_APART
    good, bad = (seen(colour(DARK, role), DEUTERANOPIA) for role in ("success", "error"))
    assert math.dist(good, bad) < TOLD_APART, "what this theme is for"


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


@pytest.mark.parametrize(("theme", "numbers"), [(DARK, [22, 52, 22, 52]), (LIGHT, [194, 224, 157, 217])])
def test_changed_rows_and_words_have_a_tint_of_the_palette(theme: Theme, numbers: list[int]) -> None:
    background, text = Color.parse(theme.background or ""), Color.parse(theme.foreground or "")
    colours = Colours(background, background, text, text, text, text, text, text, text, text, few=True)
    painter = Painter(colours, 80)
    shown = [painter.style(TextStyle(surface=tint)).bgcolor for tint in TINTS]
    assert [one.downgrade(ColorSystem.EIGHT_BIT).number for one in shown if one is not None] == numbers
    assert [bool(painter.style(TextStyle(surface=tint)).underline) for tint in TINTS] == [False, False, True, True]


def test_with_16_colours_a_changed_row_has_the_colour_of_its_change_and_changed_words_a_line() -> None:
    background, text = Color.parse(DARK.background or ""), Color.parse(DARK.foreground or "")
    good, bad = Color.parse(DARK.success or ""), Color.parse(DARK.error or "")
    colours = Colours(background, background, text, text, text, text, text, good, bad, text, fewest=True)
    painter = Painter(colours, 80)
    shown = [painter.style(TextStyle(TextTone.KEYWORD, surface=tint)) for tint in TINTS]
    assert [style.color for style in shown] == [one.rich_color for one in (good, bad, good, bad)]
    assert {style.bgcolor for style in shown} == {background.rich_color}
    assert [bool(style.underline) for style in shown] == [False, False, True, True]
