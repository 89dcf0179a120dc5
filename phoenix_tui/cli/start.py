"""Runs Phoenix itself: with a screen, or without one."""

from __future__ import annotations

import os
import sys
from argparse import Namespace

from msgspec.structs import replace

from phoenix_tui.cli.arguments import RunArguments, run_arguments
from phoenix_tui.cli.exits import CommandError, Exit
from phoenix_tui.cli.names import SERVED
from phoenix_tui.cli.setup import Setup, prepare
from phoenix_tui.config.load import DUMB, LINES
from phoenix_tui.config.trust import Trust, TrustFile
from tools.process.hardening import harden


def start(parsed: Namespace) -> int:
    """Run the action of the arguments and return the exit code.

    Raises:
        CommandError: it cannot be done.
    """
    harden(debuggable=parsed.allow_debugger)
    arguments = run_arguments(parsed)
    on_terminal = sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty()
    served = SERVED in os.environ
    notes: tuple[str, ...] = ()
    if arguments.worktree is not None:
        from phoenix_tui.wiring.copies import in_worktree  # noqa: PLC0415 - only with the flag

        arguments, notes = in_worktree(arguments)
    setup = prepare(arguments, os.environ)
    in_lines = setup.settings.flag(LINES) and (on_terminal or setup.settings.sources[LINES] != DUMB)
    if not (arguments.headless or on_terminal or in_lines or served):
        raise CommandError("Phoenix needs a terminal on stdin and stdout; `phoenix -p PROMPT` runs without one.")
    if not arguments.headless and on_terminal and setup.trust.trust in {Trust.UNKNOWN, Trust.CHANGED}:
        setup = _after_answer(arguments, setup)
    if notes:
        setup = replace(setup, settings=replace(setup.settings, notices=(*setup.settings.notices, *notes)))
    if arguments.headless:
        return _without_screen(arguments, setup)
    if in_lines:
        from phoenix_tui.wiring.linear import run_linear  # noqa: PLC0415 - the engine, not for a headless run

        return run_linear(arguments, setup)
    from phoenix_tui.wiring.screen import run_screen  # noqa: PLC0415 - Textual, not for a headless run

    return run_screen(arguments, setup)


def _after_answer(arguments: RunArguments, setup: Setup) -> Setup:
    """Ask whether the folder's own files count, once; then read everything again by the answer."""
    from phoenix_tui.cli.trust_question import ask_about_both  # noqa: PLC0415 - rare
    from phoenix_tui.wiring.boards import project_sources  # noqa: PLC0415 - as above

    sources = project_sources(setup)
    try:
        ask_about_both(TrustFile(setup.paths.trust_file), sources, setup.project, setup.trust)
    except OSError as error:
        where = setup.paths.trust_file
        reason = f"{where} cannot be written: {error.strerror or error}"
        raise CommandError(f"{reason}; choose a writable folder with PHOENIX_HOME.") from error
    return replace(prepare(arguments, os.environ), sources=sources)


def _without_screen(arguments: RunArguments, setup: Setup) -> Exit:
    from phoenix_tui.cli.headless import read_images, read_prompt  # noqa: PLC0415 - not before a screen
    from phoenix_tui.cli.logs import start_log  # noqa: PLC0415 - a screen starts its log after the first frame
    from phoenix_tui.cli.output import write_progress  # noqa: PLC0415 - not before a screen
    from phoenix_tui.lifecycle.threads import run_loop  # noqa: PLC0415 - asyncio, 30 ms, not for a wrong command line
    from phoenix_tui.wiring.headless import run_headless  # noqa: PLC0415 - not before a screen

    start_log(setup.paths.log_file, setup.credentials.secrets(), debug=setup.settings.flag("debug"))
    images = read_images(arguments.images)
    prompt = read_prompt(arguments.prompt, len(images))
    for notice in setup.notices():
        write_progress(notice)
    return run_loop(run_headless(arguments, setup, prompt, images))
