"""Lines as strips, in the colours of the theme and of programs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, cast

from msgspec import Struct
from rich.color import Color as RichColor
from rich.segment import Segment
from rich.style import Style
from textual.app import App
from textual.color import Color
from textual.strip import Strip
from textual.widget import Widget

from phoenix_tui.markdown.lines import Span, StyledLine, Surface, TextStyle, TextTone, spans_width
from phoenix_tui.styles.themes import has_palette
from tools.terminal.screen import look_of

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


HERE: Final = Style(meta={"@click": "here"})
"""Style of clickable cells in a line: the view looks up the action of a click there.

One style for all of them. Textual keeps the last 16,384 styles it wrote (`Strip.render_ansi`), so a style that named
its call took 20 MB in the course of 3,000 turns.
"""


OPENS_LINK: Final = "open_link('"
LINK_ENDS: Final = "')"
"""Around the address in the click action of a link; one that `repr` had to escape is no link of the terminal."""


class Colours(Struct, frozen=True):
    """The colours of a theme that a transcript needs."""

    background: Color
    surface: Color
    text: Color
    quiet: Color
    you: Color
    work: Color
    needs_you: Color
    good: Color
    bad: Color
    selection: Color
    few: bool = False
    """True when the terminal has 256 colours: tints are colours of its palette then."""
    fewest: bool = False
    """True when it has 16: an added or removed row has its colour in place of a tint."""


DARK_TINTS: Final = {
    Surface.ADDED: Color(0, 95, 0),
    Surface.REMOVED: Color(95, 0, 0),
    Surface.ADDED_WORDS: Color(0, 95, 0),
    Surface.REMOVED_WORDS: Color(95, 0, 0),
}
"""Colours 22 and 52, the darkest of their hue: changed words are underlined, as code is
hard to read on lighter ones.
"""
LIGHT_TINTS: Final = {
    Surface.ADDED: Color(215, 255, 215),
    Surface.REMOVED: Color(255, 215, 215),
    Surface.ADDED_WORDS: Color(175, 255, 175),
    Surface.REMOVED_WORDS: Color(255, 175, 175),
}
"""Colours 194, 224, 157 and 217: the lightest."""


FEWEST: Final = "standard"
"""Name of 16 colours as Rich calls a terminal's."""


class Painter:
    """Makes padded strips of one width; a style is made once per look."""

    def __init__(self, colours: Colours, width: int) -> None:
        self.width = width
        self.colours = colours
        self._styles: dict[TextStyle, Style] = {}
        self._clickable: dict[TextStyle, Style] = {}
        self._pads: dict[int, Segment] = {}
        self._plain = self.style(TextStyle())
        self._programs = _programs(colours)
        self.selection = Style(bgcolor=colours.selection.rich_color)
        """Laid over selected text."""

    def style(self, look: TextStyle) -> Style:
        key, found = look, self._styles.get(look)
        if found is None and look.program:
            found = self._styles[look] = self._programs.style(look.program)
        elif found is None:
            if look.surface in DARK_TINTS and (self.colours.few or self.colours.fewest):
                look = self._without_tints(look)
            found = self._styles[key] = Style(
                color=self._foreground(look.tone).rich_color,
                bgcolor=self._background(look.surface).rich_color,
                bold=look.bold or None,
                italic=look.italic or None,
                strike=look.strike or None,
                underline=look.underline or None,
            )
        return found

    def _without_tints(self, look: TextStyle) -> TextStyle:
        """The look of a changed row where tints are few, or none can be read."""
        underline = look.underline or look.surface in {Surface.ADDED_WORDS, Surface.REMOVED_WORDS}
        if not self.colours.fewest:
            return look._replace(underline=underline)
        tone = TextTone.GOOD if look.surface in {Surface.ADDED, Surface.ADDED_WORDS} else TextTone.BAD
        return look._replace(tone=tone, surface=Surface.PLAIN, underline=underline)

    def strip(self, line: StyledLine, *, dim: bool = False) -> Strip:
        styles = (self._look(span, dim, clickable=bool(span.action)) for span in line.spans)
        return self._row(line.spans, styles)

    def spans_strip(self, spans: Sequence[Span]) -> Strip:
        """Spans outside any part as one row of the full width; a click runs their action."""
        return self._row(spans, (self._link_style(span) for span in spans))

    def _row(self, spans: Sequence[Span], styles: Iterable[Style]) -> Strip:
        segments = [Segment(span.text, style) for span, style in zip(spans, styles, strict=True) if span.text]
        missing = self.width - spans_width(spans)
        if missing > 0:
            found = self._pads.get(missing)
            if found is None:
                found = self._pads[missing] = Segment(" " * missing, self._plain)
            segments.append(found)
        strip = Strip(segments, self.width - min(missing, 0))
        return strip if missing >= 0 else strip.crop(0, self.width)

    def _look(self, span: Span, dim: bool, *, clickable: bool = False) -> Style:
        look = span.look._replace(tone=TextTone.QUIET, program="") if dim else span.look
        if not clickable:
            return self.style(look)
        if span.action.startswith(OPENS_LINK):
            return self.style(look) + HERE + Style(link=span.action[len(OPENS_LINK) : -len(LINK_ENDS)])
        found = self._clickable.get(look)
        if found is None:
            found = self._clickable[look] = self.style(look) + HERE
        return found

    def _link_style(self, span: Span) -> Style:
        style = self.style(span.look)
        return style + Style(meta={"@click": span.action}) if span.action else style

    def _foreground(self, tone: TextTone) -> Color:
        colours = self.colours
        half = 0.5
        return {
            TextTone.TEXT: colours.text,
            TextTone.QUIET: colours.quiet,
            TextTone.YOU: colours.you,
            TextTone.WORK: colours.work,
            TextTone.NEEDS_YOU: colours.needs_you,
            TextTone.GOOD: colours.good,
            TextTone.BAD: colours.bad,
            TextTone.KEYWORD: blend(colours.text, colours.work, half),
            TextTone.STRING: blend(colours.text, colours.good, half),
            TextTone.NUMBER: blend(colours.text, colours.needs_you, half),
            TextTone.NAME: blend(colours.text, colours.you, half),
        }[tone]

    def _background(self, surface: Surface) -> Color:
        colours = self.colours
        if colours.few and surface in DARK_TINTS:
            return (DARK_TINTS if colours.background.brightness < colours.text.brightness else LIGHT_TINTS)[surface]
        tint, strong = 0.12, 0.34  # the strongest on which every colour of code has a contrast of 4.5
        return {
            Surface.PLAIN: colours.background,
            Surface.CODE: colours.surface,
            Surface.ADDED: blend(colours.background, colours.good, tint),
            Surface.REMOVED: blend(colours.background, colours.bad, tint),
            Surface.ADDED_WORDS: blend(colours.background, colours.good, strong),
            Surface.REMOVED_WORDS: blend(colours.background, colours.bad, strong),
        }[surface]


def _programs(colours: Colours) -> ProgramColours:
    """Black is quiet and white is text, so that both can be read on any background."""
    cyan = blend(colours.work, colours.good, 0.5)
    named = (colours.bad, colours.good, colours.needs_you, colours.work, colours.you, cyan)
    return ProgramColours((colours.quiet, *named, colours.text), colours.text, colours.background)


def blend(start: Color, end: Color, share: float) -> Color:
    """A colour between two; the terminal's own colours cannot be mixed."""
    return start if start.ansi is not None or end.ansi is not None else start.blend(end, share, 1.0)


CSS: Final = """
WIDGET > .transcript--surface { background: $surface; }
WIDGET > .transcript--text { color: $foreground; }
WIDGET > .transcript--quiet { color: $text-muted; }
WIDGET > .transcript--you { color: $accent; }
WIDGET > .transcript--work { color: $primary; }
WIDGET > .transcript--needs-you { color: $warning; }
WIDGET > .transcript--good { color: $success; }
WIDGET > .transcript--bad { color: $error; }
WIDGET > .transcript--selection { background: $screen-selection-background; }
"""
COMPONENTS: Final = frozenset({
    "transcript--surface",
    "transcript--text",
    "transcript--quiet",
    "transcript--you",
    "transcript--work",
    "transcript--needs-you",
    "transcript--good",
    "transcript--bad",
    "transcript--selection",
})
"""Names for the COMPONENT_CLASSES of such a widget."""


def css_of(widget: str) -> str:
    return CSS.replace("WIDGET", widget)


def colours_of(widget: Widget) -> Colours:
    def foreground(name: str) -> Color:
        colour = widget.get_component_rich_style(f"transcript--{name}").color
        return widget.colors[3] if colour is None else Color.from_rich_color(colour)

    def background(name: str) -> Color:
        colour = widget.get_component_rich_style(f"transcript--{name}").bgcolor
        return widget.background_colors[1] if colour is None else Color.from_rich_color(colour)

    return Colours(
        background=widget.background_colors[1],
        surface=background("surface"),
        text=foreground("text"),
        quiet=foreground("quiet"),
        you=foreground("you"),
        work=foreground("work"),
        needs_you=foreground("needs-you"),
        good=foreground("good"),
        bad=foreground("bad"),
        selection=background("selection"),
        few=has_palette(cast("App[object]", widget.app)),
        fewest=cast("App[object]", widget.app).console.color_system == FEWEST,
    )
