"""What a terminal sends -> Textual's events: legacy Alt keys, and replies that must never be typed text."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable
from typing import Final

from textual import events
from textual._xterm_parser import XTermParser

REPLY_SECONDS: Final = 1.0
"""How long an unfinished reply swallows what follows; a terminal sends it in one go."""
_PASTE_START: Final = "\x1b[200~"
_PASTE_END: Final = "\x1b[201~"
# OSC with a number, DCS with a parameter, kitty graphics; device attributes. ESC ] alone is Alt+].
_STRING: Final = re.compile(r"\x1b(?:\](?=\d)|P(?=[\d>!+$|{])|_(?=G))")
_STRING_END: Final = re.compile(r"\x07|\x1b\\")
_REPORT: Final = re.compile(r"\x1b\[[?>=][\d;]*c")
_ALT_DIGITS: Final = {f"\x1b{digit}": f"alt+{digit}" for digit in "123456789"}
_ALT_KEYS: Final = {
    **_ALT_DIGITS,
    "\x1bd": "alt+d",
    "\x1by": "alt+y",
    "\x1b/": "alt+slash",
    "\x1b\x7f": "alt+backspace",
    "\x1b\x08": "alt+backspace",
}
"""ESC b and ESC f are Ctrl+Left and Ctrl+Right to Textual already: words left and right everywhere."""


class QuietParser(XTermParser):
    """Reads ESC CR as alt+enter and ESC 1…9 as alt+1…9, which stock Textual reads as enter and as text.

    With them come the Alt keys of readline.
    """

    def _sequence_to_key_events(self, sequence: str, alt: bool = False) -> Iterable[events.Key]:
        if sequence == "\x1b\r":
            return (events.Key("alt+enter", None),)
        if sequence in _ALT_KEYS:
            return (events.Key(_ALT_KEYS[sequence], None),)
        return super()._sequence_to_key_events(sequence, alt)

    @property
    def due(self) -> float | None:
        """When a pending ESC counts as the Esc key (monotonic), None while none is pending."""
        return self._timeout_time


class InputFilter:
    """Takes pastes and terminal replies out of the input before keys are read from it.

    Replies come late or in pieces and are dropped (FAULTS 60). A paste becomes one event here: Textual's parser
    would read ESC sequences inside it as keys (FAULTS 54) and takes a second per megabyte.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic, tell: Callable[[str], None] | None = None) -> None:
        self._clock = clock
        self._tell = tell
        """Is told each whole reply that was taken out, for whoever asked."""
        self._reply: list[str] = []
        self._held = ""
        """The beginning of a paste mark, until the rest of it comes."""
        self._paste: list[str] | None = None
        self._reply_since: float | None = None
        self._held_esc = False
        """The reply's last piece ended in the first byte of its terminator."""

    def __call__(self, text: str) -> list[str | events.Paste]:
        """Keys as text, pastes as events, in order."""
        if "\x1b" not in text and self._paste is None and self._reply_since is None and not self._held:
            return [text]
        text, self._held = self._held + text, ""
        kept: list[str | events.Paste] = []
        while text:
            if self._paste is not None:
                text = self._in_paste(self._paste, text, kept)
            elif self._reply_since is not None:
                text = self._after_reply(self._reply_since, text)
            else:
                text = self._until_reply(text, kept)
        return kept

    def _in_paste(self, paste: list[str], text: str, kept: list[str | events.Paste]) -> str:
        """Collect up to the end of the paste; gives what follows it."""
        inside, end, rest = text.partition(_PASTE_END)
        if not end:
            self._held = _beginning_of(_PASTE_END, inside)
            paste.append(inside[: len(inside) - len(self._held)])
            return ""
        paste.append(inside)
        self._paste = None
        kept.append(events.Paste("".join(paste).replace("\x00", "")))
        return rest

    def _after_reply(self, since: float, text: str) -> str:
        """What follows the reply under way; all of `text` once it took too long to be one."""
        self._reply_since = None
        if self._clock() - since > REPLY_SECONDS:
            self._reply.clear()
            return text
        if text[0] == "\\" and self._held_esc:
            self._held_esc = False
            self._end_reply("\\")
            return text[1:]
        end = _STRING_END.search(text)
        self._held_esc = end is None and text.endswith("\x1b")
        if end is None:
            self._reply_since = since
            self._reply.append(text)
            return ""
        self._end_reply(text[: end.end()])
        return text[end.end() :]

    def _end_reply(self, rest: str) -> None:
        if self._tell is not None:
            self._tell("".join((*self._reply, rest)))
        self._reply.clear()

    def _report(self, found: re.Match[str]) -> str:
        if self._tell is not None:
            self._tell(found[0])
        return ""

    def _until_reply(self, text: str, kept: list[str | events.Paste]) -> str:
        """Keep all up to the next reply or paste; gives what follows its start."""
        paste, string = text.find(_PASTE_START), _STRING.search(text)
        if paste >= 0 and (string is None or paste < string.start()):
            keys, rest = text[:paste], text[paste + len(_PASTE_START) :]
            self._paste = []
        elif string is not None:
            keys, rest = text[: string.start()], text[string.end() :]
            self._reply_since, self._held_esc = self._clock(), False
            self._reply[:] = [string[0]]
        else:
            held = _beginning_of(_PASTE_START, text)
            self._held = held if len(held) > len("\x1b[") else ""
            keys, rest = text[: len(text) - len(self._held)], ""
        keys = _REPORT.sub(self._report, keys)
        if keys:
            kept.append(keys)
        return rest


def _beginning_of(mark: str, text: str) -> str:
    """The longest end of `text` with which `mark` begins."""
    for length in range(min(len(mark) - 1, len(text)), 0, -1):
        if text.endswith(mark[:length]):
            return mark[:length]
    return ""
