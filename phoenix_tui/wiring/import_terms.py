"""The settings of a conversation that is imported."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from engine.ports import ImportTerms, ProviderError
from engine.records import PermissionMode
from phoenix_tui.cli.arguments import CommandArguments
from phoenix_tui.cli.exits import CommandError, Exit
from phoenix_tui.cli.setup import Setup, check_folder
from phoenix_tui.wiring.backend import (
    model_files,
)
from phoenix_tui.wiring.choice import choose
from phoenix_tui.wiring.processes import command_processes
from phoenix_tui.wiring.providers import ProviderRegistry, embedded_factory
from tools.contract import SandboxMode


async def import_terms(setup: Setup, arguments: CommandArguments) -> ImportTerms:
    """The requested folder, else this one, and the settings of a new conversation of this user."""
    cwd = await asyncio.to_thread(check_folder, Path(arguments.cwd or "."))
    mode = PermissionMode(setup.settings.text("permission_mode") or PermissionMode.ASK)
    async with command_processes(setup) as processes:
        files = model_files(setup.paths, processes.runner, os.environ)
        registry = ProviderRegistry(
            setup.settings, setup.credentials, os.environ, embedded_factory(files, processes.runner)
        )
        try:
            reference = (await choose(setup, os.environ, files, registry)).reference
        except ProviderError as error:
            raise CommandError(error.message, Exit.FAILED) from error
        finally:
            await registry.close()
    return ImportTerms(cwd, reference, mode, SandboxMode(setup.settings.text("sandbox")))
