"""Finds, before the screen opens, the conversation that -c or -r names."""

from __future__ import annotations

import asyncio
import sqlite3
import time
import uuid
from contextlib import closing
from typing import TYPE_CHECKING

from engine.codec import CodecError
from engine.ports import ConversationChanges, OwnedElsewhere, StorageError
from engine.records import ConversationQuery, ConversationRecord, ConversationSummary, PermissionMode
from engine.run_options import Effort
from engine.store.conversations import list_conversations, read_conversation
from engine.store.migrations import VERSION, version_of
from engine.store.opening import BUSY_AT_OPENING, open_for_reading
from engine.store.ownership import Instance
from engine.store.store import find_conversations
from phoenix_tui.cli.arguments import RunArguments
from phoenix_tui.cli.exits import CommandError
from phoenix_tui.cli.faults import end_quietly
from phoenix_tui.cli.setup import Setup
from phoenix_tui.wiring.start_facts import describe_widened
from tools.contract import SandboxMode

if TYPE_CHECKING:
    from engine.store.store import Store


def find_resumed(arguments: RunArguments, setup: Setup) -> tuple[str, str]:
    """The id to open, with --fork that of a fresh copy, and a sentence where a flag widens its sandbox.

    Raises:
        CommandError: there is no such conversation, or more than one.
        StorageError: the database cannot be used.
    """
    found = _at_a_glance(arguments, setup)
    return (found.id, _describe_moved(found)) if found is not None else asyncio.run(_from_the_store(arguments, setup))


def _describe_moved(record: ConversationRecord) -> str:
    """Sentence about a folder that is gone: the conversation can be read, and continued in a copy."""
    if record.cwd.is_dir():
        return ""
    from phoenix_tui.wiring.copies import describe_moved  # noqa: PLC0415 - seldom needed

    return describe_moved(record.cwd, record.id, headless=False)


def _at_a_glance(arguments: RunArguments, setup: Setup) -> ConversationRecord | None:
    """Read the conversation once from the file as it is, None where that does not settle it.

    Opening the whole store takes up to 0.2 s, and again as much after the screen opened: it happens here only to write,
    or to explain an error. A damaged file, one of another version and one that an unclean exit left half written are
    all left to it.
    """
    if arguments.fork:
        return None
    instance = Instance(setup.paths.locks)
    try:
        with closing(open_for_reading(setup.paths.database, BUSY_AT_OPENING)) as connection:
            if version_of(connection) != VERSION:
                return None
            if arguments.resume:
                found = find_conversations(connection, arguments.resume, instance)
            else:
                found = list_conversations(connection, ConversationQuery(cwd=setup.cwd, limit=1), instance)
            record = read_conversation(connection, found[0].id, instance) if len(found) == 1 else None
    except (sqlite3.Error, OSError, CodecError, StorageError):
        return None
    return None if record is None or _alters(record, _changes(arguments)) else record


async def _from_the_store(arguments: RunArguments, setup: Setup) -> tuple[str, str]:
    from phoenix_tui.wiring.installation import open_the_store  # noqa: PLC0415 - 20 ms that a glance does not need

    store = await open_the_store(setup.paths)
    try:
        source = await _find_conversation(store, arguments, setup)
        found, moved = source.id, ""
        if arguments.fork:
            from phoenix_tui.wiring.copies import place_of_copy  # noqa: PLC0415 - as above

            place = await asyncio.to_thread(place_of_copy, arguments, setup, source)
            found = (await store.library.fork(found, str(uuid.uuid4()), time.time(), place=place)).id
        elif (record := await store.conversation(found)) is not None:
            moved = await asyncio.to_thread(_describe_moved, record)
        return found, " ".join(filter(None, (moved, await _change(store, found, arguments))))
    finally:
        await end_quietly(store.close())


async def _find_conversation(store: Store, arguments: RunArguments, setup: Setup) -> ConversationSummary:
    if arguments.resume:
        from phoenix_tui.cli.finding import find_one  # noqa: PLC0415 - as above

        return await find_one(store, arguments.resume, partly=True)
    latest = await store.conversations(ConversationQuery(cwd=setup.cwd, limit=1))
    if not latest:
        raise CommandError(f"There is no conversation in {setup.cwd} yet; leave -c out to start one.")
    return latest[0]


def _changes(arguments: RunArguments) -> ConversationChanges:
    """Changes by flags to a conversation."""
    mode = PermissionMode(arguments.permission_mode) if arguments.permission_mode else None
    sandbox = SandboxMode(arguments.sandbox) if arguments.sandbox else None
    effort = Effort(arguments.effort) if arguments.effort else None
    return ConversationChanges(
        arguments.name, model=arguments.model, permission_mode=mode, sandbox=sandbox, effort=effort
    )


def _alters(record: ConversationRecord, changes: ConversationChanges) -> bool:
    """True when a value would change."""
    asked = ((changes.title, record.title), (changes.model, record.model), (changes.effort, record.effort))
    mode = changes.permission_mode
    chosen = changes.sandbox is not None and (changes.sandbox, True) != (record.sandbox, record.sandbox_required)
    renamed = any(new is not None and new != old for new, old in asked)
    return renamed or chosen or mode not in {None, record.permission_mode}


async def _change(store: Store, conversation_id: str, arguments: RunArguments) -> str:
    """Apply the flags that change a conversation; one that another process owns opens read-only, unchanged.

    Gives the sentence about a wider sandbox.
    """
    changes = _changes(arguments)
    if changes == ConversationChanges():
        return ""
    try:
        await store.take(conversation_id)
    except OwnedElsewhere:
        return ""
    before = await store.conversation(conversation_id)
    await store.change(conversation_id, changes, time.time())
    return describe_widened(before, changes) if before is not None else ""
