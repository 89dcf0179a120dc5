"""Images in a transcript: their room is there before they are, and only those in sight are made."""

from __future__ import annotations

import asyncio

from engine.machine.messages import (
    ImageBlock,
    Origin,
    Role,
    TextBlock,
    ToolResult,
    ToolResultBlock,
    ToolStatus,
    ToolUseBlock,
)
from engine.records import StoredMessage
from engine.updates import MessageSaved, ToolEnded
from phoenix_tui.images.source import BlocksPicture, Box, ImageSource, Picture
from tests.support.screens import TranscriptApp, answered, message, said, snapshot
from tests.support.waiting import poll
from tools.contract import ImageRejected


class FakePictures(ImageSource):
    """Makes white pictures once it is let."""

    is_off = False
    aspect = 2.0

    def __init__(self) -> None:
        self.forgotten = 0
        self.loaded: list[Box] = []
        self.let = asyncio.Event()

    def ready(self, box: Box, background: str) -> Picture | None:
        return BlocksPicture(box.columns, b"\xff" * box.columns * box.rows * 8) if box in self.loaded else None

    async def load(self, box: Box, background: str) -> None:
        await self.let.wait()
        if box.image_id == "bad":
            raise ImageRejected("This image is damaged or cut off.")
        self.loaded.append(box)


def shot(seq: int, image_id: str = "a") -> StoredMessage:
    return message(seq, Role.USER, Origin.HUMAN, TextBlock("look"), ImageBlock(image_id, 160, 80))


def has_white(app: TranscriptApp, row: int) -> bool:
    strip = app.view.render_lines(app.view.size.region)[row]
    return any(segment.style and segment.style.bgcolor and segment.style.bgcolor.name == "#ffffff" for segment in strip)


async def test_an_image_takes_its_rows_at_once_and_nothing_moves_when_it_comes() -> None:
    app, pictures = TranscriptApp(), FakePictures()
    async with app.run_test(size=(60, 24)):
        app.view.gallery.use(pictures)
        app.view.show(snapshot([shot(1), answered(2, "a chart")]))
        before = app.shown()
        assert before[:3] == ["┃ look", "┃ [image 1: 160×80]", "┃ …"]
        assert before.index("  a chart") == 10
        assert not has_white(app, 2)
        pictures.let.set()
        assert await poll(lambda: has_white(app, 2))
        assert app.shown().index("  a chart") == 10
        assert pictures.loaded == [Box("a", 27, 7)]


async def test_enter_on_an_image_makes_it_larger_and_smaller_again() -> None:
    app, pictures = TranscriptApp(), FakePictures()
    pictures.let.set()
    async with app.run_test(size=(120, 60)) as pilot:
        app.view.gallery.use(pictures)
        block = ImageBlock("a", 1600, 800)
        app.view.show(snapshot([message(1, Role.USER, Origin.HUMAN, TextBlock("look"), block)]))
        app.view.blocks.take()
        assert "▌image  Enter larger · o open image" in app.shown()[-1]
        await pilot.press("enter")
        assert await poll(lambda: pictures.loaded == [Box("a", 48, 12), Box("a", 100, 25)])
        assert "Enter smaller" in app.shown()[-1]
        await pilot.click(app.view, offset=(20, 8))
        assert await poll(lambda: "Enter larger" in app.shown()[-1])


async def test_an_image_that_cannot_be_shown_says_why_in_its_place() -> None:
    app, pictures = TranscriptApp(), FakePictures()
    pictures.let.set()
    async with app.run_test(size=(60, 24)):
        app.view.gallery.use(pictures)
        app.view.show(snapshot([shot(1, "bad")]))
        assert await poll(lambda: "damaged" in app.shown()[2])
        assert app.shown()[2] == "┃ This image is damaged or cut off."


async def test_only_images_in_sight_are_made() -> None:
    app, pictures = TranscriptApp(), FakePictures()
    pictures.let.set()
    async with app.run_test(size=(60, 12)) as pilot:
        app.view.gallery.use(pictures)
        app.view.show(snapshot([shot(1, "far"), *(said(seq, "text") for seq in range(2, 40)), shot(40, "near")]))
        assert await poll(lambda: pictures.loaded)
        assert [box.image_id for box in pictures.loaded] == ["near"]
        await pilot.press("home")
        assert await poll(lambda: len(pictures.loaded) == 2)
        assert pictures.loaded[1].image_id == "far"


async def test_an_image_that_a_tool_read_stands_below_its_call_as_soon_as_it_is_stored() -> None:
    app, pictures = TranscriptApp(), FakePictures()
    pictures.let.set()
    async with app.run_test(size=(60, 24)) as pilot:
        app.view.gallery.use(pictures)
        app.view.show(snapshot([said(1, "look"), answered(2, ToolUseBlock("t1", "read_image", '{"path":"a.png"}'))]))
        app.view.apply(ToolEnded(ToolResult("t1", "ok", ToolStatus.SUCCESS), 0.1))
        result = ToolResultBlock("t1", (ImageBlock("shot", 160, 80),))
        app.view.apply(MessageSaved(message(3, Role.USER, Origin.TOOL, result)))
        await pilot.pause()
        assert await poll(lambda: has_white(app, 3))
        assert app.shown()[2].startswith("  ✓ read_image  a.png")


async def test_without_pictures_an_image_is_its_chip_alone() -> None:
    app = TranscriptApp()
    async with app.run_test(size=(60, 24)):
        app.view.show(snapshot([shot(1), answered(2, "a chart")]))
        assert app.shown()[:4] == ["┃ look", "┃ [image 1: 160×80]", "", "  a chart"]


async def test_pictures_that_the_terminal_lost_are_made_again() -> None:
    app, pictures = TranscriptApp(), FakePictures()
    pictures.let.set()
    async with app.run_test(size=(60, 24)):
        app.view.gallery.use(pictures)
        app.view.show(snapshot([shot(1)]))
        assert await poll(lambda: has_white(app, 2))
        pictures.let.clear()
        pictures.loaded.clear()
        pictures.forgotten += 1
        app.view.scroller.place_again()
        assert await poll(lambda: not has_white(app, 2))
        pictures.let.set()
        assert await poll(lambda: has_white(app, 2))
