"""Completions of a shell line: programs of PATH, files of its folder, earlier lines."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from phoenix_tui.text.shell_words import ShellWord, quoted
from phoenix_tui.widgets.completion_popup import Completion
from tools.process.environment import users_path

MOST: Final = 50
MOST_EARLIER: Final = 3
MOST_LOOKED_AT: Final = 20_000
"""Names of one folder that are looked at."""
FRESH_SECONDS: Final = 30.0
"""Seconds for which the programs of PATH are not looked up again."""
HINT: Final = Completion("Enter runs the line as it is written", hint=True)
"""First row: Enter must never run another line than the one that is written; Tab goes to the row behind it."""


class ProgramNames:
    """Names of the programs of PATH."""

    def __init__(self) -> None:
        self._names: Sequence[str] = ()
        self._read_at = float("-inf")

    def beginning(self, text: str) -> list[str]:
        """Names that begin with a text, shortest first; blocks."""
        if time.monotonic() - self._read_at > FRESH_SECONDS:
            folders = [one for one in users_path().split(os.pathsep) if one.startswith("/")]
            self._names = sorted({name for folder in folders for name in _programs(folder)})
            self._read_at = time.monotonic()
        found = [name for name in self._names if name.startswith(text)]
        return sorted(found, key=lambda name: (len(name), name))


def shell_completions(
    word: ShellWord, line: str, folder: Path, programs: ProgramNames, earlier: Iterable[str]
) -> list[Completion]:
    """Completions of a word, behind a row that says what Enter does; none where there are none. Blocks."""
    found = _earlier(line, word.start, earlier)
    if word.text and word.is_program and "/" not in word.text:
        found += [Completion(quoted(name)) for name in programs.beginning(word.text)[:MOST]]
    elif word.text or word.is_folder:
        found += _files(word, folder)
    found = [one for one in found if one.text != line[word.start :]]
    return [HINT, *found] if found else []


def _earlier(line: str, start: int, earlier: Iterable[str]) -> list[Completion]:
    """Earlier lines that begin as this one, newest first."""
    if not line.strip("! "):
        return []
    found = dict.fromkeys(one for one in earlier if one.startswith(line) and one != line and "\n" not in one)
    return [Completion(one[start:], "earlier line", shown=one) for one in list(found)[:MOST_EARLIER]]


def _files(word: ShellWord, folder: Path) -> list[Completion]:
    """Files whose names begin as the word does, folders first; names that begin with a dot only where it does."""
    parent, slash, name = word.text.rpartition("/")
    place = folder / Path(f"{parent}{slash}").expanduser() if slash else folder
    rows: list[tuple[bool, str]] = []
    try:
        with os.scandir(place) as entries:
            for number, entry in enumerate(entries):
                if number >= MOST_LOOKED_AT:
                    break
                if entry.name.startswith(name) and (name.startswith(".") or not entry.name.startswith(".")):
                    rows.append((not entry.is_dir(), entry.name))
    except (OSError, ValueError, RuntimeError):  # a name with a NUL, an unknown home
        return []
    return [
        Completion(quoted(f"{parent}{slash}{one}") + ("" if is_file else "/"), goes_on=not is_file)
        for is_file, one in sorted(rows)[:MOST]
        if not (is_file and word.is_folder)
    ]


def _programs(folder: str) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return [entry.name for entry in entries if os.access(entry.path, os.X_OK) and not entry.is_dir()]
    except OSError:
        return []
