"""One change of one file: read, checked against the ledger, rewritten whole, remembered."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from typing import TypeVar

from msgspec import Struct

from tools.contract import DiffDisplay, ToolContext
from tools.failure import ToolFailure
from tools.files.atomic import replace_file
from tools.files.content import TextContent, is_binary
from tools.files.diff import diff_display
from tools.files.ledger import ReadLedger, Version
from tools.files.location import Location
from tools.files.opening import opened_file

MOST_EDITED = 16 * 1024 * 1024
"""Bytes; a larger file is nothing to rewrite through a conversation."""

Change = Callable[[TextContent | None], str]
"""Function from the old content to the new text; None means a file that does not exist. May raise ToolFailure."""

_T = TypeVar("_T")


class Existing(Struct, frozen=True):
    """A file as it is now."""

    content: TextContent
    version: Version


def read_existing(location: Location) -> Existing | None:
    """The text file at `location`, None when there is none.

    Raises:
        OSError: it cannot be read.
        ToolFailure: it is no text file, or too large to edit.
    """
    try:
        with opened_file(location) as stream:
            state = os.fstat(stream.fileno())
            if state.st_size > MOST_EDITED:
                raise ToolFailure(f"{location.shown} is too large to edit ({state.st_size:,} bytes); use bash.")
            raw = stream.read()
    except FileNotFoundError:
        return None
    if is_binary(raw):
        raise ToolFailure(f"{location.shown} is a binary file ({len(raw):,} bytes); it can only be changed with bash.")
    return Existing(TextContent.parse(raw), Version.of(state, raw))


def preview(location: Location, change: Change) -> DiffDisplay:
    """Return the diff of `change` without applying it.

    Raises:
        OSError: the file cannot be read.
        ToolFailure: the change does not apply.
    """
    existing = read_existing(location)
    return _difference(location, existing, change(existing.content if existing else None))


async def rewrite(location: Location, context: ToolContext, ledger: ReadLedger, change: Change) -> DiffDisplay:
    """Apply `change` under the file's lock; a cancelled call ends only once the file is whole again.

    Raises:
        OSError: nothing changed.
        ToolFailure: not read, changed since, or the change does not apply; nothing changed.
    """
    async with ledger.lock(location.path):
        return await _to_the_end(lambda: _rewrite(location, context, ledger, change))


def _rewrite(location: Location, context: ToolContext, ledger: ReadLedger, change: Change) -> DiffDisplay:
    existing = read_existing(location)
    if existing is not None:
        ledger.check(context.conversation_id, location.path, existing.version, location.shown)
    text = change(existing.content if existing else None)
    difference = _difference(location, existing, text)
    if existing is None or text != existing.content.text:
        manner = existing.content if existing else TextContent("")
        raw = manner.encoded(text)
        version = Version.of(replace_file(location, raw), raw)
        ledger.note_write(context.conversation_id, location.path, version, context.actor)
    return difference


def _difference(location: Location, existing: Existing | None, text: str) -> DiffDisplay:
    old = existing.content.text if existing else ""
    return diff_display(location.shown, old, text, created=existing is None)


async def _to_the_end(work: Callable[[], _T]) -> _T:
    """Run `work` in a thread; cancellation waits for it, since a thread cannot be stopped."""
    running = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        await asyncio.wait([running])
        raise
