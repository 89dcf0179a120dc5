"""Dispatch of arguments to their command, and conversion of every failure to one sentence and an exit code."""

from __future__ import annotations

from phoenix_tui.cli.exits import CommandError, Exit, StdoutLost
from phoenix_tui.cli.names import COMMANDS, VERSION, wants_control
from phoenix_tui.cli.parser import command_parser, run_parser
from phoenix_tui.lifecycle.process_start import forget, lacking, tell


def run(argv: list[str]) -> int:
    """Run the command line `argv` and return the exit code; a traceback appears only with `--debug`."""
    try:
        return _dispatch(argv)
    except StdoutLost as error:
        tell(f"phoenix: Stdout cannot be written ({error.strerror}); the output is lost.\n")
        forget(1)
        return Exit.FAILED
    except BrokenPipeError:
        forget(1)
        return Exit.FAILED
    except KeyboardInterrupt:
        return Exit.INTERRUPTED
    except Exception as error:  # the app edge: a person gets a sentence, the log the traceback
        if "--debug" in argv:
            raise
        return _say(error)


def _dispatch(argv: list[str]) -> int:
    if "stdout" in lacking:
        raise CommandError("Stdout is closed, so the answer cannot be printed; use `> /dev/null` to discard it.")
    if argv and argv[0] in COMMANDS:
        parsed = command_parser().parse_args(argv)
        if parsed.command in {"completion", "man"}:
            from phoenix_tui.cli.completion.scripts import run_completion  # noqa: PLC0415 - `--help` needs none of it

            return run_completion(parsed)
        from phoenix_tui.cli.commands import run_command  # noqa: PLC0415 - `--help` needs none of it

        return run_command(parsed)
    if wants_control(argv):
        from phoenix_tui.cli.control.start import start_control  # noqa: PLC0415 - `--help` needs none of it

        return start_control(argv)
    parsed = run_parser().parse_args(argv)
    if parsed.version:
        from phoenix_tui.cli.output import write_line  # noqa: PLC0415 - `--help` needs none of it

        write_line(f"phoenix {VERSION}")
        return Exit.OK
    if parsed.reset_terminal:
        from phoenix_tui.terminal.state import reset  # noqa: PLC0415 - `--help` needs none of it

        reset()
        return Exit.OK
    from phoenix_tui.cli.start import start  # noqa: PLC0415 - `--help` needs none of it

    return start(parsed)


def _say(error: Exception) -> int:
    from tools.clean import reveal_name  # noqa: PLC0415 - `--help` needs none of it

    if not isinstance(error, CommandError):
        from phoenix_tui.cli.faults import fault_of  # noqa: PLC0415 - the engine, not for a wrong command line

        error = fault_of(error)
    below = "".join(f"  {reveal_name(line)}\n" for line in error.below)
    tell(f"phoenix: {reveal_name(error.sentence)}\n{below}")  # it may quote a name or a file
    return error.code
