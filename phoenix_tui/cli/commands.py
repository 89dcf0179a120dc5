"""Runs a sub-command; `phoenix serve` is here."""

from __future__ import annotations

import os
import secrets
import socket
from argparse import Namespace
from collections.abc import Awaitable, Callable
from pathlib import Path

from phoenix_tui.cli.arguments import CommandArguments, command_arguments
from phoenix_tui.cli.exits import CommandError, Exit
from phoenix_tui.cli.names import SERVED
from phoenix_tui.cli.output import write_json_line, write_line, write_progress
from phoenix_tui.cli.setup import Setup, prepare_command
from phoenix_tui.config.paths import find_paths
from tools.process.hardening import harden

# ruff: noqa: PLC0415 - one command, one import


def run_command(parsed: Namespace) -> int:
    """Run the sub-command.

    Raises:
        CommandError: it cannot be done.
    """
    harden(debuggable=parsed.allow_debugger)
    if parsed.command == "acp":
        from phoenix_tui.wiring.acp import run_acp

        return run_acp(parsed)
    if parsed.command == "review":
        from phoenix_tui.wiring.review import run_review

        return run_review(parsed)
    arguments = command_arguments(parsed)
    if arguments.command == "config":
        from phoenix_tui.cli.files_commands import run_config

        return run_config(arguments, find_paths(os.environ), os.environ)
    if arguments.command == "memory":
        from phoenix_tui.cli.files_commands import run_memory

        return run_memory(arguments, find_paths(os.environ))
    if arguments.command == "mcp":
        return _run_mcp(arguments)
    if arguments.command == "serve":
        return run_serve(arguments)
    from phoenix_tui.lifecycle.threads import run_loop

    if arguments.command == "update":
        from phoenix_tui.wiring.update_watch import update

        return run_loop(update(prepare_command(os.environ), os.environ, as_json=arguments.json))
    return run_loop(_run(arguments))


def _run_mcp(arguments: CommandArguments) -> Exit:
    if arguments.action in {"add", "add-json", "remove"}:
        from phoenix_tui.cli.mcp_command import change_servers

        return change_servers(arguments, find_paths(os.environ).config_file, Path.cwd())
    from phoenix_tui.lifecycle.threads import run_loop
    from phoenix_tui.wiring.mcp_commands import mcp

    return run_loop(mcp(prepare_command(os.environ), arguments))


async def _run(arguments: CommandArguments) -> Exit:
    return await _command(arguments.command)(prepare_command(os.environ), arguments)


def _command(name: str) -> Callable[[Setup, CommandArguments], Awaitable[Exit]]:
    """The command, without the code of any other."""
    if name in {"model", "models"}:
        from phoenix_tui.wiring import model_commands

        return model_commands.model if name == "model" else model_commands.models
    if name == "doctor":
        from phoenix_tui.wiring.doctor import doctor

        return doctor
    from phoenix_tui.wiring import commands

    return {
        "conversations": commands.conversations,
        "runs": commands.runs,
        "events": commands.events,
        "tasks": commands.tasks,
        "trace": commands.trace,
        "stats": commands.stats,
    }[name]


def run_serve(arguments: CommandArguments) -> Exit:
    """Serve until it is ended.

    Raises:
        CommandError: the extra is not installed, or the address is not free.
    """
    try:
        from phoenix_tui.terminal.serving.doors import PageAddress, is_loopback
        from phoenix_tui.terminal.serving.server import serve
    except ImportError as error:
        missing = "`phoenix serve` needs textual-serve; install it with `pip install 'phoenix-tui[serve]'`."
        raise CommandError(missing) from error
    listener = _listen(arguments.host, arguments.port)
    host, port = arguments.host, listener.getsockname()[1]
    address = PageAddress(host, port, secrets.token_urlsafe(24), arguments.public_url)

    def announce() -> None:
        if arguments.json:
            write_json_line({"url": address.invitation})
            return
        write_line(address.invitation)
        write_progress("Each tab runs its own Phoenix. Ctrl+C stops all of them.")

    if not is_loopback(host):
        write_progress(
            f"Warning: anyone who can reach {host}:{port} and knows this address can run commands as you, and the "
            "traffic is not encrypted. An SSH tunnel to a loopback address is safer."
        )
    os.environ[SERVED] = "1"
    serve(arguments.rest, address, listener, announce)
    return Exit.OK


def _listen(host: str, port: int) -> socket.socket:
    """A socket that listens there. Raises CommandError."""
    try:
        return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as error:
        raise CommandError(f"{host}:{port} cannot be used ({error.strerror}); choose another with --port.") from error
