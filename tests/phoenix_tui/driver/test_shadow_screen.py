"""Frames that hold only what changes: a terminal that is given them shows what one does that is given everything."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence

import pyte
import pytest
from rich.color import Color, ColorSystem
from rich.segment import Segment
from rich.style import Style
from textual._compositor import ChopsUpdate, LayoutUpdate
from textual.geometry import Region, Size
from textual.strip import Strip

from phoenix_tui.terminal.cells import blank_code, cells_of, change_of_style, code_of, look_of
from phoenix_tui.terminal.output import drawing_only, with_overlays
from phoenix_tui.terminal.shadow import ShadowScreen, is_capable

COLUMNS, ROWS = 40, 12
TRUE = ColorSystem.TRUECOLOR
PLAIN = Style()
STYLES = (
    PLAIN,
    Style(bold=True),
    Style(italic=True, color=Color.parse("#aa3355")),
    Style(underline=True, bgcolor=Color.parse("#101820")),
    Style(reverse=True, color=Color.parse("green")),
    Style(color=Color.parse("#ffffff"), bgcolor=Color.parse("#101820")),
    Style(strike=True, dim=True),
)
WORDS = ("alpha", "beta gamma", "    ", "日本語", "été", "───", "a", " ", "漢字 and more", "const x = 1;")


class Shown:
    """A terminal, and the shadow of it."""

    def __init__(self, columns: int = COLUMNS, rows: int = ROWS, *, capable: bool = True) -> None:
        self.size = Size(columns, rows)
        self.screen = pyte.Screen(columns, rows)
        self.stream = pyte.Stream(self.screen)
        self.shadow = ShadowScreen(capable=capable)
        self.shadow.fit(self.size)
        self.wanted = [Strip([Segment(" " * columns, PLAIN)]) for _ in range(rows)]
        """The whole screen as it was last drawn."""

    def draw(self, lines: Sequence[Strip]) -> str:
        """Draw the whole screen."""
        self.wanted = [*lines]
        return self.feed(LayoutUpdate([[line] for line in lines], Region(0, 0, *self.size)))

    def draw_at(self, x: int, y: int, lines: Sequence[Strip]) -> str:
        """Draw a part of it, as a widget does that changed."""
        width = lines[0].cell_length
        for row, line in enumerate(lines, y):
            before = self.wanted[row]
            rest = before.crop(x + width, self.size.width)
            self.wanted[row] = Strip.join([before.crop(0, x), line, rest])
        chops: list[dict[int, Strip | None]] = [{0: None, x: None, x + width: None} for _ in range(self.size.height)]
        ends = [[x, x + width, self.size.width] for _ in range(self.size.height)]
        for row, line in enumerate(lines, y):
            chops[row][x] = line
        spans = [(row, x, x + width) for row in range(y, y + len(lines))]
        if x == 0:
            chops = [{0: chop[0], width: None} for chop in chops]
            ends = [[width, self.size.width] for _ in ends]
        return self.feed(ChopsUpdate(chops, spans, ends))

    def feed(self, update: LayoutUpdate | ChopsUpdate) -> str:
        """Text written for an update, which the terminal has taken."""
        written = self.shadow.draw(update, TRUE)
        assert drawing_only(written) == written
        self.stream.feed(with_overlays(written, {}))
        return written

    def looks(self) -> list[list[tuple[object, ...]]]:
        """The cells of the terminal; of a blank, what one sees of it."""
        return [[_look(self.screen.buffer[y][x]) for x in range(self.size.width)] for y in range(self.size.height)]

    def expected(self) -> list[list[tuple[object, ...]]]:
        """The same of a terminal that is given every cell of every row."""
        whole = pyte.Screen(*self.size)
        stream = pyte.Stream(whole)
        for y, line in enumerate(self.wanted, 1):
            stream.feed(f"\x1b[{y};1H" + "".join(with_overlays(_rendered(segment), {}) for segment in line))
        return [[_look(whole.buffer[y][x]) for x in range(self.size.width)] for y in range(self.size.height)]


def _rendered(segment: Segment) -> str:
    code = code_of(segment.style, TRUE)
    return f"\x1b[0;{code}m{segment.text}\x1b[0m" if code else segment.text


def _look(cell: pyte.screens.Char) -> tuple[object, ...]:
    lined = cell.underscore or cell.strikethrough or cell.reverse
    if cell.data == " " and not lined:
        return " ", cell.bg
    return tuple(cell)


def text(words: str, width: int = COLUMNS, style: Style = PLAIN) -> Strip:
    """A row of one style."""
    return Strip([Segment(words, style)]).adjust_cell_length(width, PLAIN)


def page(first: int, count: int = ROWS) -> list[Strip]:
    """Rows of different words."""
    return [text(f"{number} line number {number} of it") for number in range(first, first + count)]


def test_what_stands_is_not_written_again() -> None:
    shown = Shown()
    assert shown.draw(page(0)) != ""
    assert shown.draw(page(0)) == ""
    assert shown.draw_at(3, 4, [shown.wanted[4].crop(3, 20)]) == ""


def test_a_letter_costs_its_place_and_itself() -> None:
    shown = Shown()
    shown.draw([text("ask") for _ in range(ROWS)])
    lines = [*shown.wanted]
    lines[5] = text("asks")
    assert shown.draw(lines) == "\x1b[6;4Hs"
    assert shown.looks() == shown.expected()


def test_text_that_moves_up_is_scrolled_and_only_its_last_row_is_written() -> None:
    shown = Shown()
    shown.draw(page(0))
    written = shown.draw(page(1))
    assert written == "\x1b[1;12r\x1b[1;1H\x1b[1M\x1b[r\x1b[12H12 line number 12 of it"
    assert shown.looks() == shown.expected()


def test_text_that_moves_down_is_scrolled_within_its_rows() -> None:
    shown = Shown()
    foot = [text("status"), text("keys")]
    shown.draw([*page(5, ROWS - 2), *foot])
    written = shown.draw([*page(3, ROWS - 2), *foot])
    assert written.startswith("\x1b[1;10r\x1b[1;1H\x1b[2L\x1b[r")
    assert "status" not in written
    assert shown.looks() == shown.expected()


def test_a_pane_beside_a_list_is_scrolled_where_that_is_shorter() -> None:
    shown = Shown()
    shown.draw([text("one", 10) if y < 2 else text("", 10) for y in range(ROWS)] and page(0))
    pane = [text(f"{n} words of pane {n}", 30) for n in range(ROWS)]
    shown.draw_at(10, 0, pane)
    shown.draw_at(0, 0, [text("", 10) for _ in range(ROWS)])
    written = shown.draw_at(10, 0, [*pane[1:], text("a new last row", 30)])
    assert written.startswith("\x1b[1;12r")
    assert len(written) < 80
    assert shown.looks() == shown.expected()


def test_a_terminal_that_is_not_known_is_never_asked_to_move_lines_or_to_erase_in_colour() -> None:
    shown = Shown(capable=False)
    ground = Style(bgcolor=Color.parse("#101820"))
    shown.draw([text("", style=ground) for _ in range(ROWS)])
    shown.draw(page(0))
    written = shown.draw([text(" " * COLUMNS, style=ground), *page(2, ROWS - 1)])
    assert re.search(r"\x1b\[\d*[LMr]", written) is None
    assert " " * COLUMNS in written
    assert shown.looks() == shown.expected()


@pytest.mark.parametrize(
    ("environment", "capable"),
    [
        ({"TERM": "xterm-256color"}, True),
        ({"TERM": "tmux-256color"}, True),
        ({"TERM": "screen-256color"}, False),
        ({"TERM": "screen-256color", "TMUX": "/tmp/tmux-0/default,1,0"}, True),
        ({"TERM": "vt100"}, False),
        ({}, False),
    ],
)
def test_what_a_terminal_can_do_is_told_by_its_name(environment: dict[str, str], capable: bool) -> None:
    assert is_capable(environment) is capable


def test_after_forgetting_everything_is_written() -> None:
    shown = Shown()
    first = shown.draw(page(0))
    shown.stream.feed("\x1b[5;5Hwritten by another program")
    shown.shadow.forget()
    assert shown.draw(page(0)) == first
    assert shown.looks() == shown.expected()


def test_an_unknown_cell_beside_a_change_is_left_alone() -> None:
    shown = Shown()
    written = shown.draw_at(4, 2, [text("new", 6)])
    assert written == "\x1b[3;5Hnew   "


def test_a_row_behind_a_symbol_of_disputed_width_is_written_to_its_end() -> None:
    shown = Shown()
    shown.draw([text("so 👩‍💻 codes and more")] * ROWS)
    written = shown.draw([text("so 👩‍💻 codes and most")] * ROWS)
    assert written.startswith("\x1b[1;4H👩‍💻\x1b[1;6H codes and most")


def test_the_row_of_an_image_is_written_as_a_whole() -> None:
    shown = Shown()
    mark = "\U000f0001"
    row = Strip([Segment("     "), Segment(mark), Segment(" beside it")]).adjust_cell_length(COLUMNS)
    covered = Strip([Segment("  menu"), Segment(" beside it")]).adjust_cell_length(COLUMNS)
    shown.draw([row] * ROWS)
    shown.draw([covered] * ROWS)
    assert shown.draw([row] * ROWS).count(mark) == ROWS
    other = Strip([Segment("  x  "), Segment(mark), Segment(" beside it")]).adjust_cell_length(COLUMNS)
    assert mark in shown.draw([other, *[row] * (ROWS - 1)])


def test_images_are_never_scrolled() -> None:
    shown = Shown()
    image = Strip([Segment("     "), Segment("\U000f0001")]).adjust_cell_length(COLUMNS)
    shown.draw([*page(0, ROWS - 1), image])
    written = shown.draw([*page(1, ROWS - 2), image, text("behind")])
    assert re.search(r"\x1b\[\d*[LMr]", written) is None
    assert shown.looks() == shown.expected()


def test_a_frame_that_moves_the_cursor_nowhere_is_none() -> None:
    shadow = ShadowScreen(capable=True)
    shadow.fit(Size(COLUMNS, ROWS))
    assert not shadow.is_repeated("\x1b[3;4H")
    assert shadow.is_repeated("\x1b[3;4H")
    assert not shadow.is_repeated("x\x1b[3;4H")
    assert shadow.is_repeated("\x1b[3;4H")
    assert not shadow.is_repeated("\x1b[3;5H")
    shadow.forget()
    assert not shadow.is_repeated("\x1b[3;5H")


def test_control_characters_and_sequences_of_text_never_reach_the_terminal() -> None:
    assert cells_of("a\x1b[5;1r\x07b\x9bc\r\nd") == list("a[5;1rbcd")
    shown = Shown()
    written = shown.draw([text("a\x1b]52;c;AAAA\x07b")] * ROWS)
    assert "\x1b]" not in written
    assert "\x07" not in written


def test_every_change_of_style_sets_exactly_the_new_one() -> None:
    codes = [code_of(style, TRUE) for style in STYLES]
    for before in codes:
        for after in codes:
            screen = pyte.Screen(4, 1)
            pyte.Stream(screen).feed(f"\x1b[0;{before}m" + change_of_style(before, after) + "x")
            plain = pyte.Screen(4, 1)
            pyte.Stream(plain).feed(f"\x1b[0;{after}mx")
            assert screen.buffer[0][0] == plain.buffer[0][0], (before, after)


def test_a_style_is_taken_apart_whatever_its_order() -> None:
    assert look_of("1;38;2;1;2;3;4;48;5;17") == (("1", "4"), "38;2;1;2;3", "48;5;17")
    assert look_of("31;39;41;49").code == ""
    assert blank_code("1;31;44") == "44"
    assert blank_code("4;31;44") == "4;31;44"


@pytest.mark.slow
def test_random_updates_leave_the_terminal_as_whole_frames_would() -> None:
    for seed in range(20):
        chance = random.Random(seed)
        shown = Shown(capable=chance.random() < 0.8)
        shown.draw([_random_row(chance, COLUMNS) for _ in range(ROWS)])
        for step in range(25):
            _random_step(chance, shown)
            assert shown.looks() == shown.expected(), (seed, step)


def _random_step(chance: random.Random, shown: Shown) -> None:
    kind = chance.random()
    if kind < 0.3:
        distance = chance.choice((-3, -2, -1, 1, 2, 3))
        fresh = [_random_row(chance, COLUMNS) for _ in range(abs(distance))]
        lines = shown.wanted
        shown.draw([*lines[distance:], *fresh] if distance > 0 else [*fresh, *lines[:distance]])
    elif kind < 0.4:
        shown.shadow.forget()
        shown.draw(shown.wanted)
    else:
        width, x = chance.randint(4, 20), chance.randint(0, 18)
        top = chance.randint(0, ROWS - 2)
        height = chance.randint(1, ROWS - top)
        shown.draw_at(x, top, [_random_row(chance, width) for _ in range(height)])


def _random_row(chance: random.Random, width: int) -> Strip:
    segments = [Segment(chance.choice(WORDS), chance.choice(STYLES)) for _ in range(chance.randint(0, 6))]
    return Strip(segments).adjust_cell_length(width, chance.choice(STYLES))
