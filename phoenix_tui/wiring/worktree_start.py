"""Makes the worktree of `--worktree` before anything looks at the working directory, which never changes later."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from msgspec.structs import replace

from phoenix_tui.cli.arguments import RunArguments
from phoenix_tui.cli.exits import CommandError
from phoenix_tui.cli.setup import check_folder
from phoenix_tui.features.worktree import fork_place, worktree_at_start
from phoenix_tui.wiring.copy_source import source_of_copy
from tools.git.making import Made
from tools.git.repository import GitFailure
from tools.process.start import ProcessSettings, start_processes


def in_worktree(arguments: RunArguments) -> tuple[RunArguments, tuple[str, ...]]:
    """The arguments with the worktree as their folder, and sentences about it.

    Raises:
        CommandError: it cannot be made; nothing is left of it.
    """
    folder = check_folder(arguments.folder())
    if arguments.fork:
        arguments, folder = asyncio.run(source_of_copy(arguments, folder))
    try:
        made, notes = asyncio.run(_make_worktree(folder, arguments.worktree or "", arguments.base or ""))
    except GitFailure as failure:
        raise CommandError(str(failure)) from failure
    place = fork_place(made, folder) if arguments.fork else None
    return replace(arguments, cwd=str(made.folder), fork_place=place), notes


async def _make_worktree(folder: Path, name: str, base: str) -> tuple[Made, tuple[str, ...]]:
    processes = await start_processes(ProcessSettings(environment=dict(os.environ)))
    try:
        return await worktree_at_start(processes.runner, folder, name, base)
    finally:
        await processes.close()
