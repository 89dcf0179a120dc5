"""Characters of a command that look like others, and right-to-left words in it.

A command is read by its letters: `сurl` with a Cyrillic first letter is another program, `“a; b”` is no quotation to
a shell. What is honest is left alone: words of one script, and typographic marks within ASCII quotes.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

LEFT: Final = "⟨L⟩"
"""Left-to-right letter after each right-to-left word, so that a terminal that reorders such words leaves each at its
place.
"""
MOST_SAID: Final = 3
"""Kinds of characters that are named; the others are counted."""
SPELLING: Final = "⟨␠␉␍↵"
"""Signs that spell out what is hidden (`tools.clean.reveal`); a command with one of its own could forge it."""


class Suspect(NamedTuple):
    """A character at a place, and the ASCII character it looks like; empty where it only does not belong there."""

    place: int
    character: str
    looks: str


_LETTERS: Final = {
    # Cyrillic, Greek, Armenian, Cherokee and Latin letters that most fonts draw as, or close to, an ASCII letter
    # (after Unicode's confusables; only what can be taken for one at a glance).
    "a": "аɑαа", "b": "ЬƄ", "c": "сϲᴄⅽ", "d": "ԁɗ", "e": "еҽє", "f": "ꞙք", "g": "ɡցᶃ", "h": "һհ", "i": "іıɩιӏ",
    "j": "јϳȷ", "k": "кκ", "l": "ӏןІ", "m": "м", "n": "пոռ", "o": "оοσօ", "p": "рρ", "q": "ԛզ", "r": "гᴦ",
    "s": "ѕꜱ", "t": "тτ", "u": "υսʋ", "v": "ѵνᴠ", "w": "ԝѡωա", "x": "хχ", "y": "уүγу", "z": "ᴢ",
    "A": "АΑᎪ", "B": "ВΒᏴ", "C": "СϹᏟ", "D": "Ꭰ", "E": "ЕΕᎬ", "F": "Ϝ", "G": "ԌᏀ", "H": "НΗᎻ", "I": "ІΙӀ", "J": "ЈᎫ",
    "K": "КΚᏦ", "L": "Ꮮ", "M": "МΜᎷ", "N": "Ν", "O": "ОΟՕ", "P": "РΡᏢ", "Q": "Ԛ", "R": "Ꭱ", "S": "ЅՏᏚ", "T": "ТΤᎢ",
    "U": "Սⴷ", "V": "ѴᏙ", "W": "ԜᎳ", "X": "ХΧ", "Y": "УΥҮ", "Z": "ΖᏃ", "3": "З",
}  # fmt: skip
_TYPOGRAPHIC: Final = {
    "-": "\u2010\u2011\u2012\u2013\u2014\u2015\u2043\u02d7\u2212\u2796",
    "'": "\u2018\u2019\u201b\u2032\u2035\u02b9\u02bb\u02bc\u02bd\u02c8\u00b4\u055a\u05f3\ua78c",
    "|": "\u2502",
    "/": "\u2571",
    "\\": "\u2572",
    "=": "\u2550",
    ";": "\u061b",
    ",": "\u060d\u066b\u201a",
    "*": "\u066d",
    '"': "\u201c\u201d\u201e\u201f\u2033\u2036\u02ba\u02dd\u05f4",
}
"""Honest in a text; within ASCII quotes a shell reads them as text too."""
_SIGNS: Final = {
    "/": "\u2215\u2044\u29f8\u27cb\u1735",
    "\\": "\u2216\u29f5\u29f9\u27cd",
    "|": "\u2223\u01c0\u2758\u05c0\u23d0",
    ":": "\u2236\u02d0\ua789\u05c3\u0589\u205a",
    ";": "\u037e\u204f",
    ".": "\u2024\u0701\ua4f8",
    "*": "\u2217\u204e\u22c6",
    "&": "\ua778\ufe60",
    "!": "\u01c3\u2d51",
    "~": "\u223c\u02dc\u2053",
    "^": "\u02c4\u02c6",
    "<": "\u2039\u276e\u02c2",
    ">": "\u203a\u276f\u02c3",
    "`": "\u02cb\u1fef\u02ca",
    "=": "\ua78a\u30a0",
    "#": "\u266f",
    "$": "\U0001f4b2",
    "(": "\u2768\u2772",
    ")": "\u2769\u2773",
    "{": "\u2774",
    "}": "\u2775",
}
_DRAWN: Final = frozenset({"<font>", "<wide>", "<narrow>", "<small>", "<compat>"})
"""Decompositions that are the same character in another drawing; superscripts, circles and fractions show as such."""
_ALIKE: Final = frozenset({"LATIN", "CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE"})
"""Scripts with letters that look the same: two of them in one word are odd."""
_WORD: Final = re.compile(r"[^\W\d_]+")
_TOKEN: Final = re.compile(r"\S+")
_RIGHT: Final = frozenset({"R", "AL", "AN"})


def _table(groups: dict[str, str]) -> dict[str, str]:
    return {one: ascii_one for ascii_one, others in groups.items() for one in others}


_LIKE_LETTER: Final = _table(_LETTERS)
_LIKE_TYPE: Final = _table(_TYPOGRAPHIC)
_LIKE_SIGN: Final = _table(_SIGNS)


@lru_cache(maxsize=1024)
def find_ascii_drawing(character: str) -> str:
    """The ASCII character of which this is another drawing: fullwidth, mathematical, small; empty for all others."""
    if character.isascii():
        return ""
    tag, _, _ = unicodedata.decomposition(character).rpartition(">")
    plain = unicodedata.normalize("NFKC", character)
    same = len(plain) == 1 and plain.isascii() and plain.isprintable() and plain != " "
    return plain if same and (not tag or f"{tag}>" in _DRAWN) else ""


@lru_cache(maxsize=1024)
def script_of(letter: str) -> str:
    """The script a letter belongs to, by its name: LATIN, CYRILLIC, GREEK, HEBREW; empty without a name."""
    first, _, _ = unicodedata.name(letter, "").partition(" ")
    return first


def suspects(text: str) -> list[Suspect]:
    """The characters of a command that may be taken for others, in order; linear in its length."""
    if text.isascii():
        return []
    found = {one.place: one for token in _TOKEN.finditer(text) for one in _of_token(token.group(), token.start())}
    for start, end in _doubtful(text):
        found |= {one.place: one for one in _whole_words(text, start, end)}
    quoted = _number_quotations(text)
    for place, character in enumerate(text):
        looks = _LIKE_TYPE.get(character, "")
        if looks and not quoted[place]:
            found[place] = Suspect(place, character, looks)
    return [found[place] for place in sorted(found)]


def _of_token(token: str, at: int) -> Iterator[Suspect]:
    """Suspects in one word between blanks, independent of its neighbours."""
    if token.isascii():
        return
    for place, character in enumerate(token, at):
        if looks := find_ascii_drawing(character) or _LIKE_SIGN.get(character, ""):
            yield Suspect(place, character, looks)
    for word in _WORD.finditer(token):
        yield from _of_word(word.group(), at + word.start())


def _of_word(word: str, at: int) -> Iterator[Suspect]:
    """Letters of other scripts in a word with Latin ones, and letters like the dotless i in an otherwise ASCII word."""
    if word.isascii():
        return
    letters = set(word)
    scripts = {script_of(letter) for letter in letters}
    mixed = "LATIN" in scripts or len(scripts & _ALIKE) > 1
    odd = {letter for letter in letters if not letter.isascii()}
    alone = all(one in _LIKE_LETTER for one in odd) or (len(odd) == 1 and len(letters) > 1)
    for place, letter in enumerate(word, at):
        script = script_of(letter)
        if letter.isascii() or find_ascii_drawing(letter) or script in {"MODIFIER", ""}:
            continue
        looks = _LIKE_LETTER.get(letter, "")
        if script != "LATIN":
            if mixed:
                yield Suspect(place, letter, looks)
        elif looks and alone:
            yield Suspect(place, letter, looks)


def _doubtful(text: str) -> Iterator[tuple[int, int]]:
    """Stretches in which a whole word of look-alikes is odd: each token, but in prose of that script within quotes."""
    quoted = _number_quotations(text)
    honest = _honest_tokens(text, quoted)
    for token in _TOKEN.finditer(text):
        start, end = token.span()
        if token.group().isascii() or (quoted[start] in honest and not _has_ascii_word(token.group())):
            continue
        yield start, end


def _has_ascii_word(token: str) -> bool:
    return any(word.group().isascii() for word in _WORD.finditer(token))


def _honest_tokens(text: str, quoted: Sequence[int]) -> set[int]:
    """The quotations in which a word has letters that no Latin letter looks like: prose of another script."""
    honest: set[int] = set()
    for word in _WORD.finditer(text):
        letters = word.group()
        plain = not any(letter.isascii() or letter in _LIKE_LETTER for letter in letters)
        some = not any(letter.isascii() for letter in letters) and any(one not in _LIKE_LETTER for one in letters)
        if quoted[word.start()] and (plain or some):
            honest.add(quoted[word.start()])
    return honest


def _whole_words(text: str, start: int, end: int) -> Iterator[Suspect]:
    """Words that consist of look-alikes alone."""
    for word in _WORD.finditer(text, start, end):
        letters = word.group()
        if all(one in _LIKE_LETTER and script_of(one) != "LATIN" for one in letters):
            yield from (Suspect(place, one, _LIKE_LETTER[one]) for place, one in enumerate(letters, word.start()))


def _number_quotations(text: str) -> list[int]:
    """The number of the ASCII quotation around each character, as a shell reads them; 0 outside."""
    inside: list[int] = []
    mark, number, skips = "", 0, False
    for character in text:
        if skips:
            skips = False
        elif character == "\\" and mark != "'":
            skips = True
        elif character == mark:
            mark = ""
        elif not mark and character in "'\"":
            mark, number = character, number + 1
        inside.append(number if mark else 0)
    return inside if not mark else [one if one != number else 0 for one in inside]


def is_right_to_left(character: str) -> bool:
    """True when a terminal may draw it, and its neighbours, from right to left."""
    return unicodedata.bidirectional(character) in _RIGHT


def in_order(text: str) -> str:
    """The same words with `LEFT` behind each right-to-left one, so that they keep their order."""
    if text.isascii() or not any(map(is_right_to_left, text)):
        return text
    out: list[str] = []
    right = False
    for character in text:
        if right and not is_right_to_left(character) and not unicodedata.combining(character):
            out.append(LEFT)
            right = False
        right = right or is_right_to_left(character)
        out.append(character)
    return "".join(out) + (LEFT if right else "")


def remarks(text: str) -> list[str]:
    """Warnings about a command before its approval: a sentence for each kind of look-alike, one for right-to-left."""
    if text.isascii():
        return []
    kinds = list(dict.fromkeys((one.character, one.looks) for one in suspects(text)))
    said = [
        f"contains {_name_character(character)}{_likeness(character, looks)}" for character, looks in kinds[:MOST_SAID]
    ]
    if len(kinds) > MOST_SAID:
        said.append(f"contains {len(kinds) - MOST_SAID} more characters that look like others")
    forged = "".join(sign for sign in SPELLING if sign in text)
    if forged:
        said.append(f"contains {' '.join(forged)} itself, the sign that marks hidden characters")
    if any(map(is_right_to_left, text)):
        said.append(f"has right-to-left words, shown in reading order, each ended by {LEFT}")
    return said


def _name_character(character: str) -> str:
    name = unicodedata.name(character, "a character without a name")
    return f"U+{ord(character):04X} {name}"


def _likeness(character: str, looks: str) -> str:
    return f", which looks like {looks}" if looks else f", {script_of(character).lower()} in a Latin word"
