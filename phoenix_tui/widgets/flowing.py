"""Text whose rows depend on the width: unbreakable parts, tinted rows, hanging indents."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from textual.content import Content
from textual.geometry import Size
from textual.widget import Widget

RowsForWidth: TypeAlias = Callable[[int], Sequence[Content]]
"""The rows for a width in cells, each no wider than it."""


class Flowing(Widget):
    """Draws the rows that `flow` gives for its width, and is as tall as they are."""

    DEFAULT_CSS = "Flowing { height: auto; }"

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._rows: RowsForWidth = _nothing

    def flow(self, rows: RowsForWidth) -> None:
        """Draw these."""
        self._rows = rows
        self.refresh(layout=True)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """Number of rows at `width`."""
        return len(self._rows(max(width, 1)))

    def render(self) -> Content:
        """The rows."""
        return Content("\n").join(self._rows(max(self.size.width, 1)))


def hanging(text: Content, indent: int, width: int) -> list[Content]:
    """`text` wrapped; rows after the first begin `indent` cells further right."""
    first, *_ = text.wrap(width) or [Content("")]
    if first.cell_length >= text.rstrip().cell_length or width <= 2 * indent:
        return text.wrap(width)
    rest = text[len(first.plain) :]
    while rest.plain.startswith(" "):
        rest = rest[1:]
    return [first, *(Content.assemble(" " * indent, row) for row in rest.wrap(width - indent))]


def _nothing(_: int) -> Sequence[Content]:
    return ()
