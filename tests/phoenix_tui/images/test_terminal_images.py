"""Display of images: the terminal's known or reported abilities, and the output to it."""

from __future__ import annotations

import io
from base64 import b64encode
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from PIL import Image
from textual.color import Color

from engine.ports import StorageError
from engine.records import Attachment
from phoenix_tui.images.source import (
    KEPT,
    LARGE,
    MARKS,
    SMALL,
    BlocksPicture,
    Box,
    CellSize,
    GraphicsProtocol,
    ImageSource,
    ImageTerminal,
    box_of,
    detect_protocol,
    kitty_image,
    protocol_of,
)
from phoenix_tui.terminal.input import InputFilter
from phoenix_tui.terminal.output import PLACEHOLDER, drawing_only, with_overlays
from tests.support.plain_runner import PlainRunner
from tools.contract import ImageRejected
from tools.images.decoder import Previewer, PreviewKind, PreviewOrder

BLACK = Color(0, 0, 0)


def png(width: int, height: int, colour: str = "#ff0000") -> bytes:
    stream = io.BytesIO()
    Image.new("RGBA", (width, height), colour).save(stream, "PNG")
    return stream.getvalue()


class FakeTerminal(ImageTerminal):
    def __init__(self, way: GraphicsProtocol) -> None:
        self.way = way
        self.asked = 0
        self.sent: list[str] = []
        self.overlays: dict[str, str] = {}

    def cell(self) -> CellSize:
        return CellSize(10, 20)

    async def ask(self) -> GraphicsProtocol:
        self.asked += 1
        return self.way

    def send(self, sequence: str) -> None:
        self.sent.append(sequence)

    def overlay(self, mark: str, sequence: str | None) -> None:
        if sequence is None:
            self.overlays.pop(mark)
        else:
            self.overlays[mark] = sequence


class OneFile:
    """Every image but `gone` is this file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    async def attachments(self, ids: Sequence[str]) -> Sequence[Attachment]:
        return [Attachment(one, self.path, "image/png", 640, 320, 9, 640, 320, 9) for one in ids if one != "gone"]


class Locked:
    """A database that another program holds."""

    async def attachments(self, ids: Sequence[str]) -> Sequence[Attachment]:
        raise StorageError("Another program holds the database.")


def source(folder: Path, terminal: FakeTerminal | None, setting: str = "auto") -> ImageSource:
    path = folder / "image.png"
    path.write_bytes(png(640, 320))

    return ImageSource(terminal, Previewer(PlainRunner()), OneFile(path), setting, {"TERM": "xterm-256color"})


@pytest.mark.parametrize(
    ("setting", "environment", "way"),
    [
        ("auto", {"TERM": "xterm-kitty"}, GraphicsProtocol.KITTY),
        ("auto", {"TERM": "xterm-ghostty"}, GraphicsProtocol.KITTY),
        ("auto", {"TERM": "xterm-256color"}, None),
        ("auto", {"TERM": "tmux-256color", "TMUX": "/tmp/1", "KITTY_WINDOW_ID": "1"}, GraphicsProtocol.BLOCKS),
        ("auto", {"TERM": "xterm-kitty", "NO_COLOR": "1"}, GraphicsProtocol.OFF),
        ("auto", {"TERM": "dumb"}, GraphicsProtocol.OFF),
        ("sixel", {"TERM": "dumb"}, GraphicsProtocol.SIXEL),
        ("off", {"TERM": "xterm-kitty"}, GraphicsProtocol.OFF),
    ],
)
def test_the_setting_then_the_environment_decide_and_else_the_terminal_is_asked(
    setting: str, environment: Mapping[str, str], way: GraphicsProtocol | None
) -> None:
    assert detect_protocol(setting, environment) is way


@pytest.mark.parametrize(
    ("replies", "way"),
    [
        ("", None),
        ("\x1bP>|kitty(0.36.4)\x1b\\", None),
        ("\x1bP>|kitty(0.36.4)\x1b\\\x1b[?62;52;c", GraphicsProtocol.KITTY),
        ("\x1bP>|kitty(0.27.0)\x1b\\\x1b[?62;c", GraphicsProtocol.BLOCKS),
        ("\x1bP>|ghostty 1.2.0\x1b\\\x1b[?62;22;c", GraphicsProtocol.KITTY),
        ("\x1bP>|foot(1.19.0)\x1b\\\x1b[?62;4;22c", GraphicsProtocol.SIXEL),
        ("\x1b[?4;6c", GraphicsProtocol.BLOCKS),
        ("\x1b[?1;2c", GraphicsProtocol.BLOCKS),
    ],
)
def test_a_terminal_tells_what_it_can_show(replies: str, way: GraphicsProtocol | None) -> None:
    assert protocol_of(replies) is way


def test_replies_reach_who_asked_whole_however_they_come_and_never_the_keys() -> None:
    told: list[str] = []
    received = InputFilter(tell=told.append)
    kept = [piece for text in ("a\x1bP>|foo", "t(1)\x1b", "\\b\x1b[?62;4c", "c") for piece in received(text)]
    assert "".join(piece for piece in kept if isinstance(piece, str)) == "abc"
    assert told == ["\x1bP>|foot(1)\x1b\\", "\x1b[?62;4c"]


@pytest.mark.parametrize(
    ("size", "room", "large", "cells"),
    [
        ((640, 320), 100, False, (48, 12)),
        ((640, 320), 30, False, (30, 8)),
        ((640, 320), 200, True, (100, 25)),
        ((100, 1600), 100, False, (2, 12)),
        ((16, 16), 100, False, (3, 2)),
        ((1, 1), 100, False, (1, 1)),
        ((10_000, 1), 100, False, (48, 1)),
    ],
)
def test_an_image_keeps_its_shape_in_the_room_there_is(
    size: tuple[int, int], room: int, large: bool, cells: tuple[int, int]
) -> None:
    box = box_of("i", size, room, 2.0, large=large)
    assert (box.columns, box.rows) == cells
    most = LARGE if large else SMALL
    assert box.columns <= min(most[0], room)
    assert box.rows <= most[1]


def test_every_row_and_column_has_its_own_mark() -> None:
    assert len(set(MARKS)) == len(MARKS) >= max(*LARGE)


def test_half_blocks_show_two_pixels_a_cell_and_see_the_background_through() -> None:
    red, green, clear = b"\xff\x00\x00\xff", b"\x00\xff\x00\xff", b"\x00\x00\x00\x00"
    picture = BlocksPicture(3, red + red + clear + green + green + clear)
    first, second = picture.cells(0, Color(9, 9, 9))
    assert (first.text, second.text) == ("▀▀", " ")
    assert first.style is not None
    assert second.style is not None
    assert first.style.color is not None
    assert first.style.color.name == "#ff0000"
    assert first.style.bgcolor is not None
    assert first.style.bgcolor.name == "#00ff00"
    assert second.style.bgcolor is not None
    assert second.style.bgcolor.name == "#090909"


async def test_the_terminal_is_asked_once_and_only_for_the_first_image(tmp_path: Path) -> None:
    terminal = FakeTerminal(GraphicsProtocol.KITTY)
    images = source(tmp_path, terminal)
    assert terminal.asked == 0
    boxes = [Box("a", 8, 2), Box("b", 8, 2)]
    for box in boxes:
        await images.load(box, "000000")
    assert terminal.asked == 1
    assert [sent.count("a=T,U=1") for sent in terminal.sent] == [1, 1]
    picture = images.ready(boxes[0], "000000")
    assert picture is not None
    (cells,) = picture.cells(1, BLACK)
    assert cells.text.startswith(PLACEHOLDER + MARKS[1] + MARKS[0])
    assert cells.cell_length == 8
    assert drawing_only(cells.text) == cells.text


def test_an_image_is_handed_over_in_pieces_that_name_it_once() -> None:
    content = bytes(range(256)) * 40
    sequence = kitty_image(7, Box("a", 3, 2), content)
    pieces = sequence.split("\x1b\\")[:-1]
    assert [piece[:3] for piece in pieces] == ["\x1b_G"] * 4
    assert "i=7,c=3,r=2,m=1;" in pieces[0]
    assert [piece.partition(";")[0][-3:] for piece in pieces] == ["m=1", "m=1", "m=1", "m=0"][: len(pieces)]
    assert "".join(piece.partition(";")[2] for piece in pieces) == b64encode(content).decode()


async def test_sixels_are_drawn_row_by_row_over_blank_cells(tmp_path: Path) -> None:
    terminal = FakeTerminal(GraphicsProtocol.SIXEL)
    images = source(tmp_path, terminal)
    box = Box("a", 6, 2)
    await images.load(box, "101010")
    picture = images.ready(box, "101010")
    assert picture is not None
    row = "".join(segment.text for segment in picture.cells(1, BLACK))
    assert len(row) == 6
    drawn = with_overlays(drawing_only(f"x{row}y"), terminal.overlays)
    blanks, _, rest = drawn.partition("\x1b7")
    assert blanks == "x      "
    assert rest.startswith('\x1b[6D\x1bP0;1;0q"1;1;60;20')
    assert rest.endswith("\x1b\\\x1b8y")
    assert not rest.removesuffix("\x1b\\\x1b8y").endswith("-"), "a line feed would scroll"
    images.forget()
    assert with_overlays(f"x{row}y", terminal.overlays) == "x      y", "no mark ever reaches the terminal"
    assert images.ready(box, "101010") is None


async def test_an_image_that_is_gone_or_damaged_is_refused_in_words(tmp_path: Path) -> None:
    images = source(tmp_path, FakeTerminal(GraphicsProtocol.BLOCKS))
    with pytest.raises(ImageRejected, match="no longer stored"):
        await images.load(Box("gone", 4, 2), "000000")
    (tmp_path / "image.png").unlink()
    with pytest.raises(ImageRejected, match="cannot be read: No such file"):
        await images.load(Box("a", 4, 2), "000000")
    (tmp_path / "image.png").write_bytes(png(64, 64)[:60])
    with pytest.raises(ImageRejected, match=r"damaged|no PNG"):
        await images.load(Box("a", 4, 2), "000000")


async def test_a_locked_database_is_said_in_the_place_of_the_image(tmp_path: Path) -> None:
    images = ImageSource(
        FakeTerminal(GraphicsProtocol.BLOCKS), Previewer(PlainRunner()), Locked(), "auto", {"TERM": "xterm"}
    )
    with pytest.raises(ImageRejected, match="holds the database"):
        await images.load(Box("a", 4, 2), "000000")


async def test_a_terminal_keeps_only_the_newest_images(tmp_path: Path) -> None:
    terminal = FakeTerminal(GraphicsProtocol.KITTY)
    images = source(tmp_path, terminal)
    images._previewer = _Instant()  # type: ignore[assignment]  # forty-nine processes would take seconds
    for number in range(KEPT + 1):
        await images.load(Box(str(number), 1, 1), "000000")
    assert images.ready(Box("0", 1, 1), "000000") is None
    assert "a=d,d=I" in terminal.sent[-1]


class _Instant:
    async def make(self, data: bytes, order: PreviewOrder) -> tuple[bytes, ...]:
        return (data[:10],)


async def test_the_image_process_gives_exactly_the_pixels_that_were_asked_for() -> None:
    (pixels,) = await Previewer(PlainRunner()).make(png(300, 200, "#00ff0080"), PreviewOrder(PreviewKind.PIXELS, 5, 4))
    assert pixels == b"\x00\xff\x00\x80" * 20
