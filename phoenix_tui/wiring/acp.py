"""Opens everything for `phoenix acp`: one process serves the sessions of one editor."""

from __future__ import annotations

import os
from argparse import Namespace
from typing import Final

from msgspec.structs import replace

from engine.permissions.rules import RuleBook
from phoenix_tui.acp.services import UnsavedTexts
from phoenix_tui.cli.arguments import RunArguments, run_arguments
from phoenix_tui.cli.exits import CommandError
from phoenix_tui.cli.faults import end_quietly
from phoenix_tui.cli.logs import start_log
from phoenix_tui.cli.parser import run_parser
from phoenix_tui.cli.setup import Setup, prepare_command
from phoenix_tui.config.rules import SessionFolders
from phoenix_tui.lifecycle.threads import run_loop
from phoenix_tui.wiring.acp_services import AcpServices
from phoenix_tui.wiring.backend import Outside, open_backend

MISSING: Final = "`phoenix acp` needs agent-client-protocol; install it with `pip install 'phoenix-tui[acp]'`."
FLAGS: Final = ("model", "effort", "profile", "permission_mode", "sandbox")
"""Flags of `phoenix acp` that set options of new conversations."""


def run_acp(parsed: Namespace) -> int:
    """Serve an editor over stdin and stdout.

    Raises:
        CommandError: the extra is not installed, or a setting is wrong.
    """
    reading, writing = _take_streams()
    setup = prepare_command(os.environ)
    start_log(setup.paths.log_file, setup.credentials.secrets(), debug=parsed.debug)
    arguments = acp_arguments(parsed)
    try:
        from phoenix_tui.acp.quick_schema import load_schema  # noqa: PLC0415 - an extra, imported only here

        load_schema()
        from phoenix_tui.acp.server import serve  # noqa: PLC0415 - as above
    except ImportError as error:
        raise CommandError(MISSING) from error

    unsaved = UnsavedTexts()

    async def open_outside() -> AcpServices:
        return await open_services(setup, arguments, Outside(hooks=(unsaved,)))

    return run_loop(serve(reading, writing, open_outside, unsaved))


def _take_streams() -> tuple[int, int]:
    """Keep stdin and stdout for the protocol: what anything else prints goes to stderr, and nothing else reads."""
    reading, writing = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return reading, writing


def acp_arguments(parsed: Namespace) -> RunArguments:
    """The flags as those of a run without a screen."""
    given = ["-p"]
    for name in FLAGS:
        if (value := getattr(parsed, name)) is not None:
            given += [f"--{name.replace('_', '-')}", value]
    return run_arguments(run_parser().parse_args([*given, *(["--trust"] if parsed.trust else [])]))


async def open_services(setup: Setup, arguments: RunArguments, outside: Outside) -> AcpServices:
    """Open the engine. What it raises `fault_of` knows."""
    layers: list[SessionFolders] = []

    def over(book: RuleBook) -> RuleBook:
        layers.append(SessionFolders(book))
        return layers[-1]

    backend = await open_backend(setup, os.environ, outside=replace(outside, rules_over=over))
    try:
        await backend.engine.start()
    except BaseException:
        await end_quietly(backend.close())
        raise
    return AcpServices(setup, arguments, backend, layers[-1])
