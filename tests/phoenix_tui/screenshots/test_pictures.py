"""The pictures show a terminal's cells as they are, with still clocks."""

from __future__ import annotations

import pytest

from screenshots.cells import GROUND, INK, Cell, cells
from screenshots.painter import FONTS, HEIGHT, MARGIN, WIDTH, paint
from screenshots.studio import COLOURS, reduced


def row(raw: str, columns: int = 40, rows: int = 3) -> list[Cell]:
    return cells(raw.encode(), columns, rows)[0]


def text(raw: str, columns: int = 40) -> str:
    return "".join(cell.text for cell in row(raw, columns)).rstrip()


def test_colours_and_attributes_are_kept() -> None:
    first, second, third = row("\x1b[1;3;4;38;2;1;2;3;48;2;4;5;6ma\x1b[0;31mb\x1b[0mc")[:3]
    assert first == Cell("a", "#010203", "#040506", bold=True, slanted=True, underlined=True)
    assert second == Cell("b", "#ff7b81", GROUND)
    assert third == Cell("c", INK, GROUND)


def test_reverse_swaps_ink_and_ground() -> None:
    assert row("\x1b[7ma")[0] == Cell("a", GROUND, INK)


def test_dim_text_is_thinner_until_it_ends() -> None:
    dim, plain = row("\x1b[2;38;2;100;100;100;48;2;0;0;0ma\x1b[22mb")[:2]
    assert (dim.ink, plain.ink) == ("#3c3c3c", "#646464")


def test_a_colour_with_the_number_of_dim_is_no_dim() -> None:
    assert row("\x1b[38;2;100;2;100;48;2;0;0;0ma")[0].ink == "#640264"


def test_a_wide_character_takes_two_cells() -> None:
    assert [cell.text for cell in row("日x")[:3]] == ["日", "", "x"]


def test_clocks_at_the_edges_stand_still_and_times_that_were_said_stay() -> None:
    columns = 80
    said = " " * 30 + "waits 16 s, then 0.7s"
    assert text(said, columns) == said
    assert text("  5    16 s   16 s", columns) == "  5    16 s   16 s"
    assert text(f"{'done 9s':<29}│{'':<40}+4 · 1.7s", columns) == f"{'done 4s':<29}│{'':<40}+4 · 0.4s"
    assert text("■ stopped by you after 37 s", columns) == "■ stopped by you after 14 s"


def test_the_port_of_the_loopback_server_is_the_same_in_every_picture() -> None:
    assert text("asks 127.0.0.1:39517 now") == "asks 127.0.0.1:50443 now"


@pytest.mark.skipif(not FONTS.is_dir(), reason="the font of the pictures is not on this machine")
def test_a_picture_has_the_grounds_and_the_signs_of_the_screen() -> None:
    picture = paint(cells(b"\x1b[48;2;10;20;30m \x1b[0m\x1b[38;2;250;0;0m\xe2\x96\x88", 2, 1))
    assert picture.size == (2 * WIDTH + 2 * MARGIN, HEIGHT + 2 * MARGIN)
    middle = MARGIN + HEIGHT // 2
    assert picture.getpixel((MARGIN + WIDTH // 2, middle)) == (10, 20, 30)
    assert picture.getpixel((MARGIN + WIDTH + WIDTH // 2, middle)) == (250, 0, 0)


@pytest.mark.skipif(not FONTS.is_dir(), reason="the font of the pictures is not on this machine")
def test_a_rare_colour_stands_in_the_stored_picture_as_it_is_on_the_screen() -> None:
    words = "".join(f"\x1b[38;2;{shade};{shade};{shade + 9}mThe quick brown fox " for shade in range(100, 200))
    screen = cells(f"{words}\x1b[38;2;255;123;129m\u2588".encode(), 80, 30)
    stored = reduced(paint(screen), screen).convert("RGB")
    colours = {colour for _, colour in stored.getcolors(stored.width * stored.height) or ()}
    assert (255, 123, 129) in colours
    assert len(colours) <= COLOURS
