"""Rules for shell commands: one exact command, or every plain command with the same first words.

In a plain command bash hands each word to its program exactly as written. Each part of a list or a pipe is judged by
itself, and some are free because they only read.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Final

from msgspec import Struct

from engine.permissions.known_programs import (
    EXACT,
    INTERPRETERS,
    Reader,
    file_names,
    find_refused_option,
    is_transparent,
    leaves,
    options_of,
    own_option,
    reader_of,
    skip_launchers,
    stem,
    unknown_option,
    why_no_prefix,
)
from tools.clean import reveal
from tools.command_access import command_access
from tools.contract import Access
from tools.files.links import real_path
from tools.files.own_files import read_regular
from tools.files.protected import looks_secret
from tools.process.git_control import submodules
from tools.process.programs import find_program
from tools.wording import one_line

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
    return "".join(piece[1:-1] if piece[0] in "'\"" else piece for piece in _PIECE.findall(word))


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


_OTHER_STATE: Final = """
    cd pushd popd dirs unalias umask ulimit exit return break continue shift times jobs fg bg disown kill suspend logout
    command builtin
"""
BUILTINS: Final = frozenset({"echo", "true", "false", "pwd"})
"""Programs that the shell is itself."""
_SIGNS: Final = (".git", "HEAD")
"""Names by which git may take a folder for a repository."""
_LEADS_ON: Final = ("commondir", "config.worktree", "hooks/post-index-change")
"""Parts of a git folder with other settings, and the hook that a look at the files runs."""
CHANGES_SHELL: Final = EXACT | frozenset(_OTHER_STATE.split())
"""Words of the shell that change what its later commands mean; and programs that no rule with a star may name."""
MOST_CONFIG: Final = 64 * 1024
_SECTION: Final = re.compile(rb"\[(?:core|remote|branch|user|extensions|init|gc|advice)(?: \"[^\"\\\n]*\")?\]")
_SETTING: Final = re.compile(
    rb"(?:repositoryformatversion|filemode|bare|logallrefupdates|symlinks|ignorecase|precomposeunicode|autocrlf|eol|url"
    rb"|pushurl|fetch|tagopt|prune|remote|merge|rebase|name|email|objectformat|defaultbranch|auto)\s*=[^\\\n]*",
    re.IGNORECASE,
)


class JudgedPart(Struct, frozen=True):
    """A part of a list, and the folder that it runs in."""

    part: PlainPart
    folder: Path

    @property
    def words(self) -> tuple[str, ...]:
        """The words of its command."""
        return self.part.words


def split_parts(command: str, working_dir: Path) -> tuple[JudgedPart, ...]:
    """The parts of a list or pipe, each of which has the meaning that it has alone; none for any other text.

    `cd FOLDER &&` in front is followed, inside the working directory; nothing else may change the shell.
    """
    found: list[JudgedPart] = []
    parts, folder, root = plain_parts(command), working_dir, real_path(working_dir)
    for place, part in enumerate(parts):
        if part.words[0] == "cd" and len(part.words) == 2 and part.joint == "&&" and not part.is_fed and not found:
            folder = Path(real_path(folder / part.words[1]))
            rest = {one.joint for one in parts[place:]} - {""}
            is_there = os.path.isdir(folder)  # noqa: PTH112 - Path.is_dir raises where a folder above is closed
            if part.words[1].startswith("-") or not is_there or not rest <= {"&&", *PIPES}:
                return ()
            if leaves((str(folder),), working_dir):
                return ()
            continue
        named = part.words[0].rpartition("/")[2]
        if named.lower() in CHANGES_SHELL or why_no_prefix(part.words):
            return ()
        if leaves(part.reads, folder, root) or any(looks_secret(name) for name in part.reads):
            return ()
        found.append(JudgedPart(part, folder))
    return tuple(found)


def is_reading(judged: JudgedPart, working_dir: Path) -> bool:
    """True for a part that is known to change nothing, with options that are known, inside the working directory."""
    reader = reader_in(judged.words)
    if reader is None:
        return False
    inner = skip_launchers(judged.words)[len(reader.words) :]
    return reader.prints or not leaves(inner, judged.folder, real_path(working_dir))


def has_reader(command: str) -> bool:
    """True where a part of a command may print files: a known reader, an interpreter, or text that is not plain."""
    parts = plain_parts(command)
    return not parts or any(
        reader_in(part.words) is not None or why_no_prefix(part.words) or stem(part.words[0]) in INTERPRETERS
        for part in parts
    )


def reads_freely(command: str, working_dir: Path) -> bool:
    """True where every part of a command only reads inside the working directory, and runs no program of it.

    A file that looks like one of keys is not free, nor is git where its settings, a hook or a submodule could start a
    program, nor a command that only prints its own words.
    """
    parts = split_parts(command, working_dir)
    readers = [reader for part in parts if (reader := reader_in(part.words)) is not None]
    is_reader = any(not reader.prints for reader in readers)
    return is_reader and all(_is_free(part, working_dir) for part in parts)


def _is_free(judged: JudgedPart, working_dir: Path) -> bool:
    words = judged.words
    if not is_reading(judged, working_dir) or any(looks_secret(name) for word in words for name in file_names(word)):
        return False
    inner = skip_launchers(words)
    if not all(_is_elsewhere(program, working_dir) for program in {words[0], inner[0]} - BUILTINS):
        return False
    return inner[0] != "git" or _git_starts_nothing(judged.folder)


def _is_elsewhere(program: str, working_dir: Path) -> bool:
    """True where the shell finds a program outside the working directory and its repository."""
    found = "" if "/" in program else shutil.which(program)
    return bool(found) and found == find_program(program, working_dir)


def _git_starts_nothing(folder: Path) -> bool:
    """True where git finds a repository whose settings are those that git itself writes, no hook and no submodule."""
    top = next((one for one in (folder, *folder.parents) if any(os.path.lexists(one / name) for name in _SIGNS)), None)
    if top is None or os.path.lexists(top / "HEAD"):
        return False
    git = top / ".git"
    if git.is_symlink() or not git.is_dir() or any(os.path.lexists(git / name) for name in _LEADS_ON):
        return False
    return not (git / "hooks").is_symlink() and not submodules(git) and _is_plain(git / "config")


def _is_plain(config: Path) -> bool:
    content = read_regular(config, MOST_CONFIG + 1, follow=False)
    if content is None or len(content) > MOST_CONFIG or b"\r" in content:
        return False
    lines = (line.strip() for line in content.split(b"\n"))
    return all(not line or _SECTION.fullmatch(line) or _SETTING.fullmatch(line) for line in lines)
