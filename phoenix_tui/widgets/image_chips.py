"""The images that go with the next message, one chip each."""

from __future__ import annotations

from textual.content import Content
from textual.message import Message
from textual.reactive import reactive
from textual.widget import Widget

from engine.records import Attachment
from phoenix_tui.labels import Tone
from tools.clean import clean_line


class ImageChips(Widget):
    """`[image 1: 1568×882]`; Backspace on an empty text drops the last. Not shown without images."""

    DEFAULT_CSS = """
    ImageChips { height: auto; max-height: 5; padding: 0 1 0 2; display: none; }
    """
    images: reactive[tuple[Attachment, ...]] = reactive((), layout=True)
    """Set by the screen."""

    trouble: reactive[str] = reactive("", layout=True)
    """Why they cannot be sent; said until they are changed or another model is chosen. Set by the screen."""

    class Changed(Message):
        """Images came or went."""

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
            for part in ((f"[image {number}: {image.width}×{image.height}]", Tone.YOU.value), " ")
        ]
        trouble = (f"\n{clean_line(self.trouble)}" if self.trouble else "", Tone.BAD.value)
        return Content.assemble(*chips, ("Backspace drops the last", Tone.QUIET.value), trouble)
