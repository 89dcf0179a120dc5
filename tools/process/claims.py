"""Placeholders needed by each Phoenix of this user: a journal per process in one private folder.

A placeholder goes with the last command that needs it, whichever process started that: removing it earlier would open
the path there. The next process removes those of a killed one.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import time
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Final

from tools.files.own_files import make_folder, open_file, open_own, read_regular

SUFFIX: Final = ".claims"
LOCK: Final = "lock"
MOST_BYTES: Final = 16 * 1024 * 1024
LONGEST_WAIT: Final = 2.0
"""Seconds for another process to finish its few microseconds; then it was stopped in the midst of them."""
PAUSE: Final = 0.002


class Journal:
    """The claims of this process, and a look at those of others. Called from threads, one at a time."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._own: Path | None = None
        self._descriptor = -1
        self._lock = -1

    @contextlib.contextmanager
    def alone(self) -> Generator[None, None, None]:
        """Keep other processes from claiming and releasing meanwhile."""
        if not self._opened():
            yield
            return
        until = time.monotonic() + LONGEST_WAIT
        while not _locked(self._lock) and time.monotonic() < until:
            time.sleep(PAUSE)
        try:
            yield
        finally:
            fcntl.flock(self._lock, fcntl.LOCK_UN)

    def add(self, path: Path) -> None:
        """Note a claim, before the placeholder is made."""
        self._write(b"+" + os.fsencode(path) + b"\0")

    def drop(self, path: Path, *, last: bool) -> None:
        """Note that this process needs it no longer; `last` where it needs none any more."""
        if last and self._descriptor >= 0:
            os.ftruncate(self._descriptor, 0)
        else:
            self._write(b"-" + os.fsencode(path) + b"\0")

    def is_needed_elsewhere(self, path: Path) -> bool:
        """True where another living process claims the path."""
        return any(path in claimed for journal, claimed in self._others() if _is_held(journal))

    def clear(self, remove: Callable[[Path], None]) -> None:
        """Remove the placeholders of dead processes, unless a living one needs them."""
        if not self._opened():
            return
        needed: set[Path] = set()
        left: set[Path] = set()
        for journal, claimed in self._others():
            if _is_held(journal):
                needed |= claimed
            else:
                left |= claimed
                with contextlib.suppress(OSError):
                    journal.unlink()
        for path in sorted(left - needed - _replayed(self._own)):
            remove(path)

    def close(self) -> None:
        """Give the journal up; it is empty by now."""
        for descriptor in (self._descriptor, self._lock):
            if descriptor >= 0:
                os.close(descriptor)
        if self._own is not None:
            with contextlib.suppress(OSError):
                self._own.unlink()
        self._descriptor = self._lock = -1
        self._own, self._folder = None, None

    def _opened(self) -> bool:
        """False where there is no folder for it: then no other process shares anything with this one."""
        if self._lock >= 0:
            return True
        if self._folder is None or not self._folder.parent.is_dir():
            return False
        try:
            make_folder(self._folder)
            lock = open_file(self._folder / LOCK, os.O_RDWR)
            own = self._folder / f"{os.getpid()}-{secrets.token_hex(4)}{SUFFIX}"
            descriptor = open_file(own, os.O_RDWR | os.O_APPEND)
        except OSError:  # a full or read-only disk: the placeholders themselves can be recognized
            self._folder = None
            return False
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        self._lock, self._own, self._descriptor = lock, own, descriptor
        return True

    def _others(self) -> list[tuple[Path, set[Path]]]:
        if self._folder is None:
            return []
        journals = sorted(path for path in self._folder.glob(f"*{SUFFIX}") if path != self._own)
        return [(journal, _replayed(journal)) for journal in journals]

    def _write(self, entry: bytes) -> None:
        if self._descriptor >= 0:
            with contextlib.suppress(OSError):
                os.write(self._descriptor, entry)


def _locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _is_held(journal: Path) -> bool:
    """True while the process of a journal lives."""
    try:
        descriptor = open_own(journal)
    except OSError:
        return False
    try:
        return not _locked(descriptor)
    finally:
        os.close(descriptor)


def _replayed(journal: Path | None) -> set[Path]:
    """Replay a journal: the paths still claimed at its end."""
    claimed: set[Path] = set()
    content = read_regular(journal, MOST_BYTES, follow=False) if journal is not None else None
    for entry in (content or b"").split(b"\0")[:-1]:
        path = Path(os.fsdecode(entry[1:]))
        (claimed.add if entry[:1] == b"+" else claimed.discard)(path)
    return claimed
