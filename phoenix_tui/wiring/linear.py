"""Starts the linear front end: the same services, without Textual."""

from __future__ import annotations

import os
import sys

from phoenix_tui.cli.arguments import RunArguments
from phoenix_tui.cli.faults import end_quietly
from phoenix_tui.cli.names import VERSION
from phoenix_tui.cli.output import write_line
from phoenix_tui.cli.setup import Setup
from phoenix_tui.lifecycle.launch import Launch
from phoenix_tui.lifecycle.stop_signals import BY_USER
from phoenix_tui.lifecycle.threads import run_loop
from phoenix_tui.lifecycle.watchdogs import MemoryLimit
from phoenix_tui.linear.app import LinearApp
from phoenix_tui.linear.terminal import LineTerminal
from phoenix_tui.models.choice import ModelChoice
from phoenix_tui.terminal.state import restore, say
from phoenix_tui.wiring.screen import choose_start_model, find_resumed_conversation, launch_of
from phoenix_tui.wiring.services import ServiceOpener
from tools.process.link import ZygoteLink, spawn_zygote


def run_linear(arguments: RunArguments, setup: Setup) -> int:
    """Talk in lines until it is left; returns the exit code.

    Raises:
        CommandError: the arguments are invalid.
        CannotOpen: the services cannot be opened.
    """
    restore()  # the screen's variables were set before the settings were read
    link = spawn_zygote(terminal=0)
    try:
        choice = choose_start_model(setup)
        conversation_id, wider = find_resumed_conversation(arguments, setup)
        launch = launch_of(arguments, setup, choice, conversation_id)
        write_line(f"Phoenix {VERSION}, screen reader mode (from {setup.settings.sources['screen_reader']}).")
        return run_loop(_talk(launch, setup, choice, link, wider))
    finally:
        link.close()


async def _talk(launch: Launch, setup: Setup, choice: ModelChoice, link: ZygoteLink, notice: str) -> int:
    notices = tuple(filter(None, (choice.sentence, notice)))
    opener = ServiceOpener(setup, os.environ, link, choice.reference, notices)
    services = await opener.open()
    terminal = LineTerminal(
        ascii_only=(sys.stdout.encoding or "").lower().replace("-", "") != "utf8" or os.environ.get("TERM") == "linux",
        rings=launch.notifications != "off",
    )
    app = LinearApp(services, launch, terminal, link, MemoryLimit.of(setup.settings))
    last = why = reason = ""
    try:
        code = await app.run()
        reason = "" if code else BY_USER
        last = app.last_conversation
    finally:
        await end_quietly(services.engine.close(reason))
        await end_quietly(opener.close(crashed=False))
        why = app.stop_watching()
    say(
        (f"{why}\n" if why else "") + (f"phoenix --screen-reader --resume {last} continues.\n" if last else ""),
        output=1,
    )
    return code
