"""The colours of the theme in force, as a widget that paints lines itself reads them."""

from __future__ import annotations

from typing import Final, cast

from textual.app import App
from textual.color import Color
from textual.widget import Widget

from phoenix_tui.styles.palette import has_palette
from phoenix_tui.widgets.transcript.painter import Colours

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
    """The rules of a widget's own DEFAULT_CSS, by the name of its class."""
    return CSS.replace("WIDGET", widget)


def colours_of(widget: Widget) -> Colours:
    """The colours that these rules give the widget now."""

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
        few=has_palette(cast("App[object]", widget.app)),  # pyright: ignore[reportUnknownMemberType] - Textual leaves it open
    )
