"""Opens the services of `phoenix models`, `phoenix model` and `phoenix import`."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from engine.ports import ImportTerms, ProviderError
from engine.records import PermissionMode
from phoenix_tui.cli.arguments import CommandArguments
from phoenix_tui.cli.exits import CommandError, Exit
from phoenix_tui.cli.model_commands import ModelCommands, show_models
from phoenix_tui.cli.setup import Setup, check_folder
from phoenix_tui.models.offers import LISTS_FILE, KeptLists, ProviderState
from phoenix_tui.wiring.backend import model_files
from phoenix_tui.wiring.boards import DefaultModel
from phoenix_tui.wiring.installation import command_processes
from phoenix_tui.wiring.models import choose
from phoenix_tui.wiring.providers import ProviderRegistry, make_embedded_factory
from tools.contract import SandboxMode


async def models(setup: Setup, arguments: CommandArguments) -> Exit:
    """`phoenix models`."""
    async with command_processes(setup) as processes:
        files = model_files(setup.paths, processes.runner, os.environ)
        embedded = make_embedded_factory(files, processes.runner)
        lists = KeptLists(setup.paths.state / LISTS_FILE)
        registry = ProviderRegistry(setup.settings, setup.credentials, os.environ, embedded, lists=lists)
        try:
            only = arguments.provider
            if only and only not in registry.names():
                raise CommandError(f"There is no provider '{only}'. The providers are {', '.join(registry.names())}.")
            default = (await choose(setup, os.environ, files, registry)).reference
            offers = await registry.offers(only, refresh=arguments.refresh)
            if only and (why := offers[0]).state is not ProviderState.READY:
                raise CommandError(f"{only}: {why.state.value}: {why.words}", Exit.FAILED)
            return show_models([one for each in offers for one in each.models], default, as_json=arguments.json)
        except ProviderError as error:
            raise CommandError(error.message, Exit.FAILED) from error
        finally:
            await registry.close()


async def model(setup: Setup, arguments: CommandArguments) -> Exit:
    """`phoenix model ...`."""
    async with command_processes(setup) as processes:
        files = model_files(setup.paths, processes.runner, os.environ)
        return await ModelCommands(files, arguments, DefaultModel(setup.paths.config_file)).run()


async def import_terms(setup: Setup, arguments: CommandArguments) -> ImportTerms:
    """The requested folder, else this one, and the settings of a new conversation of this user."""
    cwd = await asyncio.to_thread(check_folder, Path(arguments.cwd or "."))
    mode = PermissionMode(setup.settings.text("permission_mode") or PermissionMode.ASK)
    async with command_processes(setup) as processes:
        files = model_files(setup.paths, processes.runner, os.environ)
        registry = ProviderRegistry(
            setup.settings, setup.credentials, os.environ, make_embedded_factory(files, processes.runner)
        )
        try:
            reference = (await choose(setup, os.environ, files, registry)).reference
        except ProviderError as error:
            raise CommandError(error.message, Exit.FAILED) from error
        finally:
            await registry.close()
    return ImportTerms(cwd, reference, mode, SandboxMode(setup.settings.text("sandbox")))
