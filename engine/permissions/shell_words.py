"""Words of plain shell commands: text that bash hands to its programs exactly as written."""

from __future__ import annotations

import re
from typing import Final

from msgspec import Struct

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
_JOINT: Final = re.compile(r"[ \t]*(&&|\|\||\|&|[|;\n])[ \t\n]*+")
_NOWHERE: Final = re.compile(r"(?:(?:[12]?>>?|&>>?)[ \t]*/dev/null|[12]?>&[12])(?=[ \t\n;&|]|\Z)")
"""Redirections that write nothing: to /dev/null, and from one descriptor to another."""
_INPUT: Final = re.compile(r"0?<[ \t]*+")
MOST_PARTS: Final = 50
PIPES: Final = frozenset({"|", "|&"})


class PlainPart(Struct, frozen=True):
    """One simple command of a list or pipe."""

    text: str
    """Words as written, without redirections."""
    words: tuple[str, ...]
    reads: tuple[str, ...] = ()
    """Files that are its standard input."""
    is_fed: bool = False
    """True where its standard input is a pipe or a file."""
    joint: str = ""
    """Sign behind it: `&&`, `||`, `;`, a line's end or a pipe; empty behind the last one."""


def plain_parts(command: str) -> tuple[PlainPart, ...]:
    """The parts of a list or pipe of simple commands without any expansion; none for any other text.

    A part may send its output to /dev/null or to another of its descriptors, and read a file; no other redirection is
    accepted.
    """
    text = command.strip(BLANKS)
    if not _is_printable(text):
        return ()
    parts: list[PlainPart] = []
    place, is_fed = 0, False
    while place < len(text):
        part, end = _part(text, place, is_fed=is_fed)
        joint = _JOINT.match(text, end)
        is_end = end == len(text)
        if part is None or len(parts) == MOST_PARTS or (joint is None and not is_end):
            return ()
        sign = joint[1] if joint is not None else ""
        if sign in {"&&", "||", *PIPES} and joint is not None and joint.end() == len(text):
            return ()
        parts.append(PlainPart(part.text, part.words, part.reads, part.is_fed, sign))
        place, is_fed = joint.end() if joint is not None else end, sign in PIPES
    return tuple(parts)


def _part(text: str, start: int, *, is_fed: bool) -> tuple[PlainPart | None, int]:
    """The simple command that begins at `start`, and the place behind it; None where it is not plain."""
    written, words, reads, place = list[str](), list[str](), list[str](), start
    while place < len(text) and _JOINT.match(text, place) is None:
        nowhere = _NOWHERE.match(text, place)
        source = _INPUT.match(text, place) if nowhere is None else None
        word = _WORD.match(text, source.end() if source is not None else place) if nowhere is None else None
        found = nowhere or word
        if found is None:
            return None, place
        if word is not None and source is None:
            written.append(word.group())
            words.append(_unquote_word(word.group()))
        elif word is not None:
            reads.append(_unquote_word(word.group()))
        place = found.end()
        gap = _GAP.match(text, place)
        if gap is None and place < len(text) and _JOINT.match(text, place) is None:
            return None, place
        place = gap.end() if gap is not None and _JOINT.match(text, place) is None else place
    if not words or not _PROGRAM.fullmatch(words[0]):
        return None, place
    return PlainPart(" ".join(written), tuple(words), tuple(reads), is_fed or bool(reads)), place


def plain_words(command: str) -> tuple[str, ...]:
    """Words of `command`, unquoted; none unless it is one simple command without any expansion.

    Accepts text known to be literal, rather than refusing text known to be special. Outside quotes that is ASCII alone:
    in some locales a byte of another letter is a blank to bash.
    """
    text = command.strip(BLANKS)
    if not _is_printable(text):
        return ()
    words: list[str] = []
    place = 0
    while place < len(text):
        word = _WORD.match(text, place)
        if word is None:
            return ()
        words.append(_unquote_word(word.group()))
        gap = _GAP.match(text, word.end())
        place = gap.end() if gap is not None else word.end()
        if gap is None and place < len(text):
            return ()
    return tuple(words) if words and _PROGRAM.fullmatch(words[0]) else ()


def _is_printable(text: str) -> bool:
    """True for a text without odd blanks and control signs; a line may end, which is a sign of the shell."""
    return text.replace("\t", " ").replace("\n", " ").isprintable()


def _unquote_word(word: str) -> str:
    return "".join(_unquote(piece) for piece in _PIECE.findall(word))


def _unquote(piece: str) -> str:
    return piece[1:-1] if piece[0] in "'\"" else piece
