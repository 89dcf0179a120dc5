"""Splits the output of a program into what it writes as lines and what it draws on the alternate screen."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

MOST_MODES: Final = 64
"""Private modes that are remembered."""
_NUMBERS: Final = rb"[0-9;]{0,64}+"
_SWITCH: Final = re.compile(
    rb"(?:\x1b\[|\xc2\x9b)\?(?:[0-9]{1,5};){0,16}(?:1049|1047|47)(?:;[0-9]{1,5}){0,16}(?P<letter>[hl])|(?P<reset>\x1bc)"
)
"""Sequences that switch to the alternate screen and back; a reset leaves it, too (xterm)."""
_UNFINISHED: Final = re.compile(rb"(?:\x1b(?:\[(?:\?" + _NUMBERS + rb")?)?|\xc2(?:\x9b(?:\?" + _NUMBERS + rb")?)?)\Z")
_MODES: Final = re.compile(rb"\x1b\[\?(?P<numbers>[0-9;]{1,64})(?P<letter>[hl])|\x1b(?P<keypad>[=>])")
_NOT_KEPT: Final = frozenset({b"1049", b"1047", b"1048", b"47", b"2026"})
"""The screens, the saved cursor, and half-drawn frames."""
ENTERS: Final = b"\x1b[?1049h\x1b[H\x1b[2J"
WHOLE_SCREEN: Final = b"\x1b7\x1b[r\x1b8"
"""Lets all rows scroll, which a terminal does that has another size: programs rely on it (vim)."""


class OutputPiece(NamedTuple):
    """Bytes for one of the screens; the sequences that switch are drawn."""

    is_drawn: bool
    content: bytes


class ScreenSplitter:
    """Follows one program; holds back at most one unfinished sequence."""

    def __init__(self) -> None:
        self.is_drawing = False
        """True while the program uses the alternate screen."""
        self._held = b""
        self._modes: dict[bytes, bytes] = {}
        self._keypad = b""

    def feed(self, data: bytes, *, final: bool = False) -> Iterator[OutputPiece]:
        """The next bytes in order; `is_drawing` is that behind the newest piece. Take all of them."""
        data, self._held = self._held + data, b""
        unfinished = None if final else _UNFINISHED.search(data, max(len(data) - 70, 0))
        if unfinished is not None:
            data, self._held = data[: unfinished.start()], unfinished[0]
        place = 0
        for switch in _SWITCH.finditer(data):
            draws = switch["letter"] == b"h"
            if draws is self.is_drawing:
                continue
            edge = switch.start() if draws else switch.end()
            yield from self._piece(data[place:edge])
            place, self.is_drawing = edge, draws
        yield from self._piece(data[place:])

    def sequences(self) -> bytes:
        """Sequences that put another terminal into the modes that the program has set, on its alternate screen."""
        modes = [b"\x1b[?" + number + letter for number, letter in self._modes.items()]
        return ENTERS + b"".join(modes) + self._keypad

    def _piece(self, content: bytes) -> Iterator[OutputPiece]:
        if not content:
            return
        if b"\x1b" in content:
            self._note_modes(content)
        yield OutputPiece(self.is_drawing, content)

    def _note_modes(self, content: bytes) -> None:
        for mode in _MODES.finditer(content):
            if mode["keypad"]:
                self._keypad = mode[0]
            for number in (mode["numbers"] or b"").split(b";"):
                if number and number not in _NOT_KEPT and (number in self._modes or len(self._modes) < MOST_MODES):
                    self._modes[number] = mode["letter"]
