"""Writing: the queue, the history, what completes, pastes, images, a shell line."""

from __future__ import annotations

import io
from typing import Final

from PIL import Image
from textual import events

from engine.machine.messages import ImageBlock
from engine.records import QueuedMessage
from phoenix_tui.images.source import BlocksPicture, Box, ImageSource, Picture
from phoenix_tui.modals.find_sheet import HistorySheet
from phoenix_tui.modals.text_sheet import EditSheet
from tests.snapshots.booth import SMALL, Booth
from tests.snapshots.told import Teller, model_of
from tests.support.shell import Shell

QUEUED: Final = (
    QueuedMessage("q1", "Then run the tests and tell me which of them are slow."),
    QueuedMessage("q2", "Write the changelog entry for it:\none line, what a user sees, no names of functions."),
    QueuedMessage("q3", "Look at retry.py too, wide 漢字 and émoji 🎉 must stay aligned", ("image-1",)),
)
FILES: Final = (
    "README.md",
    "relay/__init__.py",
    "relay/backoff.py",
    "relay/forward.py",
    "tests/test_backoff.py",
    "漢字.md",
)
LOG: Final = "\n".join(
    f"12:00:{n % 60:02} relay[{n}] forwarded {n * 17 % 400} bytes to peer-{n % 5}" for n in range(400)
)
PROMPTS: Final = (
    "Explain how relay/backoff.py waits.",
    "Write a test for the backoff limit\nand run it",
    "日本語のファイル名が壊れる、直してほしい",
)


async def queue(place: Booth) -> None:
    """Three messages wait; one is edited; a stop holds them."""
    conversation = place.engine.seed("Make the back-off longer")
    model_of(conversation)
    async with place.opened() as shell:
        await shell.open(conversation)
        Teller(conversation).prompt("Make the back-off of the relay longer.")
        conversation.queue.become(*QUEUED)
        await shell.until(lambda: "queue 3" in shell.text)
        await place.take(shell, "queue")
        await shell.press("up", "up", shows="Enter edits")
        await place.take(shell, "keys")
        await shell.press("enter", until=lambda: isinstance(shell.top, EditSheet))
        await place.take(shell, "edit", (SMALL,))
        await shell.press("escape", until=lambda: shell.top is shell.screen)
        await shell.press("escape")
        conversation.cancel()
        conversation.queue.become(*QUEUED, held=True)
        await shell.until(lambda: "paused" in shell.text)
        await place.take(shell, "held", (SMALL,))


async def writing(place: Booth) -> None:
    """All that opens above the line."""
    for name in FILES:
        (place.cwd / name).parent.mkdir(exist_ok=True)
        (place.cwd / name).write_text(name, "utf-8")
    async with place.opened() as shell:
        prompts = shell.composer.draft.prompts
        assert prompts is not None
        for text in PROMPTS:
            prompts.add(text)
        await shell.press("ctrl+r", until=lambda: isinstance(shell.top, HistorySheet) and "backoff" in shell.text)
        await place.take(shell, "history")
        await shell.press("escape", until=lambda: shell.top is shell.screen)
        await shell.type("/", shows="/new")
        await place.take(shell, "commands")
        await shell.type("model ", shows="model WORD")
        await place.take(shell, "argument", (SMALL,))
        await shell.press("ctrl+u")
        await shell.type("look at @ba", shows="relay/backoff.py")
        await place.take(shell, "files")
        await shell.press("ctrl+u")
        await shell.type("!python3 -m unittest -q", shows="the model reads the output")
        await place.take(shell, "shell", (SMALL,))


async def pasting(place: Booth) -> None:
    """A long paste and an image, the paste opened, many lines."""
    picture = place.home / "latency.png"
    stream = io.BytesIO()
    Image.new("RGB", (8, 8)).save(stream, "PNG")
    picture.write_bytes(stream.getvalue())
    async with place.opened() as shell:
        await shell.type("Why is this slow? ")
        await paste(shell, LOG, "[pasted 1")
        await paste(shell, str(picture), "[image 1")
        await place.take(shell, "paste")
        await shell.press("left")
        await shell.press("enter", until=lambda: isinstance(shell.top, EditSheet))
        await place.take(shell, "open")
        await shell.press("escape", until=lambda: shell.top is shell.screen)
        await shell.press("ctrl+e", "ctrl+u")
        shell.composer.load("\n".join(f"line {n} of a long prompt, 漢字 and all" for n in range(30)))
        await shell.until(lambda: "line 29" in shell.text)
        await place.take(shell, "long")


async def paste(shell: Shell, text: str, shows: str) -> None:
    """Paste, and see it."""
    shell.composer.post_message(events.Paste(text))
    await shell.until(lambda: shows in shell.text)


class Chart(ImageSource):
    """Makes a picture of one bar at once."""

    is_off = False
    aspect = 2.0

    def __init__(self) -> None:
        self.forgotten = 0

    def ready(self, box: Box, background: str) -> Picture | None:
        """Stripes of blue and white."""
        return BlocksPicture(box.columns, (b"\x2e\x86\xc1\xff" * box.columns + b"\xff" * 4 * box.columns) * box.rows)

    async def load(self, box: Box, background: str) -> None:
        """All is there."""


async def pictures(place: Booth) -> None:
    """An image in the conversation, small and large."""
    conversation = place.engine.seed("What is wrong in this chart?")
    model_of(conversation)
    async with place.opened() as shell:
        await shell.open(conversation)
        shell.transcript.gallery.use(Chart())
        Teller(conversation).prompt("What is wrong in this chart?", ImageBlock("a", 640, 360))
        Teller(conversation).says("One bar stands out: the **sixth** minute.")
        await shell.until(lambda: "minute." in shell.text and "▀" in shell.text)
        await place.take(shell, "small", (SMALL,))
        await shell.press("alt+up", "k", "enter", shows="▌image")
        await place.take(shell, "large", (SMALL,))
