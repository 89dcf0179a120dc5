"""The filters on both streams, as functions."""

from __future__ import annotations

import os
import pty
import termios
import tty

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual import events
from textual.constants import ESCAPE_DELAY
from textual.keys import _character_to_key

from phoenix_tui.terminal.input import PASTE_SECONDS, REPLY_SECONDS, InputFilter, TerminalInput
from phoenix_tui.terminal.output import drawing_only
from phoenix_tui.terminal.state import RESTORE, reset
from tests.support.clocks import SteppedClock


@pytest.mark.parametrize(
    "own",
    [
        "\x1b[1;31mred\x1b[0m\x1b[10;2H\x1b[?2026h",
        "\x1b]22;pointer\x1b\\",
        "\x07",
        "\x1b[>25u",
        "\x1b[?2048$p",
        RESTORE,
    ],
)
def test_what_textual_writes_itself_passes(own: str) -> None:
    assert drawing_only(own) == own


@pytest.mark.parametrize(
    "hostile",
    [
        "\x1b]0;t\x07",
        "\x1b]52;c;aGVsbG8=\x07",
        "\x1b]8;;http://x\x1b\\",
        "\x1bPq\x1b\\",
        "\x1b_G\x1b\\",
        "\x1b^x\x1b\\",
        "\x9b2J",
        "\x1bc",
        "\x1b[2t",
    ],
)
def test_what_acts_on_a_terminal_does_not(hostile: str) -> None:
    assert "\x1b" not in drawing_only(f"a{hostile}b").replace("\x9b", "\x1b")


@given(st.text(st.sampled_from("\x1b]P_[0;8a\x07\\\x9b\x90?hmH5 2c"), max_size=40))
def test_no_string_sequence_survives_in_a_frame(content: str) -> None:
    written = drawing_only(f"\x1b[1;1H{content}\x1b[0m")
    assert all(start not in written for start in ("\x1b]", "\x1bP", "\x1b_", "\x9b", "\x90"))


def filtered(pieces: list[str], clock: SteppedClock | None = None) -> list[str]:
    split = InputFilter(clock or SteppedClock())
    kept = [found for piece in pieces for found in split(piece)]
    return [found if isinstance(found, str) else f"<{found.text}>" for found in kept]


def test_a_reply_in_pieces_is_swallowed_and_typing_goes_on() -> None:
    pieces = ["a\x1b]11;rgb:", "00/00", "/00\x1b", "\\b", "\x1b[?1;2cc"]
    assert "".join(filtered(pieces)) == "abc"


def test_a_reply_that_never_ends_swallows_nothing_for_long() -> None:
    clock = SteppedClock()
    split = InputFilter(clock)
    assert split("\x1b]11;rgb:") == []
    clock.seconds += REPLY_SECONDS + 0.1
    assert split("hello") == ["hello"]


def keys(typed: str) -> list[str]:
    """Names of the keys of an input, with those that a silence behind it decides."""
    clock = SteppedClock()
    source = TerminalInput(clock)
    found = list(source.feed(typed))
    clock.seconds += 2 * REPLY_SECONDS
    return [event.key for event in (*found, *source.tick()) if isinstance(event, events.Key)]


@pytest.mark.parametrize("sign", "[]\\^_")
def test_alt_with_a_bracket_is_a_key_and_no_reply(sign: str) -> None:
    assert keys(f"\x1b{sign}") == [f"alt+{_character_to_key(sign)}"]


@pytest.mark.parametrize("size", [1, 2, 3, 5, 7, 100])
def test_a_paste_in_pieces_of_any_size_is_one_event(size: int) -> None:
    text = "\x1b[200~rm -rf\r\x1b[A\x1b]11;x\x07\x1b[201~y"
    head, rest = text[:6], text[6:]
    pieces = [head, *(rest[start : start + size] for start in range(0, len(rest), size))]
    assert "".join(filtered(pieces)) == "<rm -rf\r\x1b[A\x1b]11;x\x07>y"


def test_a_large_paste_is_quick_and_whole() -> None:
    pieces = ["\x1b[200~", *["x" * 4096] * 2560, "\x1b[201~"]
    assert [len(found) for found in filtered(pieces)] == [4096 * 2560 + 2]


@pytest.mark.parametrize("came", ["", "two\nlines", "two\x1b[20"])
def test_a_paste_whose_end_never_comes_shows_what_came_and_swallows_no_key(came: str) -> None:
    clock = SteppedClock()
    split = InputFilter(clock)
    assert split("\x1b[200~" + came) == []
    due = split.due
    assert due == clock.monotonic() + PASTE_SECONDS
    assert split.tick() == []
    clock.seconds += PASTE_SECONDS
    assert [str(getattr(paste, "text", paste)) for paste in split.tick()] == [came.removesuffix("\x1b[20")] * bool(came)
    assert split.due is None
    assert split("\x1b") == []
    clock.seconds += ESCAPE_DELAY
    assert split.tick() == ["\x1b"]
    assert split("q") == ["q"]


def test_a_paste_that_goes_on_after_a_silence_stays_a_paste() -> None:
    clock = SteppedClock()
    split = InputFilter(clock)
    split("\x1b[200~one\r")
    clock.seconds += PASTE_SECONDS
    split.tick()
    assert split("two\rthree\r") == []
    assert [str(getattr(found, "text", found)) for found in split("four\r\x1b[201~\r")] == ["two\rthree\rfour\r", "\r"]


def test_a_paste_that_goes_on_after_a_silence_loses_nothing_to_a_short_piece() -> None:
    clock = SteppedClock()
    split = InputFilter(clock)
    split("\x1b[200~one ")
    clock.seconds += PASTE_SECONDS
    split.tick()
    came = [*split("two three "), *split("x"), *split(" four"), *split("\x1b[201~\r")]
    assert [str(getattr(found, "text", found)) for found in came] == ["two three ", "x", " four", "\r"]


def test_the_part_of_a_paste_behind_a_silence_arrives_though_its_end_comes_alone() -> None:
    clock = SteppedClock()
    split = InputFilter(clock)
    split("\x1b[200~one ")
    clock.seconds += PASTE_SECONDS
    split.tick()
    came = [*split("two three "), *split("\x1b[201~")]
    assert [str(getattr(found, "text", found)) for found in came] == ["two three "]


def test_keys_that_begin_like_a_paste_arrive() -> None:
    assert "".join(filtered(["\x1b[2", "~", "\x1b[20", "~"])) == "\x1b[2~\x1b[20~"


@pytest.mark.parametrize(("typed", "key"), [("\x1b\r", "alt+enter"), ("\x1b3", "alt+3"), ("\x1b[1;5C", "ctrl+right")])
def test_the_parser_names_keys(typed: str, key: str) -> None:
    assert keys(typed) == [key]


def test_a_pending_esc_is_due_when_its_delay_is_over() -> None:
    clock = SteppedClock()
    source = TerminalInput(clock)
    assert list(source.feed("\x1b")) == []
    assert source.due == clock.monotonic() + ESCAPE_DELAY


@pytest.mark.parametrize(
    ("typed", "key"),
    [
        ("\x1bd", "alt+d"),
        ("\x1by", "alt+y"),
        ("\x1b/", "alt+slash"),
        ("\x1b,", "alt+comma"),
        ("\x1b.", "alt+full_stop"),
        ("\x1b-", "alt+minus"),
        ("\x1b?", "alt+question_mark"),
        ("\x1b\x7f", "alt+backspace"),
        ("\x1bb", "ctrl+left"),
    ],
)
def test_alt_with_a_letter_or_sign_is_read_from_legacy_bytes(typed: str, key: str) -> None:
    assert keys(typed) == [key]


@pytest.mark.parametrize(
    ("typed", "names"),
    [
        ("\x1bqwords", ["alt+q", *"words"]),
        ("\x1bWx", ["alt+shift+w", "x"]),
        ("\x1büx", ["alt+ü", "x"]),
        ("\x1bi\x1bw", ["alt+i", "alt+w"]),
        ("\x1bOP", ["f1"]),
        ("\x1bOg", ["alt+shift+o", "g"]),
    ],
)
def test_alt_with_a_letter_is_a_key_of_its_own_whatever_is_typed_behind_it(typed: str, names: list[str]) -> None:
    assert keys(typed) == names


@pytest.mark.parametrize("unknown", ["\x1b[99;9X", "\x1b[5n", "\x1b[1;1$y"])
def test_a_key_that_no_table_knows_takes_nothing_typed_behind_it_along(unknown: str) -> None:
    assert keys(f"{unknown}hi") == ["h", "i"]


def test_a_terminal_that_some_program_left_broken_is_made_sane() -> None:
    master, slave = pty.openpty()
    try:
        tty.setraw(slave)
        reset(slave, slave)
        after = termios.tcgetattr(slave)
        assert after[3] & termios.ICANON
        assert after[3] & termios.ECHO
        assert after[0] & termios.ICRNL
        assert after[1] & termios.OPOST
        assert os.read(master, 4096).decode() == f"{RESTORE}\r"
    finally:
        os.close(master)
        os.close(slave)
