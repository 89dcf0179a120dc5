"""Rules for shell commands: one exact command, or every plain command with the same first words."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Final

from engine.permissions.launchers import is_transparent, own_option, skip_launchers, why_no_prefix
from engine.permissions.readers import Reader, find_refused_option, leaves, options_of, reader_of, unknown_option
from engine.permissions.shell_words import BLANKS, plain_words
from tools.clean import reveal
from tools.command_access import command_access
from tools.contract import Access
from tools.wording import one_line

STAR: Final = "[*]"
"""End of a pattern for a command that itself ends with a star."""
REMOTE: Final = frozenset({"clone", "fetch", "pull", "push", "ls-remote", "remote"})
"""Commands of git that reach another repository."""
_ELSEWHERE: Final = re.compile(r"(?:https?|ssh|git)://[\w@.-]|[\w.-]+@[\w.-]+:")
SHORTEST_TO_CUT: Final = 60
"""Characters of a pattern from which a sentence shows only its beginning."""


def quote(text: str) -> str:
    """A command or pattern in a sentence: hidden characters spelled out, on one line, cut where it is long."""
    return f"`{one_line(reveal(text).replace(chr(10), '↵'), SHORTEST_TO_CUT)}`"


def prefix_words(pattern: str) -> tuple[str, ...]:
    """The words that every command of a pattern such as `make test*` begins with; none for an exact command."""
    return plain_words(pattern[:-1]) if pattern.endswith("*") and not pattern.endswith(STAR) else ()


def why_no_pattern(pattern: str) -> str:
    """Reason why a pattern matches no command, in one sentence; empty if it matches some."""
    words = prefix_words(pattern)
    if not words:
        return ""
    if why := why_no_prefix(words):
        return why
    if why := _why_option(words):
        return f"{quote(pattern)} matches nothing: {why}. Write the whole command."
    return ""


def _why_option(words: tuple[str, ...]) -> str:
    """Reason why an option among the words is never covered by a rule with a star, as a clause; empty for none."""
    inner = skip_launchers(words)
    if option := own_option(words):
        return f"{words[0]} takes {option.partition('=')[0]} for its own option; write it behind --"
    reader = reader_of(inner)
    if reader is not None and (why := find_refused_option(reader, inner)):
        return why
    if inner[0].rpartition("/")[2] != "git" or reader is not None:
        return ""
    if options_of(inner) is None:
        return f"it is not known what git {inner[1] if len(inner) > 1 else ''} starts"
    return unknown_option(inner)


def command_matches(pattern: str, command: str, working_dir: Path) -> bool:
    """True if the pattern allows `command`, as it is given to the shell, in `working_dir`."""
    first = prefix_words(pattern)
    if not first:
        return pattern != "*" and command == (f"{pattern.removesuffix(STAR)}*" if pattern.endswith(STAR) else pattern)
    words = plain_words(command)
    if words[: len(first)] != first or why_no_pattern(pattern):
        return False
    return not _why_not_covered(first, words, working_dir)


def _why_not_covered(first: tuple[str, ...], words: tuple[str, ...], working_dir: Path) -> str:
    """Reason why a command that begins with a rule still asks, as the end of a sentence; empty if it runs."""
    inner = skip_launchers(words)
    if skip_launchers(first)[:1] != inner[:1]:
        return "it can start different programs"
    if why := _why_option(words):
        return why
    reader = reader_of(inner)
    if _is_remote(inner):
        return _why_remote(inner[1:], working_dir)
    if reader is not None and reader.reads and not reader.prints and leaves(words[len(first) :], working_dir):
        return "it may name a file outside the working directory, or a key"
    return ""


def _is_remote(words: tuple[str, ...]) -> bool:
    return words[0].rpartition("/")[2] == "git" and words[1:2] != () and words[1] in REMOTE


def _why_remote(words: tuple[str, ...], working_dir: Path) -> str:
    """Reason why a command of git that reaches a repository elsewhere asks, as a clause; empty if it runs.

    Git starts programs for `ext::…`, and the hooks of a repository in a folder.
    """
    if any("::" in word for word in words):
        return "it may start a program to reach a repository"
    if leaves(tuple(word for word in words[1:] if not _ELSEWHERE.match(word)), working_dir):
        return "it may name a folder outside the working directory"
    named = (working_dir / word for word in _repositories(words))
    if words[0] != "clone" and any(map(os.path.exists, named)):  # Path.exists raises where a folder is closed
        return "it names a repository in a folder, whose hooks would run"
    return ""


def _repositories(words: tuple[str, ...]) -> Iterator[str]:
    """Words of a command of git that may be its repository: the first that is no option, and what may be a value."""
    known = options_of(("git", *words)) or {}
    for before, word in pairwise(words):
        if not word.startswith("-"):
            yield word
            if not known.get(before) and words[0] != "remote":
                return


def command_pattern(command: str, working_dir: Path) -> str | None:
    """The pattern that is offered for a command: itself, or the first words of a program that only reads.

    None for a command that no pattern can express: one whose last star would be taken for a wildcard.
    """
    if command.endswith(STAR):
        return None
    if command.endswith("*"):
        return f"{command[:-1]}{STAR}"
    words = plain_words(command)
    reader = _find_reader(words)
    if reader is None:
        return command
    named = len(words) - len(skip_launchers(words)) + len(reader.words)
    pattern = f"{' '.join(words[:named])}*"
    return pattern if command_matches(pattern, command, working_dir) else command


def _find_reader(words: tuple[str, ...]) -> Reader | None:
    if not words or not is_transparent(words):
        return None
    inner = skip_launchers(words)
    reader = reader_of(inner)
    return reader if reader is not None and reader.reads and "/" not in inner[0] else None


def reader_in(words: tuple[str, ...]) -> Reader | None:
    """The program that a plain command starts, where it is known to change nothing with these options."""
    reader = _find_reader(words)
    return None if reader is None or find_refused_option(reader, skip_launchers(words)) else reader


def only_reads(command: str) -> bool:
    """True for one plain command of a program that is known to change nothing, with no option that does."""
    reader = reader_in(plain_words(command))
    return reader is not None and not reader.prints


def command_effect(pattern: str) -> str:
    """Effect of a pattern, in one sentence."""
    first = prefix_words(pattern)
    if not first:
        return "Allows only this exact command." if pattern.strip(BLANKS) != "*" else "Allows no commands."
    if why_no_pattern(pattern):
        return "Allows no commands."
    said = quote(pattern[:-1].strip(BLANKS))
    reader, leaves_it = reader_of(skip_launchers(first)), ""
    if command_access(" ".join(first))[0] is Access.OUTSIDE:
        leaves_it = " It leaves the sandbox, with no option but known ones."
    if reader is not None and reader.reads:
        return f"Allows any command that starts with {said}, if it only reads, and only in this folder."
    if skip_launchers(first)[0] == "git":
        return (
            f"Allows any command that starts with {said}, if its options name no program, setting or file.{leaves_it}"
        )
    return f"Allows any command that starts with {said}, whatever follows.{leaves_it}"


def why_no_match(pattern: str, command: str, working_dir: Path) -> str:
    """Reason why a pattern does not allow this command, in one sentence."""
    if why := why_no_pattern(pattern):
        return why
    first, words = prefix_words(pattern), plain_words(command)
    if pattern.endswith("*") and not words:
        return "A rule with * matches only plain commands, without shell operators; write the whole command."
    if first and words[: len(first)] == first:
        return f"This rule does not match: {_why_not_covered(first, words, working_dir)}. Write the whole command."
    offered = command_pattern(command, working_dir) or command
    return f"This rule does not match: begin with the words of the command, such as {quote(offered)}."
