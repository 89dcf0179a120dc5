"""Runs a sub-command."""

from __future__ import annotations

import asyncio
import os
from argparse import Namespace
from pathlib import Path

from phoenix_tui.cli.arguments import CommandArguments, command_arguments
from phoenix_tui.cli.exits import CommandError, Exit
from phoenix_tui.cli.setup import prepare_command
from phoenix_tui.config.paths import find_paths
from tools.process.hardening import harden


def run_command(parsed: Namespace) -> int:
    """Run the sub-command.

    Raises:
        CommandError: it cannot be done.
    """
    harden(debuggable=parsed.allow_debugger)
    if parsed.command == "acp":
        from phoenix_tui.wiring.acp import run_acp  # noqa: PLC0415 - one command, one import

        return run_acp(parsed)
    arguments = command_arguments(parsed)
    if arguments.command == "config":
        from phoenix_tui.cli.config_command import run_config  # noqa: PLC0415 - one command, one import

        return run_config(arguments, find_paths(os.environ), os.environ)
    if arguments.command == "memory":
        from phoenix_tui.cli.memory_command import run_memory  # noqa: PLC0415 - as above

        return run_memory(arguments, find_paths(os.environ))
    if arguments.command == "mcp":
        return _run_mcp(arguments)
    if arguments.command == "serve":
        from phoenix_tui.cli.serve_command import run_serve  # noqa: PLC0415 - as above

        return run_serve(arguments)
    if arguments.command == "update":
        from phoenix_tui.wiring.update_watch import update  # noqa: PLC0415 - as above

        return asyncio.run(update(prepare_command(os.environ), os.environ, as_json=arguments.json))
    return asyncio.run(_run(arguments))


def _run_mcp(arguments: CommandArguments) -> Exit:
    if arguments.action in {"add", "add-json", "remove"}:
        from phoenix_tui.cli.mcp_command import change_servers  # noqa: PLC0415 - one command, one import

        return change_servers(arguments, find_paths(os.environ).config_file, Path.cwd())
    from phoenix_tui.wiring.mcp_commands import mcp  # noqa: PLC0415 - as above

    return asyncio.run(mcp(prepare_command(os.environ), arguments))


async def _run(arguments: CommandArguments) -> Exit:
    from engine.ports import StorageError  # noqa: PLC0415 - not for `config`
    from phoenix_tui.wiring import commands  # noqa: PLC0415 - not for `config`

    setup = prepare_command(os.environ)
    try:
        match arguments.command:
            case "conversations":
                return await commands.conversations(setup, arguments)
            case "runs":
                return await commands.runs(setup, arguments)
            case "events":
                return await commands.events(setup, arguments)
            case "models":
                return await commands.models(setup, arguments)
            case "trace":
                return await commands.trace(setup, arguments)
            case "model":
                return await commands.model(setup, arguments)
            case "stats":
                return await commands.stats(setup, arguments)
            case "tasks":
                return await commands.tasks(setup, arguments)
            case _:
                return await commands.doctor(setup, arguments)
    except StorageError as error:
        raise CommandError(str(error), Exit.FAILED) from error
