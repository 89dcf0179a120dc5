"""The text of a terminal, in any cut, apart from its alternate screen: what a person would see, nothing that acts."""

from __future__ import annotations

import re
import tracemalloc
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.clean import clean
from tools.process.output import HeadAndTail
from tools.terminal.text import MOST_MODES, WHOLE_SCREEN, ScreenSplitter, TerminalText, append_whole_screen
from tools.terminal.values import TerminalModes, TerminalSize, TextRun

SIZE = TerminalSize(10, 40)
ACTS = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]")


class Read(NamedTuple):
    text: str
    runs: tuple[TextRun, ...]


def opened(size: TerminalSize = SIZE, mark: str = "") -> TerminalText:
    return TerminalText(size, HeadAndTail(65_536, 65_536), mark)


def told(terminal: TerminalText) -> Read:
    kept, runs = terminal.capture()
    captured = kept.capture()
    return Read((captured.head + captured.tail).decode("utf-8", "replace"), runs)


def read(*pieces: bytes, size: TerminalSize = SIZE) -> Read:
    terminal = opened(size)
    for piece in pieces:
        terminal.feed(piece)
    return told(terminal)


@pytest.mark.parametrize(
    ("written", "seen"),
    [
        (b"one\r\ntwo", "one\ntwo"),
        (b"one\r\n\r\ntwo\r\n\r\n", "one\n\ntwo"),
        (b"10%\r20%\r30%\r\ndone", "30%\ndone"),
        (b"long line\rshort\x1b[K", "short"),
        (b"abc\b\bX", "aXc"),
        (b"a\tb", "a       b"),
        (b"abc\x1b[2DX\x1b[C.", "aXc."),
        (b"abcdef\x1b[3GX\x1b[1K!", "   !ef"),
        (b"abcdef\x1b[2G\x1b[2P", "adef"),
        (b"abc\x1b[2G\x1b[2@X", "aX bc"),
        (b"abcdef\x1b[2G\x1b[3X", "a   ef"),
        (b"a: 1%\r\nb: 1%\r\n\x1b[2Aa: 9%\r\nb: 9%\r\n", "a: 9%\nb: 9%"),
        (b"one\r\ntwo\x1b[H\x1b[2Jnew", "new"),
        (b"one\r\ntwo\r\nthree\x1b[2;1H\x1b[J!", "one\n!"),
        (b"\x1b[3;5Hthere", "\n\n    there"),
        (b"x" * 45 + b"\r\nnext", "x" * 45 + "\nnext"),
        (b"x" * 40 + b"\r\nnext", "x" * 40 + "\nnext"),
        ("日本\x1b[4GX".encode(), "日 X"),
        ("日本\x1b[2GX".encode(), " X本"),
        ("e\u0301\u0301!".encode(), "e\u0301\u0301!"),
        ("a\u202eb\u200bc\u2066d\u200dx".encode(), "abcdx"),
        (b"\xff\xfe", "\\xff\\xfe"),
        (b"a\x1b]0;title\x07b\x1b]8;;http://x\x1b\\c\x1bPq~~\x1b\\d\x1b_G\x1b\\e", "abcde"),
        (b"a\x1b]52;c;never ended\r\nb", "a\nb"),
        (b"a\x1b[?25lb\x1b[5nc\x1b[>cd\x1b(Be\x1b[12\x07f", "abcdef"),
        (b"a\x1b7bc\x1b8X", "aXc"),
        (b"bell\x07 null\x00 del\x7f", "bell null del"),
    ],
)
def test_the_text_is_what_a_person_would_see(written: bytes, seen: str) -> None:
    assert read(written).text == seen


def test_runs_name_the_coloured_pieces_of_each_line() -> None:
    text, runs = read(b"\x1b[1;31merror\x1b[0m: no \x1b[38;5;208mX\x1b[39m\r\n\x1b[48;2;1;2;3m" + b"y" * 45 + b"\x1b[m")
    assert text == "error: no X\n" + "y" * 45
    assert runs == (
        TextRun(0, 0, 5, "1;31"),
        TextRun(0, 10, 11, "38;5;208"),
        TextRun(1, 0, 40, "48;2;1;2;3"),
        TextRun(1, 40, 45, "48;2;1;2;3"),
    )


@pytest.mark.parametrize("sequence", [b"38;5;256", b"38;2;1;2", b"38", b"48;5", b"8", b"5", b"999", b"x", b"1:2:3:a"])
def test_an_odd_colour_changes_nothing(sequence: bytes) -> None:
    assert read(b"\x1b[" + sequence + b"mtext").runs == ()


def test_colours_with_colons_are_those_with_semicolons() -> None:
    assert read(b"\x1b[38:2::1:2:3mtext").runs == (TextRun(0, 0, 4, "38;2;1;2;3"),)


STREAM = (
    b"\x1b[1mdiff --git\x1b[m\r\n\x1b[32m+added\x1b[m\r\n"
    + b"plain line\r\n" * 400
    + b"[####  ] 40%\r[######] 60%\x1b[K\r\n"
    b"\x1b[33m\xe6\x97\xa5\xe6\x9c\xac\x1b[m e\xcc\x81\r\n\x1b[2A\x1b[2K>\x1b]0;t\x1b\\\r\n\x1b[?2004h$ \x1b[K"
)


@pytest.mark.parametrize("size", [1, 2, 3, 7, 64, 1000, 4096])
def test_the_text_does_not_depend_on_how_the_stream_is_cut(size: int) -> None:
    pieces = [STREAM[start : start + size] for start in range(0, len(STREAM), size)]
    assert read(*pieces) == read(STREAM)


SPECIAL = [
    b"\x1b", b"\x1b[", b"\x1b]", b"\x9b", b"\xc2\x9b", b"\r", b"\n", b"\b", b"\t", b"K", b"31m", b"5A",
    b"\x1b[2J",
]  # fmt: skip
SPECIAL += [
    b"\x1b[99;99H",
    b"\x1b[9999999999C",
    b"\x1b[50@",
    b"\x1bP",
    b"\x07",
    b"\xe2\x80\xae",
    b"\xef\xb8\x8f",
    b"\xcc\x81",
]
BYTES = st.lists(st.sampled_from(SPECIAL) | st.binary(max_size=6), max_size=60)


@given(pieces=BYTES, rows=st.integers(-1, 60), columns=st.integers(-1, 90))
def test_no_bytes_leave_anything_that_acts_or_hides(pieces: list[bytes], rows: int, columns: int) -> None:
    terminal = opened(TerminalSize(rows, columns))
    for piece in pieces:
        terminal.feed(piece)
    newest = terminal.newest(20)
    text, runs = told(terminal)
    for shown, found in ((text, runs), (newest.text, newest.runs)):
        assert ACTS.search(shown) is None
        assert clean(shown) == shown
        lines = shown.split("\n")
        assert all(0 <= run.start < run.end <= len(lines[run.row]) or not lines[run.row].strip() for run in found)
    assert told(terminal) == (text, runs)
    terminal.finish()
    assert told(terminal).text.startswith(text[:1])


@given(pieces=BYTES)
def test_cutting_any_bytes_anywhere_changes_nothing(pieces: list[bytes]) -> None:
    assert read(b"".join(pieces)) == read(*pieces)


@given(
    texts=st.lists(st.text("ab 日", max_size=50), max_size=12),
    before=st.sampled_from(["", "日本語", "\x1b[31m", "\x1b]0;t", "x" * 45]),
)
def test_a_row_that_is_written_again_shows_what_later_texts_leave(texts: list[str], before: str) -> None:
    stream = (before + "".join(f"\r{text}" for text in texts)).encode()
    assert read(stream) == read(*(stream[place : place + 1] for place in range(len(stream))))


def test_plain_lines_in_one_piece_are_those_in_many() -> None:
    lines = b"".join(b"line %d \r\n" % number for number in range(3000))
    whole, cut = opened(), opened()
    whole.feed(b"\x1b[31mred\x1b[m\r\n" + lines)
    for start in range(0, len(lines), 50):
        if not start:
            cut.feed(b"\x1b[31mred\x1b[m\r\n")
        cut.feed(lines[start : start + 50])
    assert told(whole) == told(cut)
    assert whole.newest(5) == cut.newest(5)
    assert told(whole).runs == (TextRun(0, 0, 3, "31"),)


@pytest.mark.parametrize(
    "chunk",
    [
        b"\r[" + b"#" * 60 + b"] 50%",
        b"y\r\n" * 100,
        b"x" * 500,
        b"\x1b[31mx",
        b"\x1b]0;" + b"t" * 500,
        b"\x1b[" + b"1;" * 200,
        "e\u0301".encode() * 100,
        b"\x1b[50A\x1b[J\r\n",
    ],
    ids=["progress", "lines", "one line", "colours", "a title without an end", "a sequence without one", "marks", "up"],
)
def test_memory_is_bounded_whatever_comes(chunk: bytes) -> None:
    terminal = opened()
    data = chunk * (16_384 // len(chunk))
    for _ in range(12):
        terminal.feed(data)
        terminal.take_final()
    tracemalloc.start()
    try:
        for _ in range(12):
            terminal.feed(data)
            terminal.take_final()
        grown, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert grown < 1_000_000
    assert len(told(terminal).text) <= 4 * 65_536


def test_a_hundred_megabytes_of_progress_in_one_row_leave_its_last_state() -> None:
    terminal = opened(TerminalSize(10, 80))
    piece = b"".join(b"\r[" + b"#" * 60 + b"] %3d%%" % (number % 101) for number in range(1000))
    for _ in range(1400):
        terminal.feed(piece)
        assert len(terminal.take_final()) == 0
    terminal.feed(b"\rdone\x1b[K\r\n")
    assert told(terminal) == ("done", ())


def test_modes_of_keys_and_pastes_are_known() -> None:
    terminal = opened()
    terminal.feed(b"\x1b[?1;2004h")
    assert terminal.modes == TerminalModes(application_keys=True, brackets_pastes=True)
    terminal.feed(b"\x1b[?2004l\x1b[?1l")
    assert terminal.modes == TerminalModes()


@pytest.mark.parametrize(
    ("body", "folder"),
    [(b"2f746d70", "/tmp"), (b"2f610a62", "/a\nb"), (b"746d70", ""), (b"2f00", ""), (b"xx", ""), (b"2fff", "/\udcff")],
)
def test_the_shell_names_its_folder_outside_of_the_text(body: bytes, folder: str) -> None:
    terminal = opened(mark="7;secret;")
    terminal.feed(b"a\x1b]7;secret;" + body + b"\x07b\x1b]7;other;2f657463\x07")
    assert (terminal.folder, told(terminal).text) == (folder, "ab")


def test_the_cursor_is_known_while_it_is_shown() -> None:
    terminal = opened()
    terminal.feed("日本: ".encode())
    assert terminal.newest(5).cursor == (0, 4)
    terminal.feed(b"\r\n\x1b[5C")
    assert terminal.newest(5).cursor == (1, 5)
    assert terminal.newest(1).cursor == (0, 5)
    terminal.feed(b"\x1b[?25l")
    assert terminal.newest(5).cursor is None
    terminal.feed(b"\x1b[?25h" + b"row\r\n" * 60)
    assert terminal.newest(5).cursor == (4, 0)


def test_a_smaller_screen_keeps_its_rows() -> None:
    terminal = opened()
    terminal.feed(b"".join(b"row %d\r\n" % number for number in range(8)))
    terminal.screen.resize(10, 3)
    terminal.feed(b"a much longer row")
    assert told(terminal).text == "\n".join([*(f"row {number}" for number in range(8)), "a much longer row"])


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
        (b"drawn", b""), (b"a\x1b[31m", b""), (b"a\x1b]0;title\x07", b""), (b"a", b"\x1b"),
        (b"a", b"\x1b[38;5;2"), (b"a", b"\x1b[?25"), (b"a", b"\x1b("), (b"a", b"\x1b]8;;https://a.example"),
        (b"a", b"\x1b]0;title\x1b"), (b"a", b"\xe2\x94"),
    ],
)  # fmt: skip
def test_the_rows_are_freed_before_a_sequence_that_goes_on(whole: bytes, unfinished: bytes) -> None:
    assert append_whole_screen(whole + unfinished) == whole + WHOLE_SCREEN + unfinished
