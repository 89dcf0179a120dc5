"""The terminal as it was before Phoenix, and how to give it back (docs/decisions/textual.md, FAULTS 82).

Imported before everything else by `__main__`: standard library only.
"""

from __future__ import annotations

import contextlib
import os
import sys
import termios
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, ClassVar, Final

if TYPE_CHECKING:
    from threading import Thread

WRITER: Final = "textual-output"
"""Textual's name for its writing thread."""
TAKEN_WITHIN: Final = 0.5
"""Seconds for the last output."""
Attributes = list[int | list[bytes | int]]
"""Result of `termios.tcgetattr`."""

RESTORE: Final = (
    "\x1b[?2026l"  # no frame is half written any more
    "\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1015l\x1b[?1006l\x1b[?1016l"  # mouse
    "\x1b[?2004l\x1b[?1004l\x1b[?2048l"  # paste, focus and resize reports
    "\x1b[<u"  # kitty keys, before the alternate screen is left
    "\x1b[?7h\x1b[0m\x1b[?1049l\x1b[?25h"  # wrap, colours, main screen, cursor
)
"""Takes back everything the screen changes; harmless when written twice."""
FROM_PROGRAMS: Final = "\x1b[?1l\x1b>\x1b(B\x0f\x1b7\x1b[r\x1b8"
"""Takes back what a program changes to which the terminal was lent: forms of keys, letters, rows that scroll. Written
before `RESTORE`, while the alternate screen may still be shown.
"""


class _Saved:
    """The one record of this process; a terminal belongs to the process, not to an object in it."""

    attributes: ClassVar[Attributes | None] = None
    entered = False
    parting = ""
    """Written with `RESTORE`: the title back, progress cleared."""


def make_raw_early(fd: int = 0) -> Attributes | None:
    """Keep input while Phoenix loads: Enter stays Enter and nothing echoes; Ctrl+C still works.

    Returns the original attributes, for `restore` and for a watchdog; None where `fd` is no terminal.
    """
    if not os.isatty(fd):
        return None
    original = termios.tcgetattr(fd)
    _Saved.attributes = original
    raw = termios.tcgetattr(fd)
    raw[0] &= ~(termios.ICRNL | termios.INLCR | termios.IXON)
    raw[3] &= ~(termios.ICANON | termios.ECHO)
    termios.tcsetattr(fd, termios.TCSANOW, raw)
    return original


def original_attributes() -> Attributes | None:
    """The attributes from before `make_raw_early`; None when it was not called."""
    return _Saved.attributes


def screen_entered(entered: bool) -> None:
    _Saved.entered = entered


def parting(sequence: str) -> None:
    _Saved.parting = sequence


def reset(fd: int = 0, output: int = 1) -> None:
    """Reset modes that any program may have left behind, as `stty sane` and the sequences above do; Ctrl+S too."""
    with contextlib.suppress(termios.error):
        termios.tcflow(output, termios.TCOON)  # a stopped terminal would take none of it
    with contextlib.suppress(OSError):
        os.write(output, f"{RESTORE}\r".encode("ascii"))
    if os.isatty(fd):
        attributes = termios.tcgetattr(fd)
        attributes[0] |= termios.ICRNL | termios.IXON
        attributes[1] |= termios.OPOST | termios.ONLCR
        attributes[3] |= termios.ICANON | termios.ECHO | termios.ECHOE | termios.ECHOK | termios.ISIG | termios.IEXTEN
        termios.tcsetattr(fd, termios.TCSANOW, attributes)


def restore(fd: int = 0, output: int = 2) -> None:
    """Give the terminal back as it was; for `atexit`, signal handlers and crashes. May be called at any time."""
    if _Saved.attributes is not None:  # first: a terminal stopped with Ctrl+S accepts no sequence
        with contextlib.suppress(termios.error):
            termios.tcsetattr(fd, termios.TCSANOW, _Saved.attributes)
    if _Saved.entered:
        _Saved.entered = False
        with contextlib.suppress(OSError):
            os.write(output, (FROM_PROGRAMS + RESTORE + _Saved.parting).encode("ascii"))


def say(words: str, output: int = 2) -> None:
    """Write a message after the screen is gone, if the terminal accepts it in time."""

    def write() -> None:
        with contextlib.suppress(OSError):  # hung up
            os.write(output, words.encode())

    within(TAKEN_WITHIN, write)


def leave(code: int) -> None:
    """End the process at once where a thread still writes to the terminal: Python waits for it, or aborts over it."""
    if not within(TAKEN_WITHIN, _flush) or writer() is not None:
        os._exit(code)


def within(seconds: float, work: Callable[[], object]) -> bool:
    """Do something in a thread, and wait so long; True once it is done."""
    import threading  # noqa: PLC0415 - the end alone needs it

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(seconds)
    return not thread.is_alive()


def writer() -> Thread | None:
    """Textual's writing thread, while there is one: as Python ends, a stream that it holds is a fatal error."""
    import threading  # noqa: PLC0415 - needed after the first frame alone

    return next((thread for thread in threading.enumerate() if thread.name == WRITER), None)


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()


def is_plain(environment: Mapping[str, str]) -> bool:
    """True when the locale names an encoding that is not UTF-8; one that names none proves nothing."""
    locale = next((value for name in ("LC_ALL", "LC_CTYPE", "LANG") if (value := environment.get(name))), "")
    encoding = locale.partition(".")[2].partition("@")[0]
    return bool(encoding) and encoding.lower().replace("-", "") != "utf8"
