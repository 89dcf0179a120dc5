"""The program's entry: the terminal first, then the arguments, then whatever they ask for."""

import sys

from phoenix_tui.lifecycle.process_start import fill_in, lacking, leave_out_working_directory

leave_out_working_directory()

from phoenix_tui.cli.names import COMMANDS, LOOK_UP, VERSION, wants_control  # noqa: E402 - nothing is imported before the folder is left out

TYPE_CHECKING = False  # importing typing would cost `--version` more than all the rest
if TYPE_CHECKING:
    from collections.abc import Sequence

WITHOUT_SCREEN = ("-p", "--print", "--help", "-h", "--version", "--screen-reader", "--reset-terminal")
COLLECTOR_THRESHOLDS = (100_000, 10, 50)
"""Python itself collects a hundred times while the 90,000 objects of `phoenix -p` load: a tenth of its time."""


def main(argv: "Sequence[str] | None" = None) -> int:
    """Run Phoenix and give the exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    fill_in()
    if arguments == ["--version"] and _tell_version():
        return 0
    if len(arguments) == 2 and arguments[0] == LOOK_UP:
        return _print_values(arguments[1])
    import atexit  # noqa: PLC0415 - not for `--version`
    import gc  # noqa: PLC0415 - as above
    import os  # noqa: PLC0415 - as above

    from phoenix_tui.terminal.size import forget_nonsense  # noqa: PLC0415 - as above

    gc.set_threshold(*COLLECTOR_THRESHOLDS)
    atexit.register(gc.freeze)  # a fifth of `phoenix -p`: Python collects what is loaded three times as it ends
    forget_nonsense(os.environ)
    if _opens_screen(arguments) and sys.stdin is not None and sys.stdin.isatty():
        _prepare_screen()
    from phoenix_tui.cli.entry import run  # noqa: PLC0415 - the terminal is raw before anything else loads

    code = run(arguments)
    if _opens_screen(arguments):
        from phoenix_tui.terminal.state import leave  # noqa: PLC0415 - loaded already

        leave(code)
    if "phoenix_tui.lifecycle.threads" in sys.modules:
        from phoenix_tui.lifecycle.threads import leave_busy_threads  # noqa: PLC0415 - loaded already

        leave_busy_threads(code)
    return code


def _tell_version() -> bool:
    """Print the version; False when stdout cannot be written, which is reported later."""
    if "stdout" in lacking:
        return False
    try:
        sys.stdout.write(f"phoenix {VERSION}\n")
        sys.stdout.flush()
    except OSError:
        return False
    return True


def _print_values(kind: str) -> int:
    """Print values for a completion script; silent in any trouble, since a command line is being written."""
    from phoenix_tui.cli.completion.values import print_values  # noqa: PLC0415 - for a key pressed in a shell alone

    try:
        print_values(kind)
        sys.stdout.flush()
    except (OSError, RuntimeError, ValueError):  # stdout is gone, or there is no home
        from phoenix_tui.lifecycle.process_start import forget  # noqa: PLC0415 - as above

        forget(1)
    return 0


def _prepare_screen() -> None:
    """Prepare terminal and interpreter before anything else loads (docs/decisions/textual.md)."""
    # Keys typed from here on are kept as typed: a cooked terminal would turn Enter into ctrl+j.
    from phoenix_tui.lifecycle.stop_signals import end_early  # noqa: PLC0415 - as above
    from phoenix_tui.terminal.state import make_raw_early, restore  # noqa: PLC0415 - only when a screen opens

    make_raw_early()
    end_early()
    import atexit  # noqa: PLC0415 - the terminal comes first
    import gc  # noqa: PLC0415 - as above
    import os  # noqa: PLC0415 - as above

    atexit.register(restore)
    gc.disable()  # until the first frame: collecting while importing costs 25 ms
    sys.setswitchinterval(0.0005)  # input and output are threads; 5 ms would be felt at every key
    os.environ.setdefault("TEXTUAL_FPS", "500")  # read by Textual at import; a paint waits up to one frame
    os.environ.setdefault("ESCDELAY", "40")  # ms until a lone ESC byte is the Esc key


def _opens_screen(arguments: list[str]) -> bool:
    if arguments and arguments[0] in COMMANDS:
        return False
    return not any(argument in WITHOUT_SCREEN for argument in arguments) and not wants_control(arguments)


if __name__ == "__main__":
    sys.exit(main())
