"""What completes the word under the cursor: commands after `/`, files after `@`."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from phoenix_tui.commands.catalogue import matching
from phoenix_tui.widgets.completion_popup import Completion
from phoenix_tui.widgets.composer import Token
from tools.contract import Command as Program
from tools.contract import ProcessRunner

MOST_FILES: Final = 50_000
MOST_CHOICES: Final = 50
GIT_SECONDS: Final = 3.0
LISTING_BYTES: Final = 8_000_000
BESIDE_SPREAD: Final = 3
"""The score of letters that stand together but scattered over the path."""


def command_completions(token: Token) -> list[Completion]:
    """Commands for a `/` at the very start of the text; none for anything else."""
    if token.row != 0 or token.start != 0 or not token.text.startswith("/"):
        return []
    return [
        Completion(f"/{command.name}", f"{command.argument}  {command.meaning}".strip(), runs=not command.required)
        for command in matching(token.text[1:])
    ]


class FileIndex:
    """The files of one folder, read once per question; `refresh` reads them anew."""

    def __init__(self, folder: Path, runner: ProcessRunner) -> None:
        self._folder = folder
        self._runner = runner
        self._files: Sequence[str] = ()

    async def refresh(self) -> None:
        """Ask git; without a repository walk the folder in a thread, minus what .gitignore names."""
        self._files = await self._from_git() or await asyncio.to_thread(_walk, self._folder)

    async def completions(self, query: str) -> list[Completion]:
        """The best files for what was typed after the `@`."""
        return [Completion(f"@{_quoted(name)}") for name in await asyncio.to_thread(best, query, self._files)]

    async def _from_git(self) -> list[str]:
        arguments = ("git", "ls-files", "-co", "--exclude-standard", "-z")
        listing = Program(arguments, self._folder, GIT_SECONDS, keep_head=LISTING_BYTES, keep_tail=0, sandboxed=False)
        try:
            finished = await self._runner.run(listing)
        except OSError:
            return []
        if finished.exit_code != 0:
            return []
        names = finished.captured.head.decode("utf-8", "replace").split("\0")
        return sorted({name for name in names if name})[:MOST_FILES]


def _quoted(name: str) -> str:
    return f'"{name}"' if " " in name else name


def _walk(folder: Path) -> list[str]:
    from ignore import WalkBuilder  # noqa: PLC0415 - loaded at the first @, not at the start (LIBRARIES.md 3)

    found: list[str] = []
    builder = WalkBuilder(folder)
    builder.require_git(False)
    for entry in builder.build():
        path = entry.path()
        if path.is_file():
            found.append(str(path.relative_to(folder)))
        if len(found) >= MOST_FILES:
            break
    return sorted(found)


def best(query: str, names: Sequence[str]) -> list[str]:
    """Names that contain the letters of `query` in order, the tightest match first."""
    wanted = query.strip('"').lower()
    if not wanted:
        return list(names[:MOST_CHOICES])
    scored = sorted((score, len(name), name) for name in names if (score := _score(wanted, name.lower())) is not None)
    return [name for _, _, name in scored[:MOST_CHOICES]]


def _score(wanted: str, name: str) -> int | None:
    """Lower is better: in the file's own name, then anywhere, then scattered; None where it does not match."""
    base = name.rsplit("/", 1)[-1]
    if base.startswith(wanted):
        return 0
    if wanted in base:
        return 1
    if wanted in name:
        return 2
    spread = _spread(wanted, name)
    return None if spread is None else BESIDE_SPREAD + spread


def _spread(wanted: str, name: str) -> int | None:
    first = place = -1
    for letter in wanted:
        place = name.find(letter, place + 1)
        if place < 0:
            return None
        first = place if first < 0 else first
    return place - first
