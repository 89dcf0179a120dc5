"""Keys as bytes for a program, and the key that takes the terminal back."""

from __future__ import annotations

import pytest
from textual import events

from phoenix_tui.keys.key_bytes import TWICE_WITHIN, ReturnKey, key_bytes, paste_bytes
from tests.support.clocks import SteppedClock
from tools.terminal.values import TerminalModes

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
