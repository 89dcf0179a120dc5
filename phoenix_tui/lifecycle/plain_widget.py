"""Widgets that cannot be drawn, shown in their place as the text they have."""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from rich.segment import Segment
from rich.style import Style
from textual.geometry import Region, Size, Spacing
from textual.layout import DockArrangeResult
from textual.strip import Strip
from textual.widget import Widget

from phoenix_tui.markdown.code import plain_rows
from tools.clean import clean

SENTENCE: Final = "This part cannot be drawn."
WITH_TEXT: Final = "This part cannot be drawn; its text follows."
SOURCES: Final = ("text", "value", "content", "source")
"""Attributes in which widgets hold their text."""
MOST: Final = 16_000
"""Characters of it that are shown."""


def draw_plainly(widget: Widget) -> None:
    """Draw this widget as text from now on: none of its own code takes part in a frame any more."""

    def arrange(size: Size, optimal: bool = False) -> DockArrangeResult:
        del size, optimal
        return DockArrangeResult([], set(), Spacing())

    def get_content_width(container: Size, viewport: Size) -> int:
        del viewport
        return container.width

    def get_content_height(container: Size, viewport: Size, width: int) -> int:
        del container, viewport
        return len(_rows(widget, width))

    def render_lines(crop: Region) -> list[Strip]:
        return _lines(widget, crop)

    def render_line(y: int) -> Strip:
        return _lines(widget, Region(0, y, widget.outer_size.width, 1))[0]

    for method in (arrange, get_content_width, get_content_height, render_lines, render_line):
        setattr(widget, method.__name__, method)
    widget.clear_cached_dimensions()
    widget.refresh(layout=True)


def source_of(widget: Widget) -> str:
    """Text that it has, cleaned; empty where it has none that can be read."""
    for name in SOURCES:
        with suppress(Exception):
            found = getattr(widget, name)
            text = found if isinstance(found, str) else getattr(found, "plain", "")
            if isinstance(text, str) and text.strip():
                return clean(text[:MOST])
    return ""


def _rows(widget: Widget, width: int) -> list[str]:
    text = source_of(widget)
    shown = [row for _, row, _ in plain_rows(text, width)] if text else []
    sentence = [row for _, row, _ in plain_rows(WITH_TEXT if text else SENTENCE, width)]
    return shown if text and widget.outer_size.height == 1 else [*sentence, *shown]


def _lines(widget: Widget, crop: Region) -> list[Strip]:
    look, width = Style.null(), max(widget.outer_size.width, 1)
    with suppress(Exception):
        look = widget.visual_style.rich_style
    rows = _rows(widget, width)[crop.y : crop.bottom]
    strips = [Strip([Segment(row, look)]).adjust_cell_length(width, look) for row in rows]
    strips += [Strip.blank(width, look)] * (crop.height - len(strips))
    return [strip.crop(crop.x, crop.right) for strip in strips]
