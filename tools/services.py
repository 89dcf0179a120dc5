"""Programs that Phoenix talks with: what is started, its limits, how it ended, and what can go wrong."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct, field

from tools.contract import UNCONFINED, Captured, KeptPlaces, Sandbox
from tools.terminal.values import TerminalSize as TerminalSize


class ServiceCommand(Struct, frozen=True):
    """A program to start with streams of its own: a service, a one-shot program, or one in a terminal."""

    argv: tuple[str, ...]
    working_dir: Path
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    """Added to the scrubbed environment."""
    sandbox: Sandbox = UNCONFINED
    """Limits of this program, as those of a `Command`; the caller decides."""
    owner: str = ""
    """Id of the conversation whose private temporary folder it shares in a sandbox; empty: a folder of its own."""
    readable: tuple[Path, ...] = ()
    """Folders that it may read in a sandbox too, as those of a `Command`."""
    start_in: Path | None = None
    """Folder that it starts in, as that of a `Command`."""
    kept: KeptPlaces | None = None
    """Places that it keeps from one start to the next in a sandbox."""


class ProgramExit(Struct, frozen=True):
    """End of a program and of its whole tree."""

    exit_code: int | None
    """None when a signal ended it, see `signal`; both None when it was ended together with its supervisor."""
    signal: int | None
    seconds: float
    """Seconds from its start until its tree was known to be gone."""
    stderr: Captured
    """The end of its stderr; empty for one in a terminal."""
    leftovers: tuple[str, ...] = ()
    """Names of processes it left behind; they are dead by now."""
    survivors: tuple[int, ...] = ()
    """Pids that would not die (uninterruptible sleep)."""


class ProgramLimits(Struct, frozen=True):
    """Limits of a one-shot program."""

    seconds: float | None = 600.0
    """None means no limit."""
    output: int = 1024 * 1024
    """Bytes kept of stdout, and as many of stderr; the rest is read, counted and dropped."""


class ProgramResult(Struct, frozen=True):
    """A one-shot program that ended, by itself or at its time limit."""

    exit_code: int | None
    """None when a signal ended it."""
    signal: int | None
    timed_out: bool
    stdout: Captured
    stderr: Captured
    seconds: float
    leftovers: tuple[str, ...] = ()
    survivors: tuple[int, ...] = ()
    refused: str = ""
    """Clauses on what its sandbox refused to it, as of `tools.shell_output`."""


class ServiceEndedError(Exception):
    """Raised when the other side of a stream is gone: the program ended, closed it, or was ended by Phoenix."""


class LineTooLongError(Exception):
    """Raised for a line above the limit of its channel; the channel stays usable and passes over the rest of it."""


class InvalidLineError(Exception):
    """Raised for a line that is no JSON object; the channel stays usable."""
