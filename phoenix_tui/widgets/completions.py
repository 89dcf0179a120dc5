"""Completions of the word under the cursor: commands and their arguments after `/`, files after `@`."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from phoenix_tui.features.catalogue import BY_NAME, matching
from phoenix_tui.text.fuzzy import Corpus, with_folders
from phoenix_tui.widgets.completion_popup import Completion, Token
from tools.clean import clean_line
from tools.files.walking import walk
from tools.git.repository import find_repository
from tools.shedding import SheddingOrder, shedding

if TYPE_CHECKING:
    from phoenix_tui.features.custom_commands import CustomCommands

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


def command_completions(token: Token) -> list[Completion]:
    """Commands for a `/` at the very start of the text; none for anything else."""
    if token.row != 0 or token.start != 0 or not token.text.startswith("/"):
        return []
    return [
        Completion(f"/{command.name}", command.meaning, runs=not command.required, shown=command.usage)
        for command in matching(token.text[1:])
    ]


def custom_completions(token: Token, line: str, custom: CustomCommands | None) -> list[Completion]:
    """Phoenix's own commands with this beginning, then skills and command files, then the other own ones; behind a
    name the hint for its arguments.
    """
    if custom is None:
        return command_completions(token)
    if token.start != 0:
        one = custom.named(line[1:].partition(" ")[0])
        return [Completion(one.usage, one.meaning, hint=True)] if one is not None and one.hint else []
    own = command_completions(token)
    begins = [one for one in own if one.text.startswith(token.text.lower())]
    found = [
        Completion(f"/{one.name}", one.meaning, runs=not one.hint, shown=one.usage)
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
        shedding.add("names of files", SheddingOrder.READ, self.kept, self.drop)

    def kept(self) -> int:
        """Number of names in memory."""
        return len(self._files)

    def drop(self) -> None:
        """Drop the listing: the next `@` lists the folder again."""
        if self._listing is None:
            self._files, self._corpus, self._listed_at = (), Corpus(()), float("-inf")

    @property
    def is_listed(self) -> bool:
        """True once there is a listing."""
        return self._listed_at > float("-inf")

    async def refresh(self) -> bool:
        """List the folder again unless that was just done; True after changes. Callers share one listing."""
        if time.monotonic() - self._listed_at < max(FRESH_SECONDS, self._took * FRESH_SHARE):
            return False
        if self._listing is None:
            self._listing = asyncio.create_task(self._list())
            self._listing.add_done_callback(self._listed)
        return await asyncio.shield(self._listing)

    async def completions(self, query: str) -> list[Completion]:
        """The best files and folders for the text after the `@`."""
        wanted = query.strip('"')
        is_quoted = query.startswith('"')
        found = await asyncio.to_thread(self._corpus.search, wanted, MOST_QUOTED if is_quoted else MOST_CHOICES)
        if is_quoted:  # written for names with blanks alone
            found = sorted(found, key=lambda one: " " not in one.name)[:MOST_CHOICES]
        completions: list[Completion] = []
        for one in found:
            quoted = f'"{one.name}"' if " " in one.name else one.name
            shift = 2 if " " in one.name else 1
            marks = tuple(place + shift for place in one.places)
            completions.append(Completion(f"@{quoted}", marks=marks, goes_on=one.name.endswith("/")))
        return completions

    def _listed(self, _: asyncio.Task[bool]) -> None:
        self._listing = None

    async def _list(self) -> bool:
        began = time.monotonic()
        files = await asyncio.to_thread(_walk, self._folder)
        changed = files != self._files
        if changed:
            self._files, self._corpus = files, await asyncio.to_thread(_corpus, files)
        self._listed_at = time.monotonic()
        self._took = self._listed_at - began
        return changed


def _corpus(files: Sequence[str]) -> Corpus:
    return Corpus(with_folders(files))


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
