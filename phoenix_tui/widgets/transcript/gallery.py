"""The pictures of one transcript: which are in sight, which are still to be made, and their rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip
from textual.widget import Widget

from phoenix_tui.markdown.lines import QUIET, Span, ellipsize
from phoenix_tui.widgets.transcript.canvas import Canvas
from phoenix_tui.widgets.transcript.drawing import DrawnPart
from phoenix_tui.widgets.transcript.painter import HERE, Painter
from tools.contract import ImageRejected

if TYPE_CHECKING:
    from phoenix_tui.images.source import Box, Picture

MOST_ROWS: Final = 400


class Pictures(Protocol):
    """Source of pictures (`images.source.ImageSource`)."""

    @property
    def is_off(self) -> bool:
        """True when images are not shown at all."""
        ...

    @property
    def aspect(self) -> float:
        """Height of a cell divided by its width."""
        ...

    forgotten: int
    """Number of times that all pictures were dropped: rows painted with them are invalid then."""

    def ready(self, box: Box, background: str) -> Picture | None:
        """A picture that was made already."""
        ...

    async def load(self, box: Box, background: str) -> None:
        """Make a picture. Raises ImageRejected."""
        ...


class Gallery:
    """Asks for pictures as they come into sight, one after the other."""

    def __init__(self, view: Widget, canvas: Canvas) -> None:
        self._view = view
        self._canvas = canvas
        self._source: Pictures | None = None
        self._background = "000000"
        self._loading = False
        self._refused: dict[Box, str] = {}
        self._rows: dict[tuple[Box, int], Strip] = {}
        """Rows as they were painted: the same object is rendered once."""
        self._rows_of: tuple[Painter, int] | None = None
        """The painter they are from, and how often the source had forgotten its pictures."""

    def use(self, source: Pictures | None) -> None:
        self._source = source
        self._refused.clear()
        self._canvas.stack.aspect = 0.0 if source is None or source.is_off else source.aspect

    def see_to(self) -> None:
        source = self._source
        if source is None or self._loading or not self._view.is_mounted:
            return
        boxes = [part.picture for part in self._canvas.visible_parts() if part.picture is not None]
        if boxes:
            self._background = self._view.background_colors[1].hex6.lstrip("#")
        for box in boxes:
            if box not in self._refused and source.ready(box, self._background) is None:
                self._loading = True
                self._view.run_worker(self._load(source, box), group="pictures")
                return

    async def _load(self, source: Pictures, box: Box) -> None:
        try:
            await source.load(box, self._background)
        except ImageRejected as refusal:
            self._refused[box] = str(refusal)
        finally:
            self._loading = False
        self._view.refresh()
        self.see_to()

    def strip(self, part: DrawnPart, index: int, painter: Painter) -> Strip | None:
        """One row of a picture; None while it is not there and for rows that are words."""
        box = part.picture
        if box is None or self._source is None:
            return None
        if self._rows_of != (painter, self._source.forgotten) or len(self._rows) > MOST_ROWS:
            self._rows.clear()
            self._rows_of = painter, self._source.forgotten
        painted = self._rows.get((box, index))
        return painted or self._paint(self._source, part, box, index, painter)

    def _paint(self, source: Pictures, part: DrawnPart, box: Box, index: int, painter: Painter) -> Strip:
        picture = source.ready(box, self._background)
        lead = part.lines[index].spans
        if picture is None:
            words = self._refused.get(box, "…") if index == 0 else ""
            return painter.spans_strip((*lead, Span(ellipsize(words, max(painter.width - 4, 1)), QUIET)))
        width = sum(len(span.text) for span in lead)
        start = painter.spans_strip(lead).crop(0, width)
        rest = max(painter.width - width - box.columns, 0)
        ground = Style(bgcolor=painter.colours.background.rich_color)
        cells = [
            Segment(cell.text, HERE if cell.style is None else cell.style + HERE)
            for cell in picture.cells(index, painter.colours.background)
        ]
        strip = Strip([*start, *cells, Segment(" " * rest, ground)], width + box.columns + rest)
        self._rows[box, index] = strip
        return strip
