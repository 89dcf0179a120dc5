"""Patterns of commands in rules that deny: each part of a command line is looked at, and a doubt is an answer."""

from __future__ import annotations

from enum import IntEnum
from functools import lru_cache
from typing import Final

from msgspec import Struct

from engine.permissions.command_rules import BLANKS, STAR
from engine.permissions.globs import LONGEST, glob_matches
from engine.permissions.made_programs import Unknowns, unknown_programs
from engine.permissions.shell_parts import UNKNOWN, Word, shell_parts
from engine.permissions.shell_programs import Programs, git_command, program_names, programs_in

PARTLY_KNOWN: Final = "what it runs is partly known only to the shell"
MAY_START: Final = "a program in it may run that from its arguments"
MOST_TEXT: Final = 8_000
"""Characters of a command that a pattern with a star inside is held against."""
MOST_OPTIONS: Final = 30
"""Options before the words of a pattern that are passed over; behind more of them anything may stand."""


class Match(IntEnum):
    """Result of holding a command against a pattern."""

    NO = 0
    MAYBE = 1
    """Unknown before the command runs."""
    YES = 2


class _Pattern(Struct, frozen=True):
    """A pattern as words, or as a glob where it has a star inside or is no simple command."""

    words: tuple[str, ...] = ()
    glob: str = ""
    rest: bool = False
    """True where anything may follow the words."""
    beginning: bool = False
    """True where the last word is only the beginning of one: `git push*`."""


def match_denial(pattern: str, command: str, unknown: Unknowns | None = None) -> tuple[Match, str]:
    """Hold a command line against a pattern; returns the reason of a doubt as well.

    `unknown` is what a look at its files found; without it the line alone is judged.

    `*` alone is every command. `git push*` is every command of the program git that goes on with a word that begins
    with push, `git push *` one that goes on with push itself. Options before these words are passed over.
    """
    text = pattern.strip(BLANKS)
    if text == "*" or command.strip(BLANKS) == text:
        return Match.YES, ""
    wanted, programs = _parse_pattern(text), programs_in(command)
    best = max((_match(wanted, words) for words in programs.commands), default=Match.NO)
    if wanted.glob:
        best = max(best, _glob_match(wanted.glob, command))
    if best is not Match.NO:
        return best, PARTLY_KNOWN if best is Match.MAYBE else ""
    if programs.doubt or _may_start(wanted, programs):
        return Match.MAYBE, programs.doubt or MAY_START
    found = unknown or unknown_programs(command)
    copies = [(Word(wanted.words[0]), *words[1:]) for words in found.nameless if len(wanted.words) > 1]
    if any(_match(wanted, words) is not Match.NO for words in (*found.perhaps, *copies)):
        return Match.MAYBE, MAY_START
    return (Match.MAYBE, found.doubt) if found.doubt else (Match.NO, "")


def _may_start(wanted: _Pattern, programs: Programs) -> bool:
    """True where a program that is not known may run the command: it stands in its arguments or under a new name.

    A single word between others is no sign of that: `docker rm` is not `rm`.
    """
    if wanted.glob:
        return False
    if any(_match(wanted, words) is not Match.NO for words in programs.perhaps):
        return True
    reach = len(wanted.words) + MOST_OPTIONS
    return len(wanted.words) > 1 and any(
        words[n].is_known and _match(wanted, words[n : n + reach]) is not Match.NO
        for words in programs.loose
        for n in range(len(words))
    )


@lru_cache(maxsize=256)
def _parse_pattern(text: str) -> _Pattern:
    literal = text.endswith(STAR)
    is_open = text.endswith("*") and not literal
    body = text[:-1] if is_open else text.removesuffix(STAR) + "*" * literal
    words = _plain(body if not literal else f"{text.removesuffix(STAR)}'*'")
    if not words or (is_open and "*" in body):
        escaped = body.replace("[", "[[]").replace("?", "[?]").replace("*", "[*]" if literal else "*")
        return _Pattern(glob=f"{escaped}*" if is_open else escaped)
    begins = is_open and body[-1:] not in BLANKS
    return _Pattern(words, rest=is_open, beginning=begins)


def _plain(text: str) -> tuple[str, ...]:
    """Words of a pattern that is one simple command; none for anything else."""
    parts = shell_parts(text)
    if parts.doubt or len(parts.commands) != 1 or not all(word.is_known for word in parts.commands[0]):
        return ()
    return tuple(word.text for word in parts.commands[0])


def _match(wanted: _Pattern, words: tuple[Word, ...]) -> Match:
    if wanted.glob:
        return _glob_match(wanted.glob, " ".join(word.text for word in words), splits=any(one.splits for one in words))
    first, *rest = wanted.words
    names = program_names(words[0])
    begins = wanted.beginning and not rest
    if not any(name.startswith(first) if begins else name == first for name in names):
        return Match.NO
    if not rest and wanted.rest:
        return Match.YES
    starts = _starts(words)
    unread = Match.MAYBE if len(starts) >= MOST_OPTIONS else Match.NO
    return max(unread, *(_compare(wanted, rest, words[start:]) for start in starts))


def _starts(words: tuple[Word, ...]) -> list[int]:
    """Places where the words behind the program may begin: behind it, and behind options and their values."""
    if "git" in program_names(words[0]):
        return [1, git_command(words)]
    places = [1]
    for place in range(1, min(len(words), MOST_OPTIONS)):
        is_value = place > 1 and words[place - 1].text.startswith("-")
        if not words[place].text.startswith("-") and not is_value:
            break
        places.append(place + 1)
    return places


def _compare(wanted: _Pattern, rest: list[str], words: tuple[Word, ...]) -> Match:
    result = Match.YES
    for place, text in enumerate(rest):
        if place == len(words):
            return Match.NO
        word = words[place]
        if word.splits:
            return Match.MAYBE
        if UNKNOWN in word.text:
            result = Match.MAYBE
        elif word.text != text and not (wanted.beginning and place == len(rest) - 1 and word.text.startswith(text)):
            return Match.NO
    more = words[len(rest) :]
    if wanted.rest or not more:
        return result
    return Match.MAYBE if all(word.splits for word in more) else Match.NO


def _glob_match(glob: str, text: str, *, splits: bool = False) -> Match:
    """Hold a text against a pattern with stars; what the shell puts into it may be anything."""
    if len(text) > MOST_TEXT or len(glob) > LONGEST:
        return Match.MAYBE
    if glob_matches(glob, text):
        return Match.YES
    start = glob.partition("*")[0] if "[" not in glob else ""
    known = text.partition(UNKNOWN)[0]
    is_known = UNKNOWN not in text and not splits
    return Match.NO if is_known or not (start.startswith(known) or known.startswith(start)) else Match.MAYBE
