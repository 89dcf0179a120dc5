"""From arguments to what they ask for, and from every failure to one sentence and an exit code."""

from __future__ import annotations

import os
import sys

from phoenix_tui.cli.exits import CommandError, Exit
from phoenix_tui.cli.names import COMMANDS, VERSION
from phoenix_tui.cli.parser import command_parser, run_parser


def run(argv: list[str]) -> int:
    """Do what `argv` asks and give the exit code; a traceback appears only with `--debug`."""
    try:
        return _dispatch(argv)
    except CommandError as error:
        if "--debug" in argv:
            raise
        from tools.clean import reveal_name  # noqa: PLC0415 - as below

        sys.stderr.write(f"phoenix: {reveal_name(error.sentence)}\n")  # it may quote a name or a file
        sys.stderr.writelines(f"  {reveal_name(line)}\n" for line in error.below)
        return error.code
    except BrokenPipeError:
        _forget_stdout()
        return Exit.FAILED
    except KeyboardInterrupt:
        return Exit.INTERRUPTED
    except Exception as error:  # the app edge: a person gets a sentence, the log the traceback
        if "--debug" in argv:
            raise
        return _say_unexpected(error)


def _dispatch(argv: list[str]) -> int:
    if argv and argv[0] in COMMANDS:
        parsed = command_parser().parse_args(argv)
        from phoenix_tui.cli.commands import run_command  # noqa: PLC0415 - `--help` needs none of it

        return run_command(parsed)
    parsed = run_parser().parse_args(argv)
    if parsed.version:
        sys.stdout.write(f"phoenix {VERSION}\n")
        return Exit.OK
    if parsed.reset_terminal:
        from phoenix_tui.terminal_state import reset  # noqa: PLC0415 - `--help` needs none of it

        reset()
        return Exit.OK
    from phoenix_tui.cli.start import start  # noqa: PLC0415 - `--help` needs none of it

    return start(parsed)


def _say_unexpected(error: Exception) -> int:
    import logging  # noqa: PLC0415 - 10 ms that `--help` does not need

    if logging.getLogger().handlers:  # without any, the traceback would go to the terminal
        logging.getLogger("phoenix").error("unexpected failure", exc_info=error)
    sys.stderr.write(
        f"phoenix: Something went wrong inside Phoenix ({type(error).__name__}); "
        "--debug shows where, and the log in `phoenix doctor`'s folder keeps it.\n"
    )
    return Exit.FAILED


def _forget_stdout() -> None:
    """Point stdout at nothing, so that the interpreter's last flush does not fail again."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, sys.stdout.fileno())
    os.close(nothing)
