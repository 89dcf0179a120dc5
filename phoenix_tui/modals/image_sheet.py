"""The images of the next message, one at a time and as large as there is room; one can be taken away."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, ClassVar, Final

from rich.segment import Segment
from rich.style import Style
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.strip import Strip
from textual.widget import Widget
from textual.widgets import Static

from engine.records import Attachment
from phoenix_tui.images.source import box_of
from phoenix_tui.keys.active_keys import hint
from phoenix_tui.keys.keymap import Scope, bindings
from phoenix_tui.modals.base import Sheet
from phoenix_tui.text.context_text import size_words
from phoenix_tui.text.labels import Tone
from phoenix_tui.widgets.bases import run_latest
from tools.contract import ImageRejected

if TYPE_CHECKING:
    from phoenix_tui.images.source import Box, ImageSource
    from phoenix_tui.widgets.dock import ImageChips

MARGIN: Final = 4


class PictureView(Widget):
    """One picture in cells; words while there is none."""

    DEFAULT_CSS = "PictureView { height: 1; margin: 1 2; }"

    def __init__(self, source: ImageSource | None) -> None:
        super().__init__()
        self._source = source
        self._box: Box | None = None
        self._words = ""

    def show(self, image: Attachment, columns: int) -> None:
        """Make and show this one."""
        if self._source is None or self._source.is_off:
            self._words = "This terminal cannot show images; the image is sent all the same."
            return
        box = box_of(image.id, (image.width, image.height), columns, self._source.aspect, large=True)
        most = max(self.screen.size.height // 2 - MARGIN, 1)
        if box.rows > most:
            box = box_of(image.id, (image.width, image.height), box.columns * most // box.rows, 2.0, large=True)
        self._box, self._words = box, "…"
        self.styles.height = box.rows
        run_latest(self, partial(self._load, self._source, box), "default")

    async def _load(self, source: ImageSource, box: Box) -> None:
        try:
            await source.load(box, self._background)
        except ImageRejected as refusal:
            self._words = str(refusal)
        self.refresh()

    @property
    def _background(self) -> str:
        return self.background_colors[1].hex6.lstrip("#")

    def render_line(self, y: int) -> Strip:
        """A row of the picture."""
        picture = self._source.ready(self._box, self._background) if self._source and self._box else None
        if picture is None or self._box is None or y >= self._box.rows:
            return Strip([Segment(self._words if y == 0 else "")]).adjust_cell_length(self.size.width)
        ground = Style(bgcolor=self.background_colors[1].rich_color)
        cells = picture.cells(y, self.background_colors[1])
        return Strip(cells, self._box.columns).adjust_cell_length(self.size.width, ground)


class ImageSheet(Sheet[None]):
    """Shows images: Left and Right between them; a removed one leaves the message at once."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(Scope.IMAGES)
    DEFAULT_CSS = "ImageSheet { & Static { height: auto; } }"

    def __init__(self, chips: ImageChips, source: ImageSource | None, at: int = 0) -> None:
        super().__init__()
        self._chips = chips
        self._images = list(chips.images)
        self._source = source
        self._at = at

    def compose(self) -> ComposeResult:
        with Vertical(classes="sheet"):
            yield Static(id="heading", markup=False)
            yield PictureView(self._source)

    def on_mount(self) -> None:
        self._draw()

    def action_step(self, by: int) -> None:
        """Another one, round the ends."""
        self._at = (self._at + by) % max(len(self._images), 1)
        self._draw()

    def action_take_away(self) -> None:
        """Remove this image from the message; the key may come once more while the sheet closes."""
        if not self._images:
            return
        removed = self._images.pop(self._at)
        self._chips.images = tuple(one for one in self._chips.images if one.id != removed.id)
        if not self._images:
            self.dismiss(None)
            return
        self._at %= len(self._images)
        self._draw()

    def _draw(self) -> None:
        if not self._images:
            return
        image = self._images[self._at]
        which = f"Image {self._at + 1} of {len(self._images)}" if len(self._images) > 1 else "Image"
        another = ("image_previous image_next", "another") if len(self._images) > 1 else ""
        words = f"   {size_words(image)}\n{hint(another, ('image_remove', 'removes it'))}"
        self.query_one("#heading", Static).update(Content.assemble((which, "bold"), (words, Tone.QUIET.value)))
        self.query_one(PictureView).show(image, max(self.measure - MARGIN, 1))
