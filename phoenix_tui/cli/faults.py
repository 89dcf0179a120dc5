"""Faults as one sentence and an exit code: the only table, for every front end (CONTRACT 2).

A front end that catches for itself words the same fault in its own way, or forgets it. So whatever is raised passes up
to the edge of its front end, and that edge asks `fault_of`: the program's entry for lines, sub-commands and `-p`, the
opener of the services for the screen, the dispatcher for an editor, the start of a host's run.
"""

from __future__ import annotations

import errno
import logging
from collections.abc import Awaitable, Mapping, Sequence
from typing import Final

from engine.executor.requests import EngineError, MemoryShort
from engine.ports import DatabaseBusy, OwnedElsewhere, ProviderError, StorageError
from phoenix_tui.cli.exits import CommandError, Exit
from phoenix_tui.cli.output import write_progress
from phoenix_tui.config.settings import ConfigError
from tools.clean import clean_line, reveal_name
from tools.process.link import NoHelper

log = logging.getLogger("phoenix")

INTERNAL: Final = (
    "Internal error ({name}). Run with --debug to see where; `phoenix doctor` names the folder of the log."
)
NO_THREAD: Final = (
    "The system starts no further thread or process; end some programs, or raise the limit with `ulimit -u`, and try "
    "again."
)
NO_HELPER: Final = "Phoenix cannot start its process helper: "
NO_HOME: Final = "There is no home folder for this user; set HOME to one, or PHOENIX_HOME to a folder for Phoenix."
NO_MEMORY: Final = "There is not enough memory; end some programs, or raise the limit with `ulimit -v`, and try again."
REASONS: Final[Mapping[int, tuple[str, Exit]]] = {
    errno.ENOSPC: ("The disk is full{at}; free some space and try again.", Exit.FAILED),
    errno.EDQUOT: ("Your share of the disk is full{at}; free some space and try again.", Exit.FAILED),
    errno.EMFILE: ("Phoenix may open no more files; raise the limit with `ulimit -n 1024` and try again.", Exit.FAILED),
    errno.ENFILE: ("The system may open no more files; end some programs and try again.", Exit.RETRYABLE),
    errno.EAGAIN: (NO_THREAD, Exit.RETRYABLE),
    errno.ENOMEM: (NO_MEMORY, Exit.RETRYABLE),
    errno.EIO: ("The disk failed{at}; check it, then start Phoenix again.", Exit.FAILED),
    errno.EROFS: ("The file system is read-only{at}; choose a writable folder with PHOENIX_HOME.", Exit.FAILED),
}
"""Errors of the system whose cause is not one file."""
OWN: Final[Sequence[tuple[type[Exception], Exit]]] = (
    (MemoryShort, Exit.RETRYABLE),
    (DatabaseBusy, Exit.RETRYABLE),
    (EngineError, Exit.USAGE),
    (ConfigError, Exit.USAGE),
    (StorageError, Exit.FAILED),
)
"""Errors of the engine and of settings, whose text is the sentence; the first that fits counts."""


def fault_of(error: BaseException) -> CommandError:
    """The sentence and the exit code of whatever a front end could not go on from; the log gets the unexpected."""
    codes = [code for kind, code in OWN if isinstance(error, kind)]
    match error:
        case CommandError():
            return error
        case EngineError() | StorageError() | ConfigError():
            return CommandError(str(error), codes[0])
        case OwnedElsewhere():
            return CommandError(f"{error} Use --fork to continue in a copy.")
        case ProviderError(kind="auth"):
            return CommandError(error.message, Exit.CREDENTIALS)
        case ProviderError():
            return CommandError(error.message, Exit.RETRYABLE if error.retryable else Exit.USAGE)
        case OSError():
            _log(error)
            return _of_system(error)
        case MemoryError():
            return CommandError(NO_MEMORY, Exit.RETRYABLE)
        case RuntimeError() if "home directory" in str(error):  # Python has no class for either
            return CommandError(NO_HOME)
        case RuntimeError() if "start new thread" in str(error):
            return CommandError(NO_THREAD, Exit.RETRYABLE)
        case _:
            _log(error)
            return CommandError(INTERNAL.format(name=type(error).__name__), Exit.FAILED)


async def end_quietly(closing: Awaitable[None]) -> None:
    """End something whose result stands: what fails now is said on stderr, and changes no exit code."""
    try:
        await closing
    except Exception as error:  # noqa: BLE001 - an edge: everything else ends, too
        write_progress(f"phoenix: {fault_of(error).sentence}")


def _log(error: BaseException) -> None:
    if logging.getLogger().handlers:  # without any, the traceback would go to the terminal
        log.error("unexpected failure", exc_info=error)


def _of_system(error: OSError) -> CommandError:
    """An error of the system with its file and its fix."""
    ahead = NO_HELPER if isinstance(error, NoHelper) else ""
    name = reveal_name(str(error.filename)) if error.filename is not None else ""
    if error.errno is not None and error.errno in REASONS:
        words, code = REASONS[error.errno]
        return CommandError(ahead + words.format(at=f" at {name}" if name else ""), code)
    why = clean_line(error.strerror or str(error)) or "no reason given"
    if name:
        return CommandError(f"{ahead}{name} cannot be used ({why}); check it and its permissions.", Exit.FAILED)
    return CommandError(f"{ahead}The system refuses it ({why}).", Exit.FAILED)
