"""Looks once a day for a newer Phoenix while the screen is idle, and says so when it closes."""

from __future__ import annotations

import asyncio
import logging
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from msgspec import Struct

from engine.engine import Engine
from engine.machine.states import is_busy
from phoenix_tui.cli.exits import CommandError, Exit
from phoenix_tui.cli.names import VERSION
from phoenix_tui.cli.output import write_json, write_line
from phoenix_tui.cli.setup import Setup
from phoenix_tui.config.settings import Settings
from phoenix_tui.features.service_interfaces import Finding, Health
from phoenix_tui.updates.update_check import (
    ConfigurationPlaces,
    Installation,
    PackageIndex,
    UpdateCheckFailed,
    ask_index,
    claim,
    find_index,
    find_installation,
    find_opt_out,
    newer_sentence,
    read_known_release,
)

log = logging.getLogger(__name__)

AFTER: Final = 30.0
"""Seconds after the start."""
TOPIC: Final = "updates"


class UpdateSource(Struct, frozen=True):
    """Installer of Phoenix, and the index that is asked."""

    installation: Installation
    index: PackageIndex

    @property
    def why_not(self) -> str:
        """Reason why there is nothing to ask; empty where there is."""
        return self.installation.why_not or self.index.why_not


def update_source(settings: Settings, environment: Mapping[str, str]) -> UpdateSource:
    """Read the metadata of the installation and the configuration of pip and uv; 20 ms, for a thread."""
    prefix = Path(sys.prefix)
    installation = find_installation(prefix)
    places = ConfigurationPlaces(Path.home(), prefix)
    index = find_index(settings.text("update_index"), environment, places, uv=installation.by_uv)
    return UpdateSource(installation, index)


async def watch_for_update(setup: Setup, environment: Mapping[str, str], engine: Engine, after: float = AFTER) -> None:
    """Ask the index once nothing runs, unless it was asked within a day; a failure goes to the log alone."""
    if find_opt_out(environment) or setup.ephemeral:
        return
    await asyncio.sleep(after)
    idle = asyncio.Event()

    def look(_: object = None) -> None:
        if not any(is_busy(one.state) for one in engine.live()):
            idle.set()

    stop = engine.watch(look)
    look()
    try:
        await idle.wait()
    finally:
        stop()
    source = await asyncio.to_thread(update_source, setup.settings, environment)
    now = time.time()
    try:
        if not source.why_not and await asyncio.to_thread(claim, setup.paths.state, now):
            await ask_index(setup.paths.state, source.index, now)
    except (UpdateCheckFailed, OSError) as error:
        log.info("no look for a newer Phoenix: %s", error)


def update_notice(setup: Setup, environment: Mapping[str, str]) -> str:
    """The line after the screen has closed about a newer release that is known; empty without one."""
    if not setup.settings.flag("update_check") or find_opt_out(environment) or setup.ephemeral:
        return ""
    known = read_known_release(setup.paths.state)
    if not newer_sentence(known.newest, Installation("", "any")):
        return ""
    return newer_sentence(known.newest, update_source(setup.settings, environment).installation)


def update_findings(settings: Settings, environment: Mapping[str, str]) -> list[Finding]:
    """Describe the look for a newer Phoenix: switched off, impossible, or where."""
    if not settings.flag("update_check"):
        return [Finding(TOPIC, Health.OK, "no look for a newer Phoenix; `phoenix update` looks once")]
    if variable := find_opt_out(environment):
        return [Finding(TOPIC, Health.OK, f"no look for a newer Phoenix: {variable} is set")]
    source = update_source(settings, environment)
    if source.why_not:
        return [Finding(TOPIC, Health.NOTE, f"no look for a newer Phoenix: {source.why_not}")]
    asked = f"{source.index.url}, by {source.index.source}"
    return [Finding(TOPIC, Health.OK, f"once a day at {asked}; installed by {source.installation.installer}")]


async def update(setup: Setup, environment: Mapping[str, str], *, as_json: bool) -> Exit:
    """`phoenix update`: ask the index now, and print the command that installs what is newer.

    Raises:
        CommandError: there is no index, or it cannot be asked.
    """
    source = await asyncio.to_thread(update_source, setup.settings, environment)
    if source.why_not:
        raise CommandError(f"{source.why_not[:1].upper()}{source.why_not[1:]}.", Exit.FAILED)
    try:
        newest = await ask_index(setup.paths.state, source.index, time.time())
    except UpdateCheckFailed as error:
        raise CommandError(str(error), Exit.RETRYABLE) from error
    except OSError as error:
        raise CommandError(f"{error.filename or setup.paths.state}: {error.strerror}.", Exit.FAILED) from error
    if not newest:
        raise CommandError("The package index lists no release of Phoenix.", Exit.FAILED)
    newer = newer_sentence(newest, source.installation)
    if as_json:
        command = source.installation.command if newer else None
        write_json({"version": VERSION, "newest": newest, "command": command})
    else:
        write_line(newer or f"There is no release newer than this one, Phoenix {VERSION}.")
    return Exit.OK
