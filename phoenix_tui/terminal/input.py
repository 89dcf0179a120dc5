"""Terminal input -> Textual's events: legacy Alt keys, and replies that must never be typed text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Final

from textual import events
from textual._xterm_parser import XTermParser
from textual.keys import Keys, _character_to_key  # pyright: ignore[reportPrivateUsage] - the names that Textual gives

from tools.clock import SYSTEM_CLOCK, Clock

REPLY_SECONDS: Final = 1.0
"""Seconds that an unfinished reply swallows the following input; a terminal sends it in one go."""
PASTE_SECONDS: Final = 1.0
"""Silence after which a paste whose end has not come is shown as far as it came, and a key counts as a key again."""
_KEY_LENGTH: Final = 4
"""Characters that one key may send without an ESC in front; a continued paste comes in longer pieces."""
_PASTE_START: Final = "\x1b[200~"
_PASTE_END: Final = "\x1b[201~"
# OSC with a number, DCS with a parameter, kitty graphics; device attributes. ESC ] alone is Alt+].
_STRING: Final = re.compile(r"\x1b(?:\](?=\d)|P(?=[\d>!+$|{])|_(?=G))")
_STRING_END: Final = re.compile(r"\x07|\x1b\\")
_REPORT: Final = re.compile(r"\x1b\[[?>=][\d;]*c")
_ALT_DIGITS: Final = {f"\x1b{digit}": f"alt+{digit}" for digit in "123456789"}
_ALT_SIGNS: Final = {f"\x1b{sign}": f"alt+{_character_to_key(sign)}" for sign in "!\"#$%&'()*+,-./:;<=>?@`{|}~"}
"""All signs but those that begin a sequence of the terminal."""
_ALT_KEYS: Final = {
    **_ALT_DIGITS,
    **_ALT_SIGNS,
    "\x1bd": "alt+d",
    "\x1by": "alt+y",
    "\x1b\x7f": "alt+backspace",
    "\x1b\x08": "alt+backspace",
}
"""ESC b and ESC f are Ctrl+Left and Ctrl+Right to Textual already: words left and right everywhere."""
_UNKNOWN_KEY: Final = re.compile(r"\x1b\[[\d:;]*[ -/]*(?![\[Mm])[@-~]")
"""A complete sequence, but no report of the mouse and no key of the Linux console."""
_FUNCTION_KEY: Final = "\x1bO"
"""Beginning of a function key of three characters: Alt+Shift+O, unless one of those comes behind it."""


class QuietParser(XTermParser):
    """Reads ESC CR as alt+enter and ESC with a digit or sign as Alt with it, which stock Textual reads as text.

    With them come the Alt keys of readline. ESC and a letter is complete at once: stock Textual waits for more, and
    reads a letter that comes within its delay, and all behind it, as text that begins with `^`. So it does behind the
    sequence of a key that it does not know, which is dropped here.
    """

    def _sequence_to_key_events(self, sequence: str, alt: bool = False) -> Iterable[events.Key]:
        if sequence == "\x1b\r":
            return (events.Key("alt+enter", None),)
        if sequence in _ALT_KEYS:
            return (events.Key(_ALT_KEYS[sequence], None),)
        keys = tuple(super()._sequence_to_key_events(sequence, alt))
        if keys or alt:
            return keys
        if len(sequence) == 2 and sequence[1].isalpha() and sequence != _FUNCTION_KEY:
            return tuple(super()._sequence_to_key_events(sequence[1], alt=True))
        if len(sequence) == 3 and sequence.startswith(_FUNCTION_KEY):
            first = super()._sequence_to_key_events("O", alt=True)
            return (*first, *super()._sequence_to_key_events(sequence[2]))
        return (events.Key(Keys.Ignore, sequence),) if _UNKNOWN_KEY.fullmatch(sequence) else ()

    @property
    def due(self) -> float | None:
        """Time at which a pending ESC counts as the Esc key (monotonic), None while none is pending."""
        return self._timeout_time


class InputFilter:
    """Takes pastes and terminal replies out of the input before keys are read from it.

    Replies come late or in pieces and are dropped (FAULTS 60). A paste becomes one event here: Textual's parser
    would read ESC sequences inside it as keys (FAULTS 54) and takes a second per megabyte.
    """

    def __init__(self, clock: Clock = SYSTEM_CLOCK, tell: Callable[[str], None] | None = None) -> None:
        self._clock = clock
        self._tell = tell
        """Listener to each complete reply removed from the input."""
        self._reply: list[str] = []
        self._held = ""
        """The beginning of a paste mark, until the rest of it comes."""
        self._paste: list[str] | None = None
        self._paste_at = 0.0
        """Time of its newest part."""
        self._cut = False
        """True once its end is overdue."""
        self._reply_since: float | None = None
        self._held_esc = False
        """The reply's last piece ended in the first byte of its terminator."""

    def __call__(self, text: str) -> list[str | events.Paste]:
        """Keys as text, pastes as events, in order."""
        if "\x1b" not in text and self._paste is None and self._reply_since is None and not self._held:
            return [text]
        came, text, self._held = text, self._held + text, ""
        kept: list[str | events.Paste] = []
        if self._paste is not None and self._cut and _is_key(came) and not text.startswith(_PASTE_END):
            if self._paste:
                kept.append(_as_event(self._paste))  # it went on for a while
            self._paste, text = None, came
        while text:
            if self._paste is not None:
                text = self._in_paste(self._paste, text, kept)
            elif self._reply_since is not None:
                text = self._after_reply(self._reply_since, text)
            else:
                text = self._until_reply(text, kept)
        return kept

    @property
    def due(self) -> float | None:
        """Time at which an unfinished paste is shown as far as it came (by the given clock); None without one."""
        waits = self._paste is not None and (self._paste or not self._cut)
        return self._paste_at + PASTE_SECONDS if waits else None

    def tick(self) -> list[events.Paste]:
        """Return the parts of a paste whose end is overdue: a connection that was cut must not swallow keys forever."""
        if self._paste is None or self.due is None or self._clock.monotonic() < self.due:
            return []
        self._cut = True
        came = _as_event(self._paste)
        self._paste.clear()
        return [came] if came.text else []

    def _in_paste(self, paste: list[str], text: str, kept: list[str | events.Paste]) -> str:
        """Collect up to the end of the paste; returns the rest."""
        inside, end, rest = text.partition(_PASTE_END)
        self._paste_at = self._clock.monotonic()
        if not end:
            self._held = _beginning_of(_PASTE_END, inside)
            paste.append(inside[: len(inside) - len(self._held)])
            return ""
        paste.append(inside)
        self._paste = None
        if any(paste) or not self._cut:
            kept.append(_as_event(paste))
        return rest

    def _after_reply(self, since: float, text: str) -> str:
        """Return the text behind the current reply; all of `text` once it took too long to be one."""
        self._reply_since = None
        if self._clock.monotonic() - since > REPLY_SECONDS:
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
        """Keep all up to the next reply or paste; returns the text behind its start."""
        paste, string = text.find(_PASTE_START), _STRING.search(text)
        if paste >= 0 and (string is None or paste < string.start()):
            keys, rest = text[:paste], text[paste + len(_PASTE_START) :]
            self._paste, self._paste_at, self._cut = [], self._clock.monotonic(), False
        elif string is not None:
            keys, rest = text[: string.start()], text[string.end() :]
            self._reply_since, self._held_esc = self._clock.monotonic(), False
            self._reply[:] = [string[0]]
        else:
            held = _beginning_of(_PASTE_START, text)
            self._held = held if len(held) > len("\x1b[") else ""
            keys, rest = text[: len(text) - len(self._held)], ""
        keys = _REPORT.sub(self._report, keys)
        if keys:
            kept.append(keys)
        return rest


def _as_event(paste: list[str]) -> events.Paste:
    return events.Paste("".join(paste).replace("\x00", ""))


def _is_key(text: str) -> bool:
    """True for a key, or a report of the mouse, rather than more of a paste."""
    if text.startswith("\x1b"):
        return not text.startswith(_PASTE_END) and (text == "\x1b" or not _PASTE_END.startswith(text))
    return len(text) <= _KEY_LENGTH and _PASTE_END not in text


def _beginning_of(mark: str, text: str) -> str:
    """The longest end of `text` with which `mark` begins."""
    for length in range(min(len(mark) - 1, len(text)), 0, -1):
        if text.endswith(mark[:length]):
            return mark[:length]
    return ""
