"""Completions of the word under the cursor: commands and arguments, files, programs and lines of a shell."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from phoenix_tui.features.catalogue import BY_NAME, SECTION, matching
from phoenix_tui.text.fuzzy import Corpus, with_folders
from phoenix_tui.text.shell_words import ShellWord, quote_name
from phoenix_tui.widgets.completion_popup import Completion, Token
from tools.clean import clean_line
from tools.files.walking import walk
from tools.git.repository import find_repository
from tools.process.environment import users_path
from tools.shedding import SheddingOrder, shedding

if TYPE_CHECKING:
    from phoenix_tui.features.custom_commands import CustomCommands


MOST_USED: Final = 5
"""Commands in use that are listed ahead of the groups."""
IN_USE: Final = "Used"
CUSTOM: Final = "Skills and command files"
MOST_FILES: Final = 50_000
MOST_CHOICES: Final = 50
MOST_QUOTED: Final = 1_000
"""Answers to a name in quotation marks among which those with blanks are looked for."""
NEVER_WRITTEN: Final = frozenset({"__pycache__", "node_modules"})
"""Folders of generated files."""
FRESH_SECONDS: Final = 2.0
"""Seconds for which a listing is current before the next `@` renews it."""
FRESH_SHARE: Final = 20
"""Factor of that time by the duration of the listing: listing a large folder must not slow the typing down."""


def command_completions(token: Token, used: Sequence[str] = ()) -> list[Completion]:
    """Commands for a `/` at the very start of the text, in groups while nothing follows it; none for anything else."""
    if token.row != 0 or token.start != 0 or not token.text.startswith("/"):
        return []
    first = used if token.text[1:] else used[:MOST_USED]
    sections = {} if token.text[1:] else SECTION | dict.fromkeys(first, IN_USE)
    return [
        Completion(
            f"/{command.name}",
            command.meaning,
            runs=not command.required,
            shown=command.usage,
            section=sections.get(command.name, ""),
        )
        for command in matching(token.text[1:], first)
    ]


def custom_completions(
    token: Token, line: str, custom: CustomCommands | None, used: Sequence[str] = ()
) -> list[Completion]:
    """Phoenix's own commands with this beginning, then skills and command files, then the other own ones; behind a
    name the hint for its arguments.
    """
    if custom is None:
        return command_completions(token, used)
    if token.start != 0:
        one = custom.find_command(line[1:].partition(" ")[0])
        return [Completion(one.usage, one.meaning, hint=True)] if one is not None and one.hint else []
    own = command_completions(token, used)
    begins = [one for one in own if one.text.startswith(token.text.lower())]
    section = "" if token.text[1:] else CUSTOM
    found = [
        Completion(f"/{one.name}", one.meaning, runs=not one.hint, shown=one.usage, section=section)
        for one in custom.matching(token.text[1:])
    ]
    return [*begins, *found, *(one for one in own if one not in begins)]


def argument_hint(line: str, row: int) -> Completion | None:
    """Hint for the argument of a complete command; None without an argument, and without a command."""
    name, space, _ = line.removeprefix("/").partition(" ")
    command = BY_NAME.get(name.lower())
    if row != 0 or not line.startswith("/") or not space or command is None or not command.argument:
        return None
    return Completion(command.usage, command.meaning, hint=True)


class FileIndex:
    """The files and folders under one folder, without what .gitignore names.

    A listing is kept: it answers at once, and the next `@` after two seconds requests a new one behind it.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._corpus = Corpus(())
        self._listed_at = float("-inf")
        self._took = 0.0
        self._files: Sequence[str] = ()
        self._listing: asyncio.Task[bool] | None = None
        shedding.add("names of files", SheddingOrder.READ, self.count_kept, self.drop)

    def count_kept(self) -> int:
        return len(self._files)

    def drop(self) -> None:
        """Drop the listing: the next `@` lists the folder again."""
        if self._listing is None:
            self._files, self._corpus, self._listed_at = (), Corpus(()), float("-inf")

    @property
    def is_listed(self) -> bool:
        return self._listed_at > float("-inf")

    async def refresh(self) -> bool:
        """List the folder again unless that was just done; True after changes. Callers share one listing."""
        if time.monotonic() - self._listed_at < max(FRESH_SECONDS, self._took * FRESH_SHARE):
            return False
        if self._listing is None:
            self._listing = asyncio.create_task(self._list())
            self._listing.add_done_callback(self._forget_listing)
        return await asyncio.shield(self._listing)

    async def completions(self, query: str) -> list[Completion]:
        wanted = query.strip('"')
        is_quoted = query.startswith('"')
        found = await asyncio.to_thread(self._corpus.search, wanted, MOST_QUOTED if is_quoted else MOST_CHOICES)
        if is_quoted:  # written for names with blanks alone
            found = sorted(found, key=lambda one: " " not in one.name)[:MOST_CHOICES]
        completions: list[Completion] = []
        for one in found:
            quote_name = f'"{one.name}"' if " " in one.name else one.name
            shift = 2 if " " in one.name else 1
            marks = tuple(place + shift for place in one.places)
            completions.append(Completion(f"@{quote_name}", marks=marks, goes_on=one.name.endswith("/")))
        return completions

    def _forget_listing(self, _: asyncio.Task[bool]) -> None:
        self._listing = None

    async def _list(self) -> bool:
        began = time.monotonic()
        files = await asyncio.to_thread(_walk, self._folder)
        changed = files != self._files
        if changed:
            self._files, self._corpus = files, await asyncio.to_thread(lambda: Corpus(with_folders(files)))
        self._listed_at = time.monotonic()
        self._took = self._listed_at - began
        return changed


def _walk(folder: Path) -> list[str]:
    """Paths below a folder by its ignore files; git is not asked, for a repository decides what it runs (SECURITY V2).

    Names that begin with a dot are listed in a repository, where they are ordinary files. A name with a quotation mark,
    a line end or anything invisible is not listed: as `@"NAME"` it would put other words into the message.
    """
    beginning = len(str(folder).rstrip("/")) + 1
    hidden = find_repository(folder) is not None
    found = walk(folder, hidden=hidden, most=MOST_FILES, leave_out=NEVER_WRITTEN).files
    paths = (path[beginning:] for path in found)
    return [path for path in paths if '"' not in path and clean_line(path) == path]


MOST: Final = 50
MOST_EARLIER: Final = 3
MOST_LOOKED_AT: Final = 20_000
"""Names of one folder that are looked at."""
PROGRAMS_FRESH_SECONDS: Final = 30.0
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
        if time.monotonic() - self._read_at > PROGRAMS_FRESH_SECONDS:
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
        found += [Completion(quote_name(name)) for name in programs.beginning(word.text)[:MOST]]
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
        Completion(quote_name(f"{parent}{slash}{one}") + ("" if is_file else "/"), goes_on=not is_file)
        for is_file, one in sorted(rows)[:MOST]
        if not (is_file and word.is_folder)
    ]


def _programs(folder: str) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return [entry.name for entry in entries if os.access(entry.path, os.X_OK) and not entry.is_dir()]
    except OSError:
        return []
