"""Finds the conversation that `--fork` copies and the folder of the copy, and makes the worktree of `--worktree` before
anything looks at the working directory, which never changes later.
"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from engine.records import ConversationQuery, ConversationSummary, ForkPlace, build_fork_place
from phoenix_tui.cli.arguments import RunArguments
from phoenix_tui.cli.exits import CommandError
from phoenix_tui.cli.faults import end_quietly
from phoenix_tui.cli.finding import find_one
from phoenix_tui.cli.setup import Setup, check_folder, prepare_command
from phoenix_tui.features.worktree import existing_folder, fork_place, worktree_at_start
from phoenix_tui.wiring.installation import open_the_store
from tools.clean import reveal_name
from tools.git.making import Made
from tools.git.repository import GitFailure
from tools.process.start import ProcessSettings, start_processes

MOVED: Final = (
    "The folder {source} of this conversation is gone. Continue in a copy: phoenix {flag}-r {id} --fork -C FOLDER"
    " (in an open Phoenix: /fork -C FOLDER)."
)


def place_of_copy(arguments: RunArguments, setup: Setup, found: ConversationSummary) -> ForkPlace | None:
    """Folder of the copy that flags want; None for that of its source, and where no copy is wanted.

    Raises:
        CommandError: that folder is gone.
    """
    if arguments.fork_place is not None:
        return arguments.fork_place
    if arguments.fork and arguments.resume is not None and arguments.cwd is not None:
        return build_fork_place(found.cwd, setup.cwd)
    if moved := describe_moved(found.cwd, found.id, headless=arguments.headless):
        raise CommandError(moved)
    return None


def describe_moved(folder: Path, conversation_id: str, *, headless: bool) -> str:
    """Sentence about a conversation whose folder is gone, with the way on; empty where it is there."""
    if folder.is_dir():
        return ""
    return MOVED.format(source=reveal_name(folder), id=conversation_id, flag="-p " if headless else "")


async def source_of_copy(arguments: RunArguments, folder: Path) -> tuple[RunArguments, Path]:
    """The arguments with the id of the conversation, and its folder; `folder` is the current one, for -c.

    Raises:
        CommandError: there is no such conversation, more than one, or its folder and its repository are gone.
        StorageError: the database cannot be used.
    """
    if arguments.resume == "":
        raise CommandError("--fork copies one conversation; name it with -r ID.")
    store = await open_the_store(prepare_command(os.environ).paths)
    try:
        if arguments.resume:
            found = await find_one(store, arguments.resume, partly=not arguments.headless)
        else:
            latest = await store.conversations(ConversationQuery(cwd=folder, limit=1))
            if not latest:
                raise CommandError(f"There is no conversation in {folder} yet; leave -c out to start one.")
            found = latest[0]
        source = check_folder(await existing_folder(found.cwd))
        return replace(arguments, resume=found.id, continue_last=False), source
    finally:
        await end_quietly(store.close())


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
