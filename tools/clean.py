"""The gate between outside text and the screen: `clean` for everything shown, `reveal` for what runs or would.

Outside text is whatever a model, a tool, a file name, a server or an error brought in. Shown raw it
can write the clipboard, move the cursor over an approval or hide half a command (FAULTS 55-57).
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache, lru_cache
from typing import Final

# ESC and C1 introducers. A string (OSC, DCS, APC, PM, SOS) ends at BEL or ST; one that never ends is cut at
# the end of its line, so that it cannot swallow what follows. Bodies stop at the next introducer and every
# repetition is possessive: each character is read a fixed number of times.
_STRING_BODY: Final = r"\x07\x1b\x80-\x9f"
_LINE_BREAK: Final = "[\x0b\x0c\x85\u2028\u2029]"
_CONTROL: Final = r"[\x00-\x07\x0e-\x1f\x7f-\x9f]"


def terminal_sequences(*, arguments: str = "*", body: str = "*") -> str:
    """The pattern of sequences that act on a terminal; `arguments` and `body` bound their repetitions."""
    csi = rf"(?:\x1b\[|\x9b)[\x30-\x3f]{arguments}+[\x20-\x2f]{arguments}+[\x40-\x7e]?"
    string = (
        r"(?:\x1b[\]PX^_]|[\x90\x98\x9d\x9e\x9f])"
        rf"(?:[^{_STRING_BODY}]{body}+(?:\x07|\x1b\\|\x9c)|[^{_STRING_BODY}\n]{body}+)"
    )
    other = rf"\x1b[\x20-\x2f]{arguments}+[\x30-\x7e]?"
    return rf"(?P<erase>(?:\x1b\[|\x9b)[02]?K)|{string}|{csi}|{other}|(?P<newline>{_LINE_BREAK})|{_CONTROL}"


_ERASE_REST: Final = "\x00"
_ERASE_LINE: Final = "\x01"
_CURSOR: Final = re.compile(r"([\r\x08\x00\x01])")

# Characters that take no room, reorder their neighbours or look like nothing: soft hyphen, grapheme joiner,
# Arabic letter mark, Hangul fillers, Khmer and Mongolian marks, zero widths, bidi, invisible operators,
# byte order mark, annotations, note and shorthand formats, variation selectors that no emoji uses, tags.
_INVISIBLE: Final = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200c\u200e\u200f\u202a-\u202e\u2060-\u206f"
    "\u3164\ufe00-\ufe0d\ufeff\uffa0\ufff9-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_EMOJI: Final = (
    "\u00a9\u00ae\u203c\u2049\u2122\u2139\u2190-\u27bf\u2900-\u297f\u2b00-\u2bff"
    "\u3030\u303d\u3297\u3299\U0001f000-\U0001faff"
)
# Presentation selectors stay behind what may be an emoji, joiners between two of them.
_PRESENTED: Final = f"[{_EMOJI}0-9#*]"
_HIDDEN: Final = (
    f"[{_INVISIBLE}]|(?<!{_PRESENTED})[\ufe0e\ufe0f]|(?<![{_EMOJI}])(?<!{_PRESENTED}\ufe0f)\u200d|\u200d(?![{_EMOJI}])"
)
SURROGATE: Final = re.compile("[\ud800-\udfff]")

_PLAIN: Final = re.compile(r"[\n\t -~]*+")
_LINE: Final = re.compile(r"[ -~]*+")
_SPELLED: Final = {ord("\r"): "␍", ord("\b"): "␈"}
_WHITE: Final = {ord("\n"): " ", ord("\t"): " "}

MOST_MARKS: Final = 4
"""Combining marks on one letter; a stack of more covers the rows around it."""
LONGEST_LINE: Final = 4_000
"""Characters of a row; the widest screens show a tenth of it."""
_ORDINARY: Final = re.compile(r"[!-~]++(?: {1,16}+[!-~]++)*+")
_REVEALED: Final = re.compile(r"[^\n -~]")
_BLANKS: Final = re.compile(r" {17,}+| ++(?=\n|\Z)")
_PICTURES: Final = {chr(code): chr(0x2400 + code) for code in range(0x20)} | {"\x7f": "␡"}
_BLANK_LOOKING: Final = frozenset("\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0\u034f")


@cache
def _terminal() -> re.Pattern[str]:
    # Not at import, as `_hidden`: they take 2 ms, and the text of the first frame is plain.
    return re.compile(terminal_sequences())


@cache
def compile_hidden_pattern() -> re.Pattern[str]:
    """The pattern of characters that hide or reorder; it looks two characters back and one ahead."""
    return re.compile(_HIDDEN)


def clean(text: str) -> str:
    """Give `text` as a terminal would leave it standing, with nothing in it that acts or hides.

    Keeps newlines and tabs; a bare carriage return writes over its line. Idempotent, linear in time.
    """
    if _PLAIN.fullmatch(text):
        return text
    text = _terminal().sub(_terminal_effect, text)
    if _CURSOR.search(text):
        text = "\n".join(_overwritten(line) for line in text.split("\n"))
    return SURROGATE.sub("\ufffd", compile_hidden_pattern().sub("", text))


def clean_line(text: str) -> str:
    """`clean` for a title or a row: newlines and tabs become spaces, and no text writes over another.

    A carriage return or a backspace is at work in the output of a program; in a name it can only hide what it says.
    """
    if _LINE.fullmatch(text):
        return text
    text = text.replace("\r\n", "\n").removesuffix("\r").translate(_SPELLED)
    text = _terminal().sub(lambda match: "\n" if match["newline"] else "", text)
    return SURROGATE.sub("\ufffd", compile_hidden_pattern().sub("", text)).translate(_WHITE)


def reveal(text: str) -> str:
    """Give `text` with every control, hidden or odd blank character spelled out and nothing dropped.

    The input is text that runs, or would run: the output shows exactly that. Newlines stay; blanks at the end of a line
    and long runs of them show as `␠`. The function is idempotent.
    """
    if _ORDINARY.fullmatch(text):
        return text
    return _BLANKS.sub(lambda run: "␠" * len(run.group()), _REVEALED.sub(_spell_match, text))


def reveal_name(name: object) -> str:
    """Give the name of a file as one line: as `reveal`, with newlines spelled out, so that no name forges a line."""
    shown = str(name).encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    return reveal(shown).replace("\n", "␊")


def reveal_line(text: str) -> str:
    """`reveal` for a title or a row: line ends show as `↵`, blanks around it and text beyond the row's limit are
    removed.
    """
    text = text.strip(" \n")
    whole = reveal(text if len(text) <= LONGEST_LINE else f"{text[:LONGEST_LINE]}…")
    return whole.replace("\n", "↵")


def _terminal_effect(match: re.Match[str]) -> str:
    if match["newline"]:
        return "\n"
    if match["erase"]:
        return _ERASE_LINE if match["erase"].endswith("2K") else _ERASE_REST
    return ""


def _overwritten(line: str) -> str:
    """One line after its carriage returns, backspaces and erasures, as a terminal would show it."""
    if not _CURSOR.search(line):
        return line
    cells: list[str] = []
    column = 0
    for piece in _CURSOR.split(line):
        match piece:
            case "\r":
                column = 0
            case "\x08":
                column = max(0, column - 1)
            case "\x00":
                del cells[column:]
            case "\x01":
                cells.clear()
                column = 0
            case _:
                cells[column : column + len(piece)] = piece
                column += len(piece)
    return "".join(cells)


def _spell_match(match: re.Match[str]) -> str:
    character = match.group()
    if unicodedata.combining(character) and _is_astray(match.string, match.start()):
        return f"⟨U+{ord(character):04X}⟩"
    return _spelling(character)


@lru_cache(maxsize=4096)
def _spelling(character: str) -> str:
    """The visible spelling of a character, independent of its neighbours."""
    if picture := _PICTURES.get(character):
        return picture
    return character if _is_plain(character) else f"⟨U+{ord(character):04X}⟩"


def _is_astray(text: str, place: int) -> bool:
    """True for a combining mark without a letter before it, where it would change a sign or a blank, or after too many
    others.
    """
    for base in range(place - 1, max(place - MOST_MARKS - 1, -1), -1):
        if not unicodedata.combining(text[base]):
            return unicodedata.category(text[base])[0] not in "LM"
    return True


def _is_plain(character: str) -> bool:
    """True for a character that shows as itself: no control, format, private, unassigned or odd blank."""
    category = unicodedata.category(character)
    if category[0] in "CZ" or character in _BLANK_LOOKING:
        return False
    return not (category == "Mn" and compile_hidden_pattern().match(character)) and character not in "\ufe0e\ufe0f"
