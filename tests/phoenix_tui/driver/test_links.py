"""Links of the terminal (OSC 8): whole, closed, of this process alone, and only to addresses that a browser opens."""

from __future__ import annotations

import random
import re
from typing import Any

import pyte
import pytest
from rich.color import ColorSystem
from rich.segment import Segment
from rich.style import Style
from textual._compositor import LayoutUpdate
from textual.color import Color
from textual.geometry import Region, Size
from textual.strip import Strip

from phoenix_tui.markdown.layout import link_action
from phoenix_tui.markdown.lines import Span, StyledLine
from phoenix_tui.terminal.cells import code_of, link_of
from phoenix_tui.terminal.output import LINK_ID, drawing_only, link_to
from phoenix_tui.terminal.shadow import ShadowScreen, takes_links
from phoenix_tui.widgets.transcript.painter import HERE, Colours, Painter

COLUMNS, ROWS = 30, 6
TRUE = ColorSystem.TRUECOLOR
GREY = Color(200, 200, 200)
COLOURS = Colours(GREY, GREY, GREY, GREY, GREY, GREY, GREY, GREY, GREY, GREY)
HOME, DOCS = "https://example.org/a?b=c&d=1#e", "http://docs.example.org/x;y"
OSC_8 = re.compile(r"\x1b\]8;(?:id=[0-9a-f]+)?;([^\x1b]*)\x1b\\")
HOSTILE = (
    "javascript:alert(1)",
    "file:///etc/passwd",
    "data:text/html,x",
    "https://good.example@evil.example/",
    "https://a.example/\x1b]52;c;AAAA\x07",
    "https://a.example/\x1b\\\x1b[2J",
    "https://a.example/\x07",
    "https://a.example/\x9c",
    "https://a.example/ b",
    "https://a.example/'b",
    'https://a.example/"b',
    "https://а.example/",
    "https://a.example/\u202e",
    "https://" + "a" * 2_001,
    "HTTPS://a.example/",
    "https://",
    "ftp://a.example/",
)


class LinkScreen(pyte.Screen):
    """A terminal that remembers the link of each cell."""

    def __init__(self) -> None:
        self.link = ""
        self.links: dict[tuple[int, int], str] = {}
        super().__init__(COLUMNS, ROWS)

    def draw(self, data: str) -> None:
        """Write a text, one character after the other."""
        for character in data:
            super().draw(character)
            self.links[self.cursor.y, self.cursor.x - 1] = self.link

    def erase_in_line(self, how: int = 0, private: bool = False) -> None:
        """Erase to the end of the row, with its links."""
        super().erase_in_line(how, private)
        self.links |= {(self.cursor.y, x): "" for x in range(self.cursor.x, COLUMNS)}

    def erase_characters(self, count: int | None = None) -> None:
        """Erase some cells, with their links."""
        super().erase_characters(count)
        self.links |= {(self.cursor.y, self.cursor.x + x): "" for x in range(count or 1)}

    def index_of(self, y: int) -> str:
        """The links of a row, a character for each cell."""
        signs = {"": ".", HOME: "h", DOCS: "d"}
        return "".join(signs[self.links.get((y, x), "")] for x in range(COLUMNS))


def feed(screen: LinkScreen, stream: pyte.Stream, written: str) -> None:
    """Take what was written, with its links."""
    assert drawing_only(written) == written
    pieces = OSC_8.split(written)
    for number, piece in enumerate(pieces):
        if number % 2:
            screen.link = piece
        else:
            assert "\x1b]" not in piece
            stream.feed(piece)
    assert screen.link == "", "no link stays open behind a frame"


def test_each_cell_has_its_own_link_however_the_rows_change() -> None:
    chance = random.Random(8)
    shadow, screen = ShadowScreen(capable=False, links=True), LinkScreen()
    stream = pyte.Stream(screen)
    shadow.fit(Size(COLUMNS, ROWS))
    looks = (Style(), Style(link=HOME), Style(link=DOCS, underline=True), Style(bold=True), Style(link=HOME, bold=True))
    for _ in range(60):
        rows: list[list[Segment]] = []
        for _ in range(ROWS):
            row = [Segment(chance.choice(("ab", "c d", "efghij", "   ", "x")), chance.choice(looks)) for _ in range(7)]
            rows.append(row)
        strips = [Strip(row).adjust_cell_length(COLUMNS, Style()) for row in rows]
        update = LayoutUpdate([[strip] for strip in strips], Region(0, 0, COLUMNS, ROWS))
        feed(screen, stream, shadow.draw(update, TRUE))
        for y, strip in enumerate(strips):
            wanted = "".join(sign_of(segment) for segment in strip)
            shown = screen.index_of(y)
            words = "".join(segment.text for segment in strip)
            differing = [x for x in range(COLUMNS) if words[x] != " " and wanted[x] != shown[x]]
            assert differing == [], (words, wanted, shown)


def sign_of(segment: Segment) -> str:
    link = segment.style.link if segment.style is not None else None
    return {None: ".", HOME: "h", DOCS: "d"}[link] * len(segment.text)


def test_without_links_the_same_frame_has_none() -> None:
    shadow = ShadowScreen(capable=True)
    shadow.fit(Size(COLUMNS, 1))
    strip = Strip([Segment("x", Style(link=HOME))]).adjust_cell_length(COLUMNS, Style())
    assert "\x1b]" not in shadow.draw(LayoutUpdate([[strip]], Region(0, 0, COLUMNS, 1)), TRUE)


@pytest.mark.parametrize("address", HOSTILE)
def test_an_address_that_is_no_plain_web_address_is_no_link(address: str) -> None:
    assert link_of(code_of(Style(link=address), TRUE)) == ""
    action = link_action(address)
    line = StyledLine((Span("x", action=action),))
    style: Any = next(iter(Painter(COLOURS, 10).strip(line))).style
    assert link_of(code_of(style, TRUE)) == ""


@pytest.mark.parametrize("address", [HOME, DOCS])
def test_a_web_address_of_an_answer_is_a_link_and_stays_clickable(address: str) -> None:
    line = StyledLine((Span("x", action=link_action(address)),))
    style: Any = next(iter(Painter(COLOURS, 10).strip(line))).style
    assert link_of(code_of(style, TRUE)) == address
    assert style.meta == HERE.meta


@pytest.mark.parametrize(
    "planted",
    [
        f"\x1b]8;;{HOME}\x1b\\",
        f"\x1b]8;id=0123456789ab;{HOME}\x1b\\",
        "\x1b]8;id=OWN;javascript:x\x1b\\",
        f"\x1b]8;id=OWN;{HOME}\x07",
        f"\x1b]8;id=OWN;{HOME}",
        f"\x9d8;id=OWN;{HOME}\x9c",
    ],
)
def test_a_link_that_is_not_of_this_process_is_left_out(planted: str) -> None:
    planted = planted.replace("OWN", LINK_ID)
    assert not {"\x1b", "\x9d"} & set(drawing_only(f"a{planted}b"))
    assert drawing_only(link_to(HOME)) == link_to(HOME)


@pytest.mark.parametrize(
    ("environment", "takes"),
    [({"TERM": "xterm-256color"}, True), ({"TERM": "linux"}, False), ({"TERM": "vt100"}, False), ({}, False)],
)
def test_terminals_that_may_print_it_get_none(environment: dict[str, str], takes: bool) -> None:
    assert takes_links(environment) is takes
