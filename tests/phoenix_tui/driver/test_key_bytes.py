"""Keys and pastes as the bytes that a terminal sends."""

from __future__ import annotations

import pytest
from textual import events

from phoenix_tui.keys.key_bytes import key_bytes, paste_bytes
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
