"""Finds the conversation that `--fork --worktree` copies, before the worktree of its folder is made."""

from __future__ import annotations

import os
from pathlib import Path

from msgspec.structs import replace

from engine.records import ConversationQuery
from phoenix_tui.cli.arguments import RunArguments
from phoenix_tui.cli.exits import CommandError
from phoenix_tui.cli.faults import end_quietly
from phoenix_tui.cli.finding import find_one
from phoenix_tui.cli.setup import checked_folder, prepare_command
from phoenix_tui.features.worktree import existing_folder
from phoenix_tui.wiring.store import open_the_store


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
        source = checked_folder(await existing_folder(found.cwd))
        return replace(arguments, resume=found.id, continue_last=False), source
    finally:
        await end_quietly(store.close())
