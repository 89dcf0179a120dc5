"""Keys as the bytes that a terminal sends (xterm, ECMA-48), and Ctrl+] twice, which takes the terminal back."""

from __future__ import annotations

import re
from typing import Final

from textual import events

from tools.clock import SYSTEM_CLOCK, Clock
from tools.terminal.values import TerminalModes

ESC: Final = "\x1b"
_PLAIN: Final = {
    "enter": "\r",
    "tab": "\t",
    "backspace": "\x7f",
    "escape": ESC,
    "space": " ",
    "shift+tab": f"{ESC}[Z",
    "ctrl+space": "\0",
    "ctrl+at": "\0",
    "ctrl+backslash": "\x1c",
    "ctrl+left_square_bracket": ESC,
    "ctrl+right_square_bracket": "\x1d",
    "ctrl+circumflex_accent": "\x1e",
    "ctrl+underscore": "\x1f",
    "ctrl+slash": "\x1f",
    "ctrl+backspace": "\x08",
}
_CURSOR: Final = {"up": "A", "down": "B", "right": "C", "left": "D", "end": "F", "home": "H"}
_TILDE: Final = {
    "insert": 2, "delete": 3, "pageup": 5, "pagedown": 6,
    "f5": 15, "f6": 17, "f7": 18, "f8": 19, "f9": 20, "f10": 21, "f11": 23, "f12": 24,
}  # fmt: skip
_FUNCTION: Final = {"f1": "P", "f2": "Q", "f3": "R", "f4": "S"}
_MODIFIERS: Final = {"shift": 1, "alt": 2, "ctrl": 4}
_KEPT_OUT: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
"""Characters of a paste that would act on the terminal, or end the brackets around it."""


def key_bytes(event: events.Key, modes: TerminalModes) -> bytes:
    """The bytes of a key; empty for one that no terminal sends."""
    found = _spell(event.key, event.character, modes)
    return found.encode("utf-8", "replace")


def paste_bytes(text: str, modes: TerminalModes) -> bytes:
    """The bytes of a paste, in brackets where the program asked for them."""
    typed = _KEPT_OUT.sub("", text.replace("\r\n", "\n").replace("\n", "\r"))
    if modes.brackets_pastes:
        typed = f"{ESC}[200~{typed}{ESC}[201~"
    return typed.encode("utf-8", "replace")


def _spell(key: str, character: str | None, modes: TerminalModes) -> str:
    if key in _PLAIN:
        return _PLAIN[key]
    *held, name = key.split("+") if key != "+" else [key]
    if special := _special(name, held, modes):
        return special
    if "alt" in held:
        rest = "+".join([one for one in held if one != "alt"] + [name])
        return ESC + (_spell(rest, character or (name if len(name) == 1 else None), modes))
    if "ctrl" in held:
        return chr(ord(name) & 0x1F) if len(name) == 1 and name.isascii() and name.isalpha() else ""
    if character and character.isprintable():
        return character
    return name if len(name) == 1 else ""


def _special(name: str, held: list[str], modes: TerminalModes) -> str:
    """Cursor, editing and function keys, with what is held."""
    number = 1 + sum(_MODIFIERS.get(one, 0) for one in set(held))
    if name in _CURSOR:
        if number > 1:
            return f"{ESC}[1;{number}{_CURSOR[name]}"
        return f"{ESC}{'O' if modes.application_keys else '['}{_CURSOR[name]}"
    if name in _FUNCTION:
        return f"{ESC}[1;{number}{_FUNCTION[name]}" if number > 1 else f"{ESC}O{_FUNCTION[name]}"
    if name in _TILDE:
        return f"{ESC}[{_TILDE[name]};{number}~" if number > 1 else f"{ESC}[{_TILDE[name]}~"
    return ""


TWICE_WITHIN: Final = 0.5
"""Seconds."""
NAME: Final = "Ctrl+] twice"
_PRESS: Final = rb"(?:\x1d|\x1b\[93;5u|\x1b\[27;5;93~)"
"""Ctrl+] as terminals send it, without and with the keys of kitty and of xterm's modifyOtherKeys."""
_TWICE: Final = re.compile(_PRESS + _PRESS)
_LAST: Final = re.compile(_PRESS + rb"\Z")


class ReturnKey:
    """Finds it in what the user types. The first press is held: programs have a use for Ctrl+], such as vim."""

    def __init__(self, clock: Clock = SYSTEM_CLOCK) -> None:
        self._clock = clock
        self._held = b""
        self._held_at = 0.0

    def feed(self, keys: bytes) -> tuple[bytes, bool]:
        """Keys for the program, and True where the user wants the terminal back; later keys are dropped then."""
        before, now = self._take_held(), self._clock.monotonic()
        if now - self._held_at < TWICE_WITHIN:
            before, keys = b"", before + keys
        if (twice := _TWICE.search(keys)) is not None:
            return before + keys[: twice.start()], True
        if (last := _LAST.search(keys)) is not None:
            self._held, self._held_at, keys = last[0], now, keys[: last.start()]
        return before + keys, False

    @property
    def holds(self) -> bool:
        return bool(self._held)

    def take_late(self) -> bytes:
        """A press that no second one followed in time, for the program."""
        return self._take_held() if self._clock.monotonic() - self._held_at >= TWICE_WITHIN else b""

    def _take_held(self) -> bytes:
        held, self._held = self._held, b""
        return held
