"""Files of a project that its hooks and servers are started from: a change of one is a change of what runs."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, cast

from phoenix_tui.config.sources.fingerprint import Fingerprint
from phoenix_tui.config.sources.kinds import SourceFile, SourceKind
from tools.files.own_files import read_regular

MOST_BYTES: Final = 1024 * 1024
"""Bytes of one file of hooks or servers."""
MOST_WORDS: Final = 2_000
"""Words of all commands that are looked at."""
DEPTH: Final = 20
_ROOT_VARIABLES: Final = ("CLAUDE_PROJECT_DIR", "PHOENIX_PROJECT_DIR")
_COMMAND_KEYS: Final = frozenset({"command", "headersHelper"})


def named_programs(
    files: Iterable[SourceFile], folder: Path, root: Path, seen: Fingerprint | None = None
) -> Iterator[Path]:
    """Regular files below `root` that the commands in these files name, relative to `folder` or `root`.

    `seen` gets every path that is looked for.
    """
    seen = seen or Fingerprint()
    left = MOST_WORDS
    for file in files:
        if file.kind not in {SourceKind.HOOKS, SourceKind.SERVERS}:
            continue
        for word in _words(file.path):
            left -= 1
            if left < 0:
                return
            yield from _files(word, (folder, file.path.parent, root), root, seen)


def _words(path: Path) -> Iterator[str]:
    """Words of every command in a JSON file, whatever its shape; none where it is no JSON."""
    content = read_regular(path, MOST_BYTES + 1)
    if content is None or len(content) > MOST_BYTES:
        return
    try:
        document: object = json.loads(content)
    except (ValueError, RecursionError):
        return
    yield from _in(document, DEPTH)


def _in(value: object, depth: int) -> Iterator[str]:
    if not depth:
        return
    if isinstance(value, list):
        for one in cast("list[object]", value):
            yield from _in(one, depth - 1)
    elif isinstance(value, dict):
        for key, one in cast("dict[str, object]", value).items():
            if key in _COMMAND_KEYS and isinstance(one, str):
                yield from _split(one)
            elif key == "args" and isinstance(one, list):
                yield from (word for word in cast("list[object]", one) if isinstance(word, str))
            else:
                yield from _in(one, depth - 1)


def _split(command: str) -> list[str]:
    """Words of a command line; all that stand between spaces where its quotes do not match."""
    lexer = shlex.shlex(command, posix=True, punctuation_chars=True)
    lexer.whitespace_split, lexer.commenters = True, ""
    try:
        return list(lexer)
    except ValueError:
        return command.replace('"', " ").replace("'", " ").split()


def _files(word: str, bases: tuple[Path, ...], root: Path, seen: Fingerprint) -> Iterator[Path]:
    for name in _ROOT_VARIABLES:
        word = word.replace(f"${{{name}}}", str(bases[0])).replace(f"${name}", str(bases[0]))
    word = word.rpartition("=")[2] if word.startswith("-") else word
    if not word or "\0" in word or len(word) > os.pathconf("/", "PC_PATH_MAX"):
        return
    for base in dict.fromkeys(bases):
        path = Path(os.path.normpath(base / word))
        seen.note(path)
        try:
            real = path.resolve(strict=True)
        except (OSError, RuntimeError, ValueError):  # a name that no file can have
            continue
        if real.is_file() and real.is_relative_to(root):
            yield path
