"""FAULTS 105: nothing that a terminal sends can end the thread that reads it, or leave it deaf; keys from bytes."""

from __future__ import annotations

import logging
import tracemalloc
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Final

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from textual import events
from textual.message import Message

from phoenix_tui.keys.key_bytes import TWICE_WITHIN, ReturnKey, key_bytes, paste_bytes
from phoenix_tui.terminal import input as terminal_input
from phoenix_tui.terminal.input import (
    AT_ONCE,
    FLOOD_PAUSE,
    MOST_KEYS_WAITING,
    MOST_SEQUENCE,
    MOST_TYPED,
    REPLY_SECONDS,
    FloodGate,
    InputFilter,
    QuietParser,
    TerminalInput,
)
from tests.support.clocks import SteppedClock
from tools.terminal.values import TerminalModes

IN_ONE_PIECE: Final = ("\x1b^", "\x1bX", "\x1b_")
"""Strings that are known by their end alone: their beginnings are keys with Alt."""
Seen = tuple[str, ...]


def look(event: Message) -> Seen:
    """Content of an event, as a value."""
    match event:
        case events.Key():
            return "key", event.key, event.character or ""
        case events.Paste():
            return "paste", event.text
        case events.MouseEvent():
            return type(event).__name__, f"{event.x:g}", f"{event.y:g}", str(event.button)
        case events.Resize():
            return "size", str(event.size)
        case _:
            return (type(event).__name__,)


def read(pieces: Iterable[str], behind: str = "") -> list[Seen]:
    """Events of an input that comes in these pieces, at once; then a silence, and `behind`."""
    clock = SteppedClock()
    split, parser = InputFilter(clock), QuietParser()  # without the guard of `TerminalInput`
    found = [one for piece in pieces for one in split(piece)]
    clock.seconds += 2 * REPLY_SECONDS
    found += [*split.tick(), *split(behind)]
    every = [[one] if isinstance(one, events.Paste) else parser.read(one) for one in found]
    return [look(event) for each in every for event in each]


def keys(typed: str) -> list[tuple[str, str]]:
    """Keys with their characters."""
    return [(seen[1], seen[2]) for seen in read([typed]) if seen[0] == "key"]


@pytest.mark.parametrize(
    ("typed", "key"),
    [
        ("\x1b[97;1:1u", ("a", "a")),
        ("\x1b[97;1:2u", ("a", "a")),
        ("\x1b[97u", ("a", "a")),
        ("\x1b[97:65;2u", ("A", "A")),
        ("\x1b[97;2u", ("A", "A")),
        ("\x1b[97;65u", ("A", "A")),
        ("\x1b[97;2;65u", ("A", "A")),
        ("\x1b[51:35;2u", ("number_sign", "#")),
        ("\x1b[97:65;4u", ("alt+shift+a", "")),
        ("\x1b[1089::99;5u", ("ctrl+c", "")),
        ("\x1b[99;5u", ("ctrl+c", "")),
        ("\x1b[67;6u", ("ctrl+shift+c", "")),
        ("\x1b[97;5:1u", ("ctrl+a", "")),
        ("\x1b[13u", ("enter", "\r")),
        ("\x1b[13;1:1u", ("enter", "\r")),
        ("\x1b[13;2u", ("shift+enter", "")),
        ("\x1b[27;2;13~", ("shift+enter", "")),
        ("\x1b[27;5;13~", ("ctrl+enter", "")),
        ("\x1b[27;3;13~", ("alt+enter", "")),
        ("\x1b[27;2;9~", ("shift+tab", "")),
        ("\x1b[27;2;65~", ("A", "A")),
        ("\x1b[27;5;99~", ("ctrl+c", "")),
        ("\x1b[27u", ("escape", "")),
        ("\x1b[27;129u", ("escape", "")),
        ("\x1b[1;1:1A", ("up", "")),
        ("\x1b[1;5:2A", ("ctrl+up", "")),
        ("\x1b[3;1:2~", ("delete", "")),
        ("\x1b[3;5~", ("ctrl+delete", "")),
        ("\x1b[228;;228u", ("ä", "ä")),
        ("\x1b[57404;1;53u", ("5", "5")),
        ("\x1b[A", ("up", "")),
        ("\x1b[1A", ("up", "")),
        ("\x1b[[A", ("f1", "")),
        ("\x1b[24~", ("f12", "")),
        ("\x1b[25~", ("f13", "")),
        ("\x1b[32~", ("f18", "")),
        ("\x1bOP", ("f1", "")),
        ("\x1b[Z", ("shift+tab", "")),
    ],
)
def test_a_key_report_is_the_key_that_was_pressed(typed: str, key: tuple[str, str]) -> None:
    assert keys(typed) == [key]


@pytest.mark.parametrize(
    "typed",
    [
        *("\x1b[97;1:3u", "\x1b[1;1:3A", "\x1b[13;2:3u", "\x1b[3;1:3~", "\x1b[97;1:9u"),  # released, or unknown
        *("\x1b[1114112u", "\x1b[999999999u", "\x1b[55296u", "\x1b[97;1;1114112;5u", "\x1b[0u", "\x1b[1u"),
        *("\x1b[97;300u", "\x1b[97;99999999999999999999u", "\x1b[27;2;1114112~", "\x1b[2:3A", "\x1b[99;1A"),
        *("\x1b[201~", "\x1b[999~", "\x1b[57344u", f"\x1b[{'9' * 5000}u", "\x1b[:;:;:;:u", "\x1b[;;;u"),
        *("\x1b[<0;-1;5M", "\x1b[<0;0;5M", "\x1b[<128;5;5M", "\x1b[<;;M", "\x1b[<99999999999;1;1M", "\x1b[0;0;0M"),
        *("\x1b[M\x00\x01\x02", "\x1b[M !\uffff", "\x1b[48;0;0;0;0t", "\x1b[48;;;t", "\x1b[?;$y", "\x1b[?9999999;1$y"),
        *("\x1b[5n", "\x1b[?1;2c", "\x1b[>0;276;0c", "\x1b[?25u", "\x1b]11;rgb:0/0/0\x07", "\x1bP1+r\x1b\\"),
        *("\x1b_Gi=1;OK\x1b\\", "\x1b^private\x1b\\", "\x1bXstart\x1b\\"),
    ],
)
def test_what_is_no_key_does_nothing_and_the_next_letters_arrive(typed: str) -> None:
    assert read([typed], "zz") == [("key", "z", "z")] * 2
    if not typed.startswith(IN_ONE_PIECE):
        assert read(typed, "zz") == [("key", "z", "z")] * 2


def test_extra_buttons_of_a_mouse_are_not_its_left_one_and_the_usual_ones_are_read() -> None:
    assert read(["\x1b[<0;3;4M\x1b[<0;3;4m\x1b[<64;1;1M\x1b[<129;3;4M"]) == [
        ("MouseDown", "2", "3", "1"),
        ("MouseUp", "2", "3", "1"),
        ("MouseScrollUp", "0", "0", "0"),
    ]


def test_a_sequence_that_is_cut_and_never_goes_on_is_no_text() -> None:
    assert read(["\x1b[97;1"], "zz") == read(["\x1b[M "], "zz") == [("key", "z", "z")] * 2
    assert read(["\x1b[97;\x1b[A"], "z") == [("key", "up", ""), ("key", "z", "z")]
    assert read(["\x1b[97;\rz"]) == [("key", "enter", "\r"), ("key", "z", "z")]


def numbers() -> st.SearchStrategy[str]:
    """Numbers of a parameter: usual ones, those at the edges, and none."""
    edges = (0, 1, 3, 13, 27, 97, 127, 200, 255, 256, 57344, 0xD800, 0x10FFFF, 0x110000, 10**9, 10**30)
    return st.sampled_from(edges).map(str) | st.integers(-3, 300).map(str) | st.just("")


def parameters() -> st.SearchStrategy[str]:
    """Parameters with their sub-parameters."""
    return st.lists(st.lists(numbers(), max_size=4).map(":".join), max_size=5).map(";".join)


ESC: Final = "\x1b"
CONTROLS: Final = st.builds(
    lambda private, inside, between, final: f"{ESC}[{private}{inside}{between}{final}",
    st.sampled_from(("", "", "", "<", "?", ">", "=")), parameters(), st.sampled_from(("", "", "", " ", "$")),
    st.sampled_from("u~ABCDEFHPQRSZMmtcnyRIO[^@x"),
)  # fmt: skip
STRINGS: Final = st.builds(
    lambda begin, inside, end: f"{ESC}{begin}{inside}{end}",
    st.sampled_from(("]11;", "]4;1;", "P>|", "P1+r", "_G", "^", "X", "]", "P")),
    st.text(st.sampled_from("rgb:/0f;abé\n"), max_size=12), st.sampled_from(("\x07", "\x1b\\", "\x1b", "")),
)  # fmt: skip
PASTES: Final = st.builds(
    lambda inside, end: f"{ESC}[200~{inside}{end}",
    st.text(st.sampled_from("ab\r\x1b[A\x00é"), max_size=12), st.sampled_from(("\x1b[201~", "\x1b[20", "")),
)  # fmt: skip
OTHERS: Final = st.sampled_from((
    ESC,
    f"{ESC}{ESC}",
    f"{ESC}O",
    f"{ESC}OP",
    f"{ESC}[M",
    f"{ESC}[M !!",
    f"{ESC}[[A",
    "\ufffd",
))
INPUT: Final = st.lists(
    CONTROLS | CONTROLS | STRINGS | PASTES | OTHERS | st.text(max_size=6) | st.characters(codec="utf-8"), max_size=8
).map("".join)


@given(INPUT, st.lists(st.integers(0, 200), max_size=6))
@example("\x1b[97;1:3u", [4])
@example("\x1b[27;2;13~", [2, 3])
def test_no_input_raises_and_none_depends_on_where_it_is_cut(text: str, cuts: Sequence[int]) -> None:
    places = sorted({min(cut, len(text)) for cut in cuts} | {0, len(text)})
    whole = read([text], "\x1b[201~\x1b\\zz")
    if not any(string in text for string in IN_ONE_PIECE):
        assert read((text[start:end] for start, end in pairwise(places)), "\x1b[201~\x1b\\zz") == whole
    assert len(whole) <= 2 * len(text) + 8
    for seen in whole:
        assert seen[0] != "key" or seen[1]


@given(st.binary(max_size=200), st.integers(1, 9))
def test_noise_of_any_bytes_is_read_and_the_next_letters_arrive(noise: bytes, size: int) -> None:
    text = noise.decode("utf-8", "replace")
    pieces = [text[start : start + size] for start in range(0, len(text), size)]
    assert read(pieces, "\x1b[201~\x07\x1b\\zz")[-2:] == [("key", "z", "z")] * 2


def test_a_megabyte_of_noise_needs_little_memory_and_leaves_the_keys_alone() -> None:
    noise = "".join(chr(33 + number * 7919 % 90) for number in range(4096))
    source, count = TerminalInput(SteppedClock()), 0
    tracemalloc.start()
    try:
        for begin in ("", "\x1b[", "\x1b]11;", "\x1b[1;"):
            for _ in range(64):
                count += sum(1 for _ in source.feed(begin + noise))
        assert tracemalloc.get_traced_memory()[1] < 3_000_000
    finally:
        tracemalloc.stop()
    assert count < 4 * 64 * 40


def test_what_nobody_types_at_once_is_one_paste_and_its_controls_are_keys() -> None:
    line = "x" * AT_ONCE
    assert read([f"{line}\r{line[1:]}"])[:2] == [("paste", line), ("key", "enter", "\r")]
    assert [seen[0] for seen in read([line[1:]])] == ["key"] * (AT_ONCE - 1)
    assert read([f"\x1b[{'1;' * MOST_SEQUENCE}", "2;2", "uzz"]) == [("key", "z", "z")] * 2


class RunningClock(SteppedClock):
    """A clock that each look moves on by a second."""

    def monotonic(self) -> float:
        self.seconds += 1.0
        return super().monotonic()


def test_keys_of_a_flood_wait_for_those_before_them_and_a_flood_without_end_is_cut_off_and_told() -> None:
    typed, told, waiting = (
        list[Message]([events.Key("a", "a")] * (MOST_TYPED - 1)),
        list[str](),
        [10 * MOST_KEYS_WAITING],
    )
    flood = [*typed, events.Key("a", "a"), events.Paste("b")]
    clock = RunningClock()
    gate = FloodGate(lambda: waiting[0], told.append, clock)
    assert gate.admit(typed, bool) == typed  # what is typed never waits
    assert gate.admit(flood, bool) == [flood[-1]]
    assert gate.admit(flood, lambda: True) == flood  # Phoenix ends
    waiting[0] = 0
    assert gate.admit(flood, bool) == flood
    clock.seconds += FLOOD_PAUSE
    gate.tick()
    assert (told, gate.due) == ([f"{MOST_TYPED} keys came faster than they can be taken and were left out."], None)


def test_a_fault_of_the_tables_costs_one_sequence_and_is_logged(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(_: object, sequence: str) -> list[Message]:
        if sequence.startswith(ESC):
            raise OverflowError("chr() arg not in range")
        return [events.Key(sequence, sequence)]

    monkeypatch.setattr(terminal_input.QuietParser, "read", fails)
    with caplog.at_level(logging.ERROR):
        found = list(TerminalInput().feed("\x1b[A\x1b[Bz"))
    assert [look(event) for event in found] == [("key", "z", "z")]
    assert [record.getMessage() for record in caplog.records] == [
        "a sequence of the terminal could not be read: '\\x1b[A'",
        "a sequence of the terminal could not be read: '\\x1b[B'",
    ]


USUAL, OTHER = TerminalModes(), TerminalModes(application_keys=True, brackets_pastes=True)


@pytest.mark.parametrize(
    ("key", "character", "sent"),
    [
        ("a", "a", b"a"),
        ("A", "A", b"A"),
        ("é", "é", "é".encode()),
        ("plus", "+", b"+"),
        ("space", " ", b" "),
        ("enter", "\r", b"\r"),
        ("backspace", "\x7f", b"\x7f"),
        ("ctrl+c", "\x03", b"\x03"),
        ("ctrl+z", None, b"\x1a"),
        ("ctrl+backslash", "\x1c", b"\x1c"),
        ("alt+f", None, b"\x1bf"),
        ("alt+enter", None, b"\x1b\r"),
        ("shift+tab", None, b"\x1b[Z"),
        ("up", None, b"\x1b[A"),
        ("ctrl+left", None, b"\x1b[1;5D"),
        ("shift+alt+f5", None, b"\x1b[15;4~"),
        ("delete", None, b"\x1b[3~"),
        ("f2", None, b"\x1bOQ"),
        ("ctrl+f24", None, b""),
        ("unknown_key", None, b""),
    ],
)
def test_a_key_is_what_a_terminal_sends(key: str, character: str | None, sent: bytes) -> None:
    assert key_bytes(events.Key(key, character), USUAL) == sent


def test_arrows_have_another_form_where_the_program_asked_for_it() -> None:
    assert [key_bytes(events.Key(key, None), OTHER) for key in ("up", "home", "shift+up")] == [
        b"\x1bOA",
        b"\x1bOH",
        b"\x1b[1;2A",
    ]


def test_a_paste_cannot_leave_its_brackets_or_act() -> None:
    text = "one\ntwo\r\nthree\tx\x1b[201~rm\x03\x9b"
    assert paste_bytes(text, USUAL) == b"one\rtwo\rthree\tx[201~rm"
    assert paste_bytes(text, OTHER) == b"\x1b[200~one\rtwo\rthree\tx[201~rm\x1b[201~"


PRESS = b"\x1d"


@pytest.mark.parametrize("press", [PRESS, b"\x1b[93;5u", b"\x1b[27;5;93~"])
@pytest.mark.parametrize("apart", [True, False])
def test_two_presses_in_a_row_return_and_are_no_keys_of_the_program(press: bytes, apart: bool) -> None:
    key = ReturnKey(SteppedClock())
    if apart:
        assert key.feed(b"ab" + press) == (b"ab", False)
        assert key.feed(press + b"later") == (b"", True)
    else:
        assert key.feed(b"ab" + press + press + b"later") == (b"ab", True)


def test_one_press_is_the_programs_with_the_next_key_or_after_a_while() -> None:
    clock = SteppedClock()
    key = ReturnKey(clock)
    assert key.feed(PRESS) == (b"", False)
    assert key.feed(b"x" + PRESS) == (PRESS + b"x", False)
    assert (key.holds, key.take_late()) == (True, b"")
    clock.seconds += TWICE_WITHIN
    assert (key.take_late(), key.holds) == (PRESS, False)
    assert key.feed(PRESS) == (b"", False)
    clock.seconds += TWICE_WITHIN + 0.1
    assert key.feed(PRESS) == (PRESS, False)
    assert key.feed(PRESS) == (b"", True)


def test_presses_with_a_key_between_do_not_return() -> None:
    key = ReturnKey(SteppedClock())
    assert key.feed(PRESS + b"x" + PRESS + b"y") == (PRESS + b"x" + PRESS + b"y", False)
    assert key.feed(PRESS + b"x" + PRESS + PRESS) == (PRESS + b"x", True)
