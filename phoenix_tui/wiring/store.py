"""The database of this installation, and the reports of waits for it."""

from __future__ import annotations

import asyncio
from math import inf

from engine.ports.storage import PATIENCE, DatabaseWaits
from engine.store import BUSY_SECONDS, Store, StorePaths, open_ephemeral_store, open_store
from engine.store.opening import Remains
from phoenix_tui.cli.output import write_progress
from phoenix_tui.cli.setup import Setup
from phoenix_tui.config.paths import Paths
from phoenix_tui.text.server_text import WAITING, say_once
from tools.files.own_files import remove_parts


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
