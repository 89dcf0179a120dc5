"""The images that go with the next message, one chip each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual import events
from textual.content import Content
from textual.message import Message
from textual.reactive import reactive
from textual.widget import Widget

from phoenix_tui.text.labels import Tone
from tools.clean import clean_line

if TYPE_CHECKING:
    from engine.records import Attachment


class ImageChips(Widget):
    """`[image 1: 1568×882] 310 kB`; a click shows it, Backspace on an empty text drops the last. Empty: not shown."""

    DEFAULT_CSS = """
    ImageChips { height: auto; max-height: 5; padding: 0 1 0 2; display: none; }
    """
    images: reactive[tuple[Attachment, ...]] = reactive((), layout=True)
    """Set by the screen."""

    trouble: reactive[str] = reactive("", layout=True)
    """Reason why they cannot be sent; shown until they are changed or another model is chosen. Set by the screen."""

    class Changed(Message):
        """Images came or went."""

    class Opened(Message):
        """A chip was clicked."""

        def __init__(self, number: int) -> None:
            super().__init__()
            self.number = number

    def on_click(self, event: events.Click) -> None:
        """Show the image whose chip this is, else the first."""
        column, end = event.x, 2
        for number, image in enumerate(self.images, start=1):
            end += len(_chip(number, image)) + len(_size(image)) + 3
            if event.y == 0 and column < end:
                self.post_message(self.Opened(number))
                return
        self.post_message(self.Opened(1))

    def watch_images(self, images: tuple[Attachment, ...]) -> None:
        """Show or hide; another set of images deserves another try."""
        self.display = bool(images)
        self.trouble = ""
        self.post_message(self.Changed())

    def render(self) -> Content:
        """All chips, then the key that drops one."""
        chips = [
            part
            for number, image in enumerate(self.images, start=1)
            for part in ((_chip(number, image), Tone.YOU.value), (f" {_size(image)}  ", Tone.QUIET.value))
        ]
        trouble = (f"\n{clean_line(self.trouble)}" if self.trouble else "", Tone.BAD.value)
        return Content.assemble(*chips, ("click shows it · Backspace removes the last", Tone.QUIET.value), trouble)


def _chip(number: int, image: Attachment) -> str:
    return f"[image {number}: {image.width}×{image.height}]"


def _size(image: Attachment) -> str:
    return f"{max(image.bytes // 1_000, 1):,} kB"
