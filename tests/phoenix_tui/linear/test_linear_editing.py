"""The typed line: after any keys the terminal shows the line."""

from __future__ import annotations

from pathlib import Path

import pyte
import pytest
from hypothesis import given
from hypothesis import strategies as st

from phoenix_tui.features.composing import PromptHistory
from phoenix_tui.linear.line_buffer import LeaveTyped, LineBuffer, LineTyped, StopWanted
from phoenix_tui.linear.terminal import find_unfinished

KEYS = ["\x7f", "\x15", "\x17", "\x0b", "\x01", "\x05", "\x1b[C", "\x1b[D", "\x1b[3~", "\x1b[A", "\x1b[B", "\n"]


@given(st.lists(st.sampled_from([*KEYS, "a", "b c", "ä", "行", "x\ty"]), max_size=30))
def test_the_terminal_shows_the_line_and_the_cursor_whatever_was_typed(
    tmp_path_factory: pytest.TempPathFactory, keys: list[str]
) -> None:
    past = PromptHistory(tmp_path_factory.mktemp("state"), Path("/work"))
    past.add("first line")
    past.add("zweite 行")
    line = LineBuffer(past)
    screen = pyte.Screen(400, 3)
    stream = pyte.Stream(screen)
    for key in keys:
        stream.feed(line.feed(key))
        before = "".join(letter for letter in line.text[: line.cursor].replace("\n", " "))
        shown = "".join(screen.buffer[0][column].data for column in range(400)).rstrip()
        assert shown == line.text.replace("\n", " ").rstrip()
        assert screen.cursor.x == sum(2 if letter == "行" else 1 for letter in before)


def test_enter_gives_the_line_and_esc_stops_and_ctrl_d_leaves_an_empty_one() -> None:
    line = LineBuffer()
    line.feed("hi\r\x1b\x04x\x04")
    assert line.requests == [LineTyped("hi"), StopWanted(), LeaveTyped()]
    assert line.text == "x"


def test_a_paste_is_text_whatever_stands_in_it() -> None:
    line = LineBuffer()
    line.feed("\x1b[200~one\r\ntwo\x03\x1b[31m\x1b[201~")
    assert line.text == "one\n\ntwo[31m"
    assert line.requests == []


def test_replies_of_the_terminal_are_not_typed() -> None:
    line = LineBuffer()
    line.feed("\x1b]11;rgb:0000/0000/0000\x1b\\a\x1b[?62;c")
    assert line.text == "a"


def test_a_sequence_or_a_paste_that_has_not_ended_is_waited_for() -> None:
    assert find_unfinished("abc") == ""
    assert find_unfinished("abc\x1b") == "\x1b"
    assert find_unfinished("\x1b[1;5") == "\x1b[1;5"
    assert find_unfinished("\x1b[1;5C") == ""
    assert find_unfinished("\x1b[200~half") == "\x1b[200~half"
    assert find_unfinished("\x1b[200~whole\x1b[201~") == ""


def test_a_text_put_into_the_line_holds_nothing_that_acts() -> None:
    line = LineBuffer()
    assert line.put("a\x1b]0;title\x07b\x1b[2J\tc\nd") == "ab c d"
    assert line.text == "ab\tc\nd"
