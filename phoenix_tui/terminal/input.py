"""Terminal input -> Textual's events: keys, reports of the mouse, pastes, and replies that must never be typed text.

Each sequence is taken whole before it is read, wherever a line cut it, and none that a terminal sends can end
the thread that reads: keys are those of xterm (with modifyOtherKeys and CSI u), kitty, iTerm2 and the Linux console
(docs/decisions/terminal-traffic.md).
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from textual import events, messages
from textual._ansi_sequences import ANSI_SEQUENCES_KEYS
from textual._keyboard_protocol import FUNCTIONAL_KEYS
from textual._xterm_parser import XTermParser
from textual.constants import ESCAPE_DELAY, SMOOTH_SCROLL
from textual.keys import Keys, _character_to_key
from textual.message import Message

from tools.clock import SYSTEM_CLOCK, Clock

log = logging.getLogger(__name__)

REPLY_SECONDS: Final = 1.0
"""Seconds that an unfinished reply or sequence swallows the following input; a terminal sends it in one go."""
PASTE_SECONDS: Final = 1.0
"""Silence after which a paste whose end has not come is shown as far as it came, and a key counts as a key again."""
MOST_SEQUENCE: Final = 1024
"""Characters of a sequence at most; a key report with all its alternatives has fewer than 100."""
MOST_REPLY: Final = 64 * 1024
"""Characters of a reply that are kept for its listeners."""
MOST_PASTE: Final = 32 * 1024 * 1024
"""Characters of a paste that become one event; a longer one becomes several."""
AT_ONCE: Final = 256
"""Printable characters in a row, read at once, from which on they are a paste: too many to be typed, and each key costs
the screen half a millisecond.
"""
MOST_TYPED: Final = 64
"""Keys and reports of the mouse in one read from which on it may be a flood."""
MOST_KEYS_WAITING: Final = 1_000
LONGEST_FLOOD: Final = 5.0
"""Seconds in which keys of a flood are waited for; what comes later is left out."""
FLOOD_PAUSE: Final = 1.0
"""Seconds without input that end a flood."""
FLOOD_LOOK: Final = 0.01
"""Seconds between two looks at the keys that wait."""
_KEY_LENGTH: Final = 4
"""Characters that one key may send without an ESC in front; a continued paste comes in longer pieces."""
_ESC: Final = "\x1b"
_PASTE_START: Final = "\x1b[200~"
_PASTE_END: Final = "\x1b[201~"
# OSC with a number, DCS with a parameter, kitty graphics; device attributes. ESC ] alone is Alt+].
_STRING: Final = re.compile(r"\x1b(?:\](?=\d)|P(?=[\d>!+$|{])|_(?=G))")
_STRING_END: Final = re.compile(r"\x07|\x1b\\")
_REPORT: Final = re.compile(r"\x1b\[[?>=][\d;]*c")
_PARAMETERS: Final = r"[-0-?]*[ -/]*"
"""Parameters and intermediates; with a sign, which Ghostty writes outside of its window."""
_WHOLE: Final = re.compile(
    r"\x1b(?:"
    r"\[\[[A-E]"  # Linux console
    r"|\[M[^\x1b]{3}"  # the mouse of X10
    rf"|\[(?!M|\[){_PARAMETERS}[@-~]"  # CSI
    r"|O[^\x1b]"  # SS3
    r"|[X^_][^\x1b\x07]*\x1b\\"  # strings that Phoenix never asks for, in one piece
    r"|[^\x1b\[O\]P_]|[\]P_](?=.)"  # Alt
    r"|(?=\x1b)"  # Esc, and another sequence
    r")",
    re.DOTALL,
)
"""One sequence from its ESC to its end."""
_UNFINISHED: Final = re.compile(rf"\x1b(?:[O\]P_]|\[(?:\[|M[^\x1b]{{0,2}}|{_PARAMETERS}))?")
_BROKEN: Final = re.compile(rf"\x1b\[(?:\[|M[^\x1b]{{0,2}}|{_PARAMETERS})")
"""Beginning of a sequence that another one, or a character of none, cuts off."""
_SKIPPED: Final = re.compile(rf"{_PARAMETERS}(?P<final>[@-~]|[^ -~])?")
_MAYBE_KEYS: Final = frozenset({"\x1b", "\x1b[", "\x1bO", "\x1b]", "\x1bP", "\x1b_"})
"""Beginnings of sequences that are also keys: a short silence decides."""
_RUN: Final = re.compile(rf"[^\x00-\x1f\x7f-\x9f]{{{AT_ONCE},{AT_ONCE * 4}}}")

Piece = str | events.Paste
"""Plain text, one whole sequence with its ESC, or a paste."""


class InputFilter:
    """Cuts the input into pieces, and takes pastes and terminal replies out of it.

    Replies come late or in pieces and are dropped (FAULTS 60). A paste becomes one event here: read key by key, ESC
    sequences inside it would act (FAULTS 54) and a megabyte would take a second.
    """

    def __init__(self, clock: Clock = SYSTEM_CLOCK, tell: Callable[[str], None] | None = None) -> None:
        self._clock = clock
        self._tell = tell
        """Listener to each complete reply removed from the input."""
        self._reply = ""
        self._held = ""
        """The beginning of a sequence, or of the mark that ends a paste, until the rest of it comes."""
        self._held_at = 0.0
        self._skips = False
        """True inside a sequence that is too long to be one."""
        self._paste: list[str] | None = None
        self._paste_size = 0
        self._paste_at = 0.0
        """Time of its newest part."""
        self._cut = False
        """True once its end is overdue."""
        self._reply_since: float | None = None
        self._held_esc = False
        """The reply's last piece ended in the first byte of its terminator."""

    def __call__(self, text: str) -> list[Piece]:
        """Pieces in their order; the beginning of one waits for the rest."""
        if not (_ESC in text or self._held or self._skips) and self._paste is None and self._reply_since is None:
            return list(_split_runs(text))
        came, text, self._held = text, self._held + text, ""
        kept: list[Piece] = []
        if self._paste is not None and self._cut and _is_key(came) and not text.startswith(_PASTE_END):
            if self._paste:
                kept.append(_as_event(self._paste))  # it went on for a while
            self._paste, text = None, came
        while text:
            if self._paste is not None:
                text = self._in_paste(self._paste, text, kept)
            elif self._reply_since is not None:
                text = self._after_reply(self._reply_since, text)
            elif self._skips:
                text = self._skip(text)
            elif text.startswith(_ESC):
                text = self._sequence(text, kept)
            else:
                place = text.find(_ESC)
                plain, text = (text, "") if place < 0 else (text[:place], text[place:])
                kept += _split_runs(plain)
        return kept

    @property
    def due(self) -> float | None:
        """Time at which an unfinished piece is given up or shown as far as it came (by the given clock); None without
        one.
        """
        if self._paste is not None:
            return self._paste_at + PASTE_SECONDS if self._paste or not self._cut else None
        if self._held in _MAYBE_KEYS:
            return self._held_at + ESCAPE_DELAY
        return self._held_at + REPLY_SECONDS if self._held or self._skips else None

    def tick(self) -> list[Piece]:
        """Return what is overdue: a connection that was cut must not swallow keys forever."""
        if self.due is None or self._clock.monotonic() < self.due:
            return []
        if self._paste is None:
            held, self._held, self._skips = self._held, "", False
            return [held] if held in _MAYBE_KEYS else []
        self._cut = True
        came = _as_event(self._paste)
        self._paste.clear()
        return [came] if came.text else []

    def _sequence(self, text: str, kept: list[Piece]) -> str:
        """Take the sequence that `text` begins with; returns the text behind it."""
        now = self._clock.monotonic()
        if (string := _STRING.match(text)) is not None:
            self._reply_since, self._held_esc, self._reply = now, False, string[0]
            return text[string.end() :]
        if (whole := _WHOLE.match(text)) is not None:
            sequence = whole[0]
            if sequence == _PASTE_START:
                self._paste, self._paste_size, self._cut = [], 0, False
                self._paste_at = self._clock.monotonic()
            elif _REPORT.fullmatch(sequence):
                if self._tell is not None:
                    self._tell(sequence)
            elif len(sequence) <= MOST_SEQUENCE and sequence != _PASTE_END:
                kept.append(sequence)
            return text[whole.end() :]
        if _UNFINISHED.fullmatch(text):
            self._held, self._held_at, self._skips = text, now, len(text) > MOST_SEQUENCE
            if self._skips:
                self._held = ""
            return ""
        broken = _BROKEN.match(text)
        if broken is None or broken[0] in _MAYBE_KEYS:
            kept.append(text[:2])  # Alt+[, and a key behind it
            return text[2:]
        return text[broken.end() :]

    def _skip(self, text: str) -> str:
        """Leave out a sequence that is too long, up to its end."""
        skipped = _SKIPPED.match(text)
        if skipped is None or (skipped["final"] is None and self._clock.monotonic() - self._held_at <= REPLY_SECONDS):
            return ""
        self._skips = False
        final = skipped["final"] or ""
        return text[skipped.end() - (0 if final.isascii() and final.isprintable() else len(final)) :]

    def _in_paste(self, paste: list[str], text: str, kept: list[Piece]) -> str:
        """Collect up to the end of the paste; returns the rest."""
        inside, end, rest = text.partition(_PASTE_END)
        self._paste_at = self._clock.monotonic()
        if not end:
            self._held = _beginning_of(_PASTE_END, inside)
            paste.append(inside[: len(inside) - len(self._held)])
            self._paste_size += len(paste[-1])
            if self._paste_size > MOST_PASTE:
                kept.append(_as_event(paste))
                paste.clear()
                self._paste_size = 0
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
            self._reply = ""
            return text
        if text[0] == "\\" and self._held_esc:
            self._held_esc = False
            self._end_reply("\\")
            return text[1:]
        end = _STRING_END.search(text)
        self._held_esc = end is None and text.endswith(_ESC)
        if end is None:
            self._reply_since = since
            self._reply += text[: MOST_REPLY - len(self._reply)]
            return ""
        self._end_reply(text[: end.end()])
        return text[end.end() :]

    def _end_reply(self, rest: str) -> None:
        if self._tell is not None:
            self._tell(self._reply + rest)
        self._reply = ""


def _split_runs(text: str) -> Iterator[Piece]:
    if len(text) < AT_ONCE:
        if text:
            yield text
        return
    place = 0
    for run in _RUN.finditer(text):
        if run.start() > place:
            yield text[place : run.start()]
        yield events.Paste(run[0])
        place = run.end()
    if place < len(text):
        yield text[place:]


def _as_event(paste: list[str]) -> events.Paste:
    return events.Paste("".join(paste).replace("\x00", ""))


def _is_key(text: str) -> bool:
    """True for a key, or a report of the mouse, rather than more of a paste."""
    if text.startswith(_ESC):
        return not text.startswith(_PASTE_END) and (text == _ESC or not _PASTE_END.startswith(text))
    return len(text) <= _KEY_LENGTH and _PASTE_END not in text


def _beginning_of(mark: str, text: str) -> str:
    """The longest end of `text` with which `mark` begins."""
    for length in range(min(len(mark) - 1, len(text)), 0, -1):
        if text.endswith(mark[:length]):
            return mark[:length]
    return ""


_ALT_DIGITS: Final = {f"\x1b{digit}": f"alt+{digit}" for digit in "123456789"}
_ALT_SIGNS: Final = {f"\x1b{sign}": f"alt+{_character_to_key(sign)}" for sign in "!\"#$%&'()*+,-./:;<=>?@`{|}~"}
"""All signs but those that begin a sequence of the terminal."""
_ALT_KEYS: Final = {
    **_ALT_DIGITS,
    **_ALT_SIGNS,
    "\x1bd": "alt+d",
    "\x1by": "alt+y",
    "\x1b\r": "alt+enter",
    "\x1b\x7f": "alt+backspace",
    "\x1b\x08": "alt+backspace",
}
"""ESC b and ESC f are Ctrl+Left and Ctrl+Right to Textual already: words left and right everywhere."""
_ALT_BRACKETS: Final = {f"\x1b{sign}": f"alt+{_character_to_key(sign)}" for sign in "[]\\^_"}
"""Signs that begin a sequence of the terminal, where none follows."""
_SS3: Final = "\x1bO"
_KEY_REPORT: Final = re.compile(r"\x1b\[([\d:;]*)([u~A-FHPQRS])")
_MOUSE: Final = re.compile(r"\x1b\[<(\d{1,5});\d{1,5};\d{1,5}[Mm]")
_FOREIGN_BUTTONS: Final = 128
"""Number from which on buttons are those beside the usual ones: Textual would take them for the left one."""
_RESIZED: Final = re.compile(r"\x1b\[48;(\d{1,5})(?::\d*)*;(\d{1,5})(?::\d*)*;(\d{1,5})(?::\d*)*;(\d{1,5})(?::\d*)*t")
_CURSOR: Final = re.compile(r"\x1b\[(\d{1,5});(\d{1,5})R")
_MODE: Final = re.compile(r"\x1b\[\?(\d{1,5});(\d)\$y")
_FOCUS: Final = {"\x1b[I": events.AppFocus, "\x1b[O": events.AppBlur}
_OTHER_KEYS: Final = 27
"""First number of xterm's modifyOtherKeys: CSI 27 ; modifiers ; code ~."""
_MOST_DIGITS: Final = 7
_LAST_CODE: Final = 0x10FFFF
_SURROGATES: Final = range(0xD800, 0xE000)
_SHIFT, _CAPS, _LOCKS = 1, 64, 64 | 128
"""Bits of the modifiers of a key report, which is one more than their sum."""
_MOST_MODIFIERS: Final = 256
_RELEASE: Final = 3
"""Event type of a key that goes up; 1 is a press and 2 a repetition."""


class QuietParser(XTermParser):
    """Reads pieces of the input by the tables of Textual, with the keys and forms that those lack.

    ESC CR is alt+enter, ESC with a letter, a digit or a sign Alt with it, at once: stock Textual reads some of them as
    text, and types what follows a sequence that it does not know. A key report is read with its sub-parameters.
    """

    def read(self, piece: str) -> Iterable[Message]:
        """Events of plain text, or of one whole sequence; an unknown one gives none."""
        if not piece.startswith(_ESC):
            return [key for sign in piece for key in self._sequence_to_key_events(sign)]
        if piece.startswith("\x1b[") and len(piece) > 2:
            found = self._control(piece)
            if found is not None:
                return found
        return [key for key in self._keys(piece) if key.key != Keys.Ignore]

    def _control(self, sequence: str) -> Iterable[Message] | None:
        """Events of a sequence that begins with ESC [, None where it is no report of any kind."""
        if sequence in _FOCUS:
            return (_FOCUS[sequence](),)
        if (found := _CURSOR.fullmatch(sequence)) is not None:
            return (events.CursorPosition(int(found[2]) - 1, int(found[1]) - 1),)
        if (found := _KEY_REPORT.fullmatch(sequence)) is not None:
            return self._report(found[1], found[2])
        if sequence.startswith("\x1b[<"):
            found = _MOUSE.fullmatch(sequence)
            event = self.parse_mouse_code(sequence) if found and int(found[1]) < _FOREIGN_BUTTONS else None
            return () if event is None else (event,)
        if (found := _RESIZED.fullmatch(sequence)) is not None:
            return self._keep_mouse_scale(*(int(number) for number in found.groups()))
        if (found := _MODE.fullmatch(sequence)) is not None:
            number = found[1]
            setting = int(found[2])
            if number == "2026" and setting > 0:
                return (messages.TerminalSupportsSynchronizedOutput(),)
            if number == "2048" and SMOOTH_SCROLL:
                return (messages.InBandWindowResize.from_setting_parameter(setting),)
            return ()
        return None

    def _keep_mouse_scale(self, rows: int, columns: int, height: int, width: int) -> Iterable[Message]:
        """Keep the scale of a mouse that reports pixels, where the terminal knows it."""
        if not (rows and columns and height and width):
            return ()
        event = events.Resize.from_dimensions((columns, rows), (width, height))
        self.terminal_size, self.terminal_pixel_size, self.mouse_pixels = event.size, event.pixel_size, True
        return (event,)

    def _report(self, codes: str, final: str) -> Iterable[events.Key]:
        """The key of a report `CSI code:shifted:base ; modifiers:event ; text final`; none where it goes up, or where a
        number is impossible.
        """
        if (plain := f"\x1b[{codes}{final}") in ANSI_SEQUENCES_KEYS:
            known = ANSI_SEQUENCES_KEYS[plain]
            if codes.isdecimal() and f"{codes}{final}" not in FUNCTIONAL_KEYS and isinstance(known, tuple):
                return [events.Key(key.value, None) for key in known]  # F13 and above: Textual makes characters of them
            return [key for key in self._keys(plain) if key.key != Keys.Ignore]
        fields = [_numbers(field) for field in codes.split(";")]
        if len(fields) > 3 or any(number > _LAST_CODE for field in fields for number in field):
            return ()
        fields += [[]] * (3 - len(fields))
        if final == "~" and fields[0] == [_OTHER_KEYS] and fields[2]:
            fields, final = [fields[2], fields[1], []], "u"
        event = fields[1][1] if len(fields[1]) > 1 else 1
        modifiers = (fields[1][0] if fields[1] else 0) or 1
        if event >= _RELEASE or modifiers > _MOST_MODIFIERS:
            return ()
        spelled = _spell_report(fields[0] or [1], modifiers, fields[2], final)
        return [key.copy() for key in self._parse_extended_key(spelled) or ()] if spelled else ()

    def _keys(self, sequence: str) -> Iterable[events.Key]:
        """Keys of a sequence without parameters of a report."""
        if sequence in _ALT_KEYS:
            return (events.Key(_ALT_KEYS[sequence], None),)
        keys = tuple(self._sequence_to_key_events(sequence))
        if keys:
            return keys
        if len(sequence) == 2:
            if sequence in _ALT_BRACKETS:
                return (events.Key(_ALT_BRACKETS[sequence], None),)
            return tuple(self._sequence_to_key_events(sequence[1], alt=True))
        if len(sequence) == 3 and sequence.startswith(_SS3):
            first = self._sequence_to_key_events("O", alt=True)
            return (*first, *self._sequence_to_key_events(sequence[2]))
        return ()


def _numbers(field: str) -> list[int]:
    """Numbers of one parameter, 0 for one left out, beyond all codes for one that is too long."""
    if not field:
        return []
    return [int(part or 0) if len(part) <= _MOST_DIGITS else _LAST_CODE + 1 for part in field.split(":")]


def _spell_report(code: list[int], modifiers: int, text: list[int], final: str) -> str:
    """The report without sub-parameters, with the text that its key writes; empty for a key that there is not."""
    key = code[0] or 1
    held = (modifiers - 1) & ~_LOCKS
    shown = held + 1 if held else 0
    if final != "u":
        known = f"{key}{final}" in FUNCTIONAL_KEYS and (final == "~" or key == 1)
        return f"\x1b[{key};{shown}{final}" if known else ""
    if f"{key}u" in FUNCTIONAL_KEYS:
        return f"\x1b[{key};{shown};{':'.join(str(one) for one in text if _is_text(one))}u"
    if not _is_text(key):
        return ""
    if held & ~_SHIFT:
        base = code[2] if len(code) > 2 else 0
        if key > 127 and 32 < base < 127:  # Ctrl and Alt go by the place of the key, as on a Latin keyboard
            key = base
        if held & _SHIFT and chr(key).isupper():
            key = ord(chr(key).lower())
        return f"\x1b[{key};{shown}u"
    written = [one for one in text if _is_text(one)] or [_shift_key(key, code, modifiers - 1)]
    return f"\x1b[{key};{shown};{':'.join(map(str, written))}u"


def _shift_key(key: int, code: list[int], bits: int) -> int:
    """The character of a key that is pressed without Ctrl or Alt: the terminal's own, else the letter's other case."""
    if bits & _SHIFT and len(code) > 1 and _is_text(code[1]):
        return code[1]
    letter = chr(key)
    upper = letter.upper()
    raised = bool(bits & _SHIFT) is not bool(bits & _CAPS)
    return ord(upper) if raised and len(upper) == 1 else key


def _is_text(code: int) -> bool:
    """True for a character that a key can write; those of the private plane are keys of kitty's without one."""
    private = 0xE000 <= code <= 0xF8FF
    return 32 <= code <= _LAST_CODE and code not in _SURROGATES and not 127 <= code < 160 and not private


class FloodGate:
    """Lets a flood of keys wait for those before it, so that they need little memory; one without end is cut off.

    Each key costs about half a millisecond on the screen, and a megabyte of them would hold those that a person presses
    back for minutes.
    """

    def __init__(self, waiting: Callable[[], int], tell: Callable[[str], None], clock: Clock = SYSTEM_CLOCK) -> None:
        self._waiting = waiting
        """Number of keys that the screen has not taken yet."""
        self._tell = tell
        self._clock = clock
        self._since: float | None = None
        self._last = float("-inf")
        self._dropped = 0

    @property
    def due(self) -> float | None:
        return None if self._since is None else self._last + FLOOD_PAUSE

    def admit(self, came: list[Message], is_over: Callable[[], bool]) -> list[Message]:
        """Return the part that the screen gets; blocks while too much waits there, until `is_over`."""
        self.tick()
        keys = sum(isinstance(event, events.InputEvent) for event in came)
        self._last = self._clock.monotonic()
        if self._since is None:
            if keys < MOST_TYPED:
                return came
            self._since = self._last
        while self._waiting() > MOST_KEYS_WAITING and not is_over():
            if self._clock.monotonic() - self._since > LONGEST_FLOOD:
                self._dropped += keys
                self._last = self._clock.monotonic()
                return [event for event in came if not isinstance(event, events.InputEvent)]
            time.sleep(FLOOD_LOOK)
        self._last = self._clock.monotonic()
        return came

    def tick(self) -> None:
        """Note the end of a flood, and say what it cost."""
        if self.due is not None and self._clock.monotonic() >= self.due:
            self._since = None
            if self._dropped:
                self._tell(f"{self._dropped:,} keys came faster than they can be taken and were left out.")
            self._dropped = 0


class TerminalInput:
    """The whole way from decoded input to events; whatever comes, it goes on."""

    def __init__(self, clock: Clock = SYSTEM_CLOCK, tell: Callable[[str], None] | None = None) -> None:
        self._filter = InputFilter(clock, tell)
        self._parser = QuietParser()

    @property
    def due(self) -> float | None:
        return self._filter.due

    def feed(self, text: str) -> Iterator[Message]:
        return self._read(self._filter(text))

    def tick(self) -> Iterator[Message]:
        """Events of what is overdue, such as the Esc key."""
        return self._read(self._filter.tick())

    def _read(self, pieces: Iterable[Piece]) -> Iterator[Message]:
        for piece in pieces:
            if isinstance(piece, events.Paste):
                yield piece
                continue
            try:
                yield from self._parser.read(piece)
            except Exception as error:
                if logging.getLogger().handlers:  # without any it would go to the terminal
                    log.error("a sequence of the terminal could not be read: %r", piece[:40], exc_info=error)  # noqa: TRY400 - as above
