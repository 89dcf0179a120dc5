"""Output to stdout and stderr; everything from outside is cleaned first.

Output to stdout may raise BrokenPipeError, or StdoutLost where no more fits.
"""

from __future__ import annotations

import contextlib
import os
import select
import stat
import sys
from collections.abc import Awaitable, Callable, Generator, Sequence
from datetime import UTC, datetime

from phoenix_tui.cli.blocks import encode
from phoenix_tui.cli.exits import StdoutLost
from phoenix_tui.lifecycle.process_start import tell
from phoenix_tui.terminal.output_thread import OutputThread, write_all
from phoenix_tui.terminal.size import terminal_size
from tools.clean import clean, clean_line
from tools.contract import JsonValue

_threads: list[OutputThread] = []
"""Writing threads while a run goes on; otherwise output is written at once."""


def write_line(text: str) -> None:
    """One text of the program's own or from outside, on stdout."""
    _write(clean(text) + "\n")


def write_json(value: JsonValue) -> None:
    """A document for people and scripts, on stdout."""
    _write(encode(value, indent=2) + "\n")


def write_json_line(value: JsonValue) -> None:
    """One object of a stream, on stdout, at once."""
    _write(encode(value) + "\n")


def write_raw_line(text: str) -> None:
    """A line that is encoded already, on stdout, at once."""
    _write(text + "\n")


def output_waits() -> int:
    """Bytes that wait for the reader of stdout and stderr."""
    return _threads[-1].waits if _threads else 0


def write_progress(text: str) -> None:
    """Write one line of progress to stderr; silent once it cannot be read."""
    line = clean(text) + "\n"
    if _threads:
        _threads[-1].write(2, line.encode("utf-8", "replace"))
    else:
        tell(line)


def write_document(text: str) -> None:
    """A whole document as it is, on stdout."""
    _write(text)


def write_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Columns as wide as their cells; the last one is cut at the terminal's edge."""
    cells = [[clean_line(cell) for cell in row] for row in (headings, *rows)]
    widths = [max(_width(row[column]) for row in cells) for column in range(len(headings))]
    for row in cells:
        line = "  ".join(cell + " " * (width - _width(cell)) for cell, width in zip(row, widths, strict=True)).rstrip()
        _write(_within(line) + "\n")


def terminal_columns() -> int:
    """Columns of the terminal that stdout is; 0 where it is none."""
    return terminal_size()[0] if sys.stdout.isatty() else 0


def _within(line: str) -> str:
    """The line as far as the terminal shows it."""
    room = terminal_columns()
    while room and _width(line) > room:
        line = line[: room if line.isascii() else -1]
    return line


def _width(text: str) -> int:
    """Cells of a text on a terminal."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len  # noqa: PLC0415 - 9 ms, seldom needed

    return cell_len(text)


@contextlib.contextmanager
def behind_the_loop(lost: Callable[[], object]) -> Generator[Callable[[], Awaitable[None]]]:
    """Write on a thread until the end of the block, without blocking the caller; yields a wait for all of it.

    `lost` is called, by another thread, once stdout takes nothing more.
    """
    thread = OutputThread(lost)
    _threads.append(thread)

    async def drain() -> None:
        with _as_lost():
            await thread.drain()

    try:
        yield drain
    finally:
        _threads.remove(thread)
        thread.close()


@contextlib.contextmanager
def watch_reader(gone: Callable[[], object], descriptor: int = 1) -> Generator[None]:
    """Call `gone` in the loop once the other end of a pipe or socket is closed; other outputs are not watched."""
    import asyncio  # noqa: PLC0415 - 30 ms, not for `--version`

    loop = asyncio.get_running_loop()

    def look() -> None:
        loop.remove_reader(descriptor)  # also for bytes that a host writes into its own end
        poll = select.poll()
        poll.register(descriptor, 0)
        if any(found & (select.POLLERR | select.POLLHUP) for _, found in poll.poll(0)):
            gone()

    mode = os.fstat(descriptor).st_mode
    if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode):
        loop.add_reader(descriptor, look)
    try:
        yield
    finally:
        loop.remove_reader(descriptor)


def _write(text: str) -> None:
    content = text.encode("utf-8", "replace")
    with _as_lost():
        if _threads:
            _threads[-1].write(1, content)
        else:
            write_all(1, content)


@contextlib.contextmanager
def _as_lost() -> Generator[None]:
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise StdoutLost(error.errno, error.strerror) from error


def local_time(seconds: float) -> str:
    """Seconds since the epoch as local date and time, to the minute."""
    return datetime.fromtimestamp(seconds, tz=UTC).astimezone().strftime("%Y-%m-%d %H:%M")


def utc_time(seconds: float) -> str:
    """Seconds since the epoch as ISO 8601 in UTC."""
    return datetime.fromtimestamp(seconds, tz=UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
