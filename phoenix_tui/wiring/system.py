"""Identifiers and process control of this installation."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager

from phoenix_tui.cli.setup import Setup
from tools.fresh_ids import fresh_id
from tools.process.start import Processes, ProcessSettings, start_processes


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
