"""Missing parts of a new process: a standard stream (`>&-`), a working directory (`rmdir`).

Uses only modules that Python has loaded by then, like `isolation`.
"""

import os
import sys

STREAMS = ("stdin", "stdout", "stderr")
WORKING_DIRECTORY = "working directory"
lacking: set[str] = set()
"""Names of the streams, and the working directory, that were not there."""


def fill_in() -> None:
    """Put /dev/null in the place of each stream that is closed, and `/` in that of a folder that is gone.

    Without the first, the next file that is opened, such as the database, would be written to as stdout.
    """
    for number, name in enumerate(STREAMS):
        if getattr(sys, name) is None:
            lacking.add(name)
            _open(number, name)
    try:
        os.getcwd()  # noqa: PTH109 - pathlib is not loaded yet
    except OSError:
        lacking.add(WORKING_DIRECTORY)
        os.chdir("/")


def _open(number: int, name: str) -> None:
    opened = os.open(os.devnull, os.O_RDWR)
    if opened != number:
        os.dup2(opened, number)
        os.close(opened)
    os.set_inheritable(number, True)
    setattr(sys, name, open(number, "r" if number == 0 else "w", encoding="utf-8"))  # noqa: SIM115 - as long as the process


def tell(text: str) -> None:
    """Write to stderr where that is possible; the exit code says the rest."""
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except OSError:
        forget(2)


def forget(number: int) -> None:
    """Point a stream at nothing, so that the interpreter's last flush does not fail again."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, number)
    os.close(nothing)
