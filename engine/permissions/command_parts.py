"""Lists and pipes of plain commands: each part is judged by itself, and some are free because they only read."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path
from typing import Final

from msgspec import Struct

from engine.permissions.command_rules import reader_in
from engine.permissions.launchers import EXACT, INTERPRETERS, skip_launchers, stem, why_no_prefix
from engine.permissions.readers import file_names, leaves
from engine.permissions.shell_words import PIPES, PlainPart, plain_parts
from tools.files.links import real_path
from tools.files.own_files import read_regular
from tools.files.protected import looks_secret
from tools.process.git_control import submodules
from tools.process.programs import find_program

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
