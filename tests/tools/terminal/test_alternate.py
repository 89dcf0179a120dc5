"""Output of a program as lines, apart from what it draws on the alternate screen."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.terminal.text import MOST_MODES, WHOLE_SCREEN, ScreenSplitter, append_whole_screen

ENTER, LEAVE = b"\x1b[?1049h", b"\x1b[?1049l"


def split(*chunks: bytes) -> tuple[bytes, bytes]:
    """All lines, and all that was drawn."""
    splitter = ScreenSplitter()
    pieces = [piece for chunk in chunks for piece in splitter.feed(chunk)] + [*splitter.feed(b"", final=True)]
    return tuple(b"".join(piece.content for piece in pieces if piece.is_drawn is drawn) for drawn in (False, True))  # type: ignore[return-value] # two


@pytest.mark.parametrize(
    ("enter", "leave"),
    [
        (ENTER, LEAVE),
        (b"\x1b[?47h", b"\x1b[?47l"),
        (b"\x1b[?1;1047;25h", b"\x1b[?1047l"),
        (b"\xc2\x9b?1049h", b"\xc2\x9b?1049l"),
        (ENTER, b"\x1bc"),
        (ENTER + ENTER, LEAVE),
    ],
)
def test_lines_around_the_alternate_screen_are_lines(enter: bytes, leave: bytes) -> None:
    assert split(b"before" + enter + b"drawn" + leave + b"after") == (b"beforeafter", enter + b"drawn" + leave)


@given(
    st.lists(st.sampled_from([ENTER, LEAVE, b"\x1b", b"\x1b[?", b"a", b"\xc2", b"\x1b[31m", b"\r\n", b"1049h"])),
    st.data(),
)
def test_any_cut_of_the_stream_gives_the_same(parts: list[bytes], data: st.DataObject) -> None:
    whole = b"".join(parts)
    cut = data.draw(st.integers(0, len(whole)))
    assert split(whole[:cut], whole[cut:]) == split(whole) == split(*(bytes([byte]) for byte in whole))
    assert sum(map(len, split(whole))) == len(whole)


def test_the_modes_of_a_program_can_be_set_again() -> None:
    splitter = ScreenSplitter()
    list(splitter.feed(b"\x1b[?2004h\x1b[?1049;1000h\x1b=\x1b[?25"))
    list(splitter.feed(b"l\x1b[?1000l\x1b[?2026h"))
    assert splitter.sequences() == b"\x1b[?1049h\x1b[H\x1b[2J\x1b[?2004h\x1b[?1000l\x1b[?25l\x1b="


def test_modes_and_unfinished_sequences_are_bounded() -> None:
    splitter = ScreenSplitter()
    list(splitter.feed(b"".join(b"\x1b[?%dh" % number for number in range(5000))))
    assert splitter.sequences().count(b"?") == 1 + MOST_MODES
    assert sum(len(piece.content) for piece in splitter.feed(b"\x1b[?" + b"1;" * 10_000)) == 20_003


@pytest.mark.parametrize(
    ("whole", "unfinished"),
    [
        (b"drawn", b""),
        (b"a\x1b[31m", b""),
        (b"a\x1b]0;title\x07", b""),
        (b"a", b"\x1b"),
        (b"a", b"\x1b[38;5;2"),
        (b"a", b"\x1b[?25"),
        (b"a", b"\x1b("),
        (b"a", b"\x1b]8;;https://a.example"),
        (b"a", b"\x1b]0;title\x1b"),
        (b"a", b"\xe2\x94"),
    ],
)
def test_the_rows_are_freed_before_a_sequence_that_goes_on(whole: bytes, unfinished: bytes) -> None:
    assert append_whole_screen(whole + unfinished) == whole + WHOLE_SCREEN + unfinished
