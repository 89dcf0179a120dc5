"""Words of one simple shell command that bash hands to its program exactly as written."""

from __future__ import annotations

import re
from typing import Final

BLANKS: Final = " \t\n"
"""Characters that a shell drops at both ends of a command."""

_PLAIN: Final = r"[A-Za-z0-9_./:=@%+,^-]|(?<=[A-Za-z0-9^~])~"
_SINGLE: Final = r"'[^']*+'"
_DOUBLE: Final = r'"[^"$`\\!]*+"'
_WORD: Final = re.compile(rf"(?:{_PLAIN}|{_SINGLE}|{_DOUBLE})+")  # not possessive: wrong before Python 3.11.5
_PIECE: Final = re.compile(rf"{_PLAIN}|{_SINGLE}|{_DOUBLE}")
_GAP: Final = re.compile(r"[ \t]++")
_PROGRAM: Final = re.compile(r"[A-Za-z0-9_./+-]+")
"""Pattern of a program, without `=`, so that an assignment before the program is no program."""


def plain_words(command: str) -> tuple[str, ...]:
    """Words of `command`, unquoted; none unless it is one simple command without any expansion.

    Accepts text known to be literal, rather than refusing text known to be special. Outside quotes that is ASCII alone:
    in some locales a byte of another letter is a blank to bash.
    """
    text = command.strip(BLANKS)
    if not text.replace("\t", " ").isprintable():
        return ()
    words: list[str] = []
    place = 0
    while place < len(text):
        word = _WORD.match(text, place)
        if word is None:
            return ()
        words.append("".join(_unquoted(piece) for piece in _PIECE.findall(word.group())))
        gap = _GAP.match(text, word.end())
        place = gap.end() if gap is not None else word.end()
        if gap is None and place < len(text):
            return ()
    return tuple(words) if words and _PROGRAM.fullmatch(words[0]) else ()


def _unquoted(piece: str) -> str:
    return piece[1:-1] if piece[0] in "'\"" else piece
