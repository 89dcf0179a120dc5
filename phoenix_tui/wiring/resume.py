"""Finds, before the screen stands, the conversation that -c or -r names."""

from __future__ import annotations

import time
import uuid

from engine.ports import ConversationChanges, OwnedElsewhere, StorageError
from engine.records import ConversationQuery, PermissionMode
from engine.store import SqliteStore
from phoenix_tui.cli.arguments import RunArguments
from phoenix_tui.cli.conversations import find_one
from phoenix_tui.cli.exits import CommandError, Exit
from phoenix_tui.cli.setup import Setup
from phoenix_tui.wiring.backend import open_the_store


async def resumed_id(arguments: RunArguments, setup: Setup) -> str:
    """The id to open; with --fork that of a fresh copy.

    Raises:
        CommandError: there is no such conversation, or more than one.
    """
    try:
        store = await open_the_store(setup.paths)
    except StorageError as error:
        raise CommandError(str(error), Exit.FAILED) from error
    try:
        found = await _named(store, arguments, setup)
        if arguments.fork:
            found = (await store.library.fork(found, str(uuid.uuid4()), time.time())).id
        await _change(store, found, arguments)
    except StorageError as error:
        raise CommandError(str(error), Exit.FAILED) from error
    else:
        return found
    finally:
        await store.close()


async def _named(store: SqliteStore, arguments: RunArguments, setup: Setup) -> str:
    if arguments.resume:
        return (await find_one(store, arguments.resume)).id
    latest = await store.conversations(ConversationQuery(cwd=setup.cwd, limit=1))
    if not latest:
        raise CommandError(f"There is no conversation in {setup.cwd} yet; leave -c out to begin one.")
    return latest[0].id


async def _change(store: SqliteStore, conversation_id: str, arguments: RunArguments) -> None:
    """Apply the flags that change a conversation; one that another process owns opens read-only, unchanged."""
    mode = PermissionMode(arguments.permission_mode) if arguments.permission_mode else None
    changes = ConversationChanges(arguments.name, model=arguments.model, permission_mode=mode)
    if changes == ConversationChanges():
        return
    try:
        await store.take(conversation_id)
    except OwnedElsewhere:
        return
    await store.change(conversation_id, changes, time.time())
