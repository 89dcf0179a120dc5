"""Database, ids and process control of this installation, reports of waits, and the removal of old conversations and
events in slices in the background (SPEC UNI-31, SDK-04).
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from math import inf
from typing import TYPE_CHECKING, Final

from engine.ports import OwnedElsewhere, StorageError
from engine.ports.storage import PATIENCE, DatabaseWaits
from engine.store import BUSY_SECONDS, Store, StorePaths, open_ephemeral_store, open_store
from engine.store.opening import Remains
from phoenix_tui.cli.output import write_progress
from phoenix_tui.cli.setup import Setup
from phoenix_tui.config.paths import Paths
from phoenix_tui.text.server_text import WAITING, say_once
from tools.files.own_files import remove_parts
from tools.fresh_ids import fresh_id
from tools.process.start import Processes, ProcessSettings, start_processes

if TYPE_CHECKING:
    from engine.store.events import EventLog
    from engine.store.library import Library


async def open_the_store(
    paths: Paths, *, ephemeral: bool = False, patient: bool = False, waits: DatabaseWaits | None = None
) -> Store:
    """The store of this installation, or one in memory; `patient` and `waits` as in `open_backend`.

    Raises:
        StorageError: the database cannot be opened; the sentence names the fix.
    """
    if ephemeral:
        return await open_ephemeral_store()
    await asyncio.to_thread(remove_parts, dict.fromkeys((paths.config, paths.data, paths.state, paths.attachments)))
    remains = Remains(paths.outputs, paths.log_file.parent)
    places = StorePaths(paths.database, paths.attachments, paths.locks, paths.data / "backups", remains)
    return await open_store(places, patience=inf if patient else BUSY_SECONDS, waits=waits)


def waits_on_stderr(setup: Setup) -> DatabaseWaits:
    """Report the reason of a wait once on stderr; `--timeout` bounds each wait, too."""
    waits = DatabaseWaits()
    waits.patience = min(setup.settings.number("timeout") or PATIENCE, PATIENCE)
    waits.listen(say_once(write_progress, f"{WAITING} Ctrl+C cancels. ({setup.paths.database})"))
    return waits


class RandomIds:
    """UUID4 for every id."""

    def new(self) -> str:
        """A UUID4 as text."""
        return fresh_id()


def process_settings(setup: Setup, environment: Mapping[str, str]) -> ProcessSettings:
    """Settings of commands for this setup."""
    paths = setup.paths
    hidden = tuple(dict.fromkeys((paths.config, paths.data, paths.state)))
    return ProcessSettings(
        hidden=hidden, environment=environment, journals=paths.placeholders, taken_back=paths.taken_back
    )


@asynccontextmanager
async def command_processes(setup: Setup) -> AsyncGenerator[Processes]:
    """Process control for the time of a sub-command."""
    processes = await start_processes(process_settings(setup, os.environ))
    try:
        yield processes
    finally:
        await processes.close()


log = logging.getLogger(__name__)

FIRST: Final = 5.0
"""Seconds after the start, which belongs to the user."""
REST: Final = 0.2
"""Seconds between two conversations."""
DAY: Final = 86_400.0


def cutoff(days: float, now: float) -> float | None:
    """The time before which removed conversations are deleted; None where everything is kept."""
    return now - days * DAY if days > 0 else None


async def remove_expired(library: Library, days: float) -> None:
    """Delete one conversation after the other; those of other processes, or open here, stay."""
    before = cutoff(days, time.time())
    if before is None:
        return
    await asyncio.sleep(FIRST)
    removed = 0
    try:
        for conversation_id in await library.list_expired(before):
            try:
                removed += await library.remove_expired(conversation_id, before)
            except OwnedElsewhere:
                continue
            await asyncio.sleep(REST)
    except StorageError as error:
        log.warning("expired conversations left for the next start: %s", error)
    if removed:
        log.info("permanently deleted %d conversations archived or deleted more than %g days ago", removed, days)


FIRST_EVENTS: Final = 8.0
"""Seconds after the start, which belongs to the user."""
SLICE: Final = 500
"""Events of one transaction: about 10 ms."""
PAUSE: Final = 0.05
"""Seconds between two slices, in which runs are stored."""
AGAIN: Final = 6 * 3_600.0
"""Seconds between two removals in a Phoenix that stays open."""


async def remove_old_events(events: EventLog, days: float) -> None:
    """Remove what is too old now, and again later, until cancelled; keeps all for 0 days."""
    if days <= 0:
        return
    await asyncio.sleep(FIRST_EVENTS)
    while True:
        await remove_now(events, days)
        await asyncio.sleep(AGAIN)


async def remove_now(events: EventLog, days: float, *, most: int = sys.maxsize) -> int:
    """Remove what is too old, `most` slices of it; returns how many events went.

    A failing store is left for the next time.
    """
    before, removed = cutoff(days, time.time()), 0
    try:
        while before is not None and most > 0 and (gone := await events.remove_older(before, SLICE)):
            removed, most = removed + gone, most - 1
            await asyncio.sleep(PAUSE)
    except StorageError as error:
        log.warning("old events left for the next time: %s", error)
    if removed:
        log.info("removed %d events older than %g days", removed, days)
    return removed
