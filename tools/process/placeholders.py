"""Placeholders for paths that must not be created, shared by commands, claimed in a journal per process."""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import stat
import threading
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterable
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
        if not self._open():
            yield
            return
        until = time.monotonic() + LONGEST_WAIT
        while not _try_lock(self._lock) and time.monotonic() < until:
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
        if not self._open():
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
        for path in sorted(left - needed - _replay(self._own)):
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

    def _open(self) -> bool:
        """False where there is no folder for it: then no other process shares anything with this one."""
        if self._lock >= 0:
            return True
        if self._folder is None or not os.path.isdir(self._folder.parent):
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
        return [(journal, _replay(journal)) for journal in journals]

    def _write(self, entry: bytes) -> None:
        if self._descriptor >= 0:
            with contextlib.suppress(OSError):
                os.write(self._descriptor, entry)


def _try_lock(descriptor: int) -> bool:
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
        return not _try_lock(descriptor)
    finally:
        os.close(descriptor)


def _replay(journal: Path | None) -> set[Path]:
    """Replay a journal: the paths still claimed at its end."""
    claimed: set[Path] = set()
    content = read_regular(journal, MOST_BYTES, follow=False) if journal is not None else None
    for entry in (content or b"").split(b"\0")[:-1]:
        path = Path(os.fsdecode(entry[1:]))
        (claimed.add if entry[:1] == b"+" else claimed.discard)(path)
    return claimed


FOLDER_MODE = 0o500
"""Mode of a placeholder folder, and the mark of one that a killed Phoenix left behind."""
FILE_MODE = 0o400
CONTENTS = (b"", b".\n", b"../..\n")


class Placeholders:
    """Counts the users of each placeholder and removes it with the last. Called from threads.

    `journals` is a folder that every Phoenix of this user shares; None without sharing.
    """

    def __init__(self, journals: Path | None = None) -> None:
        self._claims: Counter[Path] = Counter()
        self._journal = Journal(journals)
        self._lock = threading.Lock()

    def claim(self, path: Path, *, is_file: bool, content: str | None = None) -> Path | None:
        """Create an empty entry at the first missing part of `path` and return that part.

        None when it cannot be made here, and then not by a command either.
        """
        with self._lock:
            shared = next((part for part in (path, *path.parents) if part in self._claims), None)
            if shared is not None:
                self._claims[shared] += 1
                return shared
            with self._journal.alone():
                missing = _first_missing(path)
                self._journal.add(missing)
                is_whole = missing == path
                stands = is_left_over(missing) or _make(missing, is_file=is_file and is_whole, content=content)
                if not stands:
                    self._journal.drop(missing, last=not self._claims)
                    return None
                self._claims[missing] += 1
                return missing

    def is_claimed(self, path: Path) -> bool:
        """True where `path` exists only because it was made here, or by a Phoenix that was killed."""
        return path in self._claims or is_left_over(path)

    def release(self, claimed: Iterable[Path]) -> None:
        """Give up one claim on each path."""
        with self._lock:
            over: list[Path] = []
            for path in claimed:
                self._claims[path] -= 1
                if self._claims[path] <= 0:
                    del self._claims[path]
                    over.append(path)
            with self._journal.alone() if over else contextlib.nullcontext():
                for path in over:
                    self._journal.drop(path, last=not self._claims)
                    if not self._journal.is_needed_elsewhere(path):
                        _remove(path)

    def clear(self) -> None:
        """Remove the placeholders of killed Phoenixes in all folders."""
        with self._lock, self._journal.alone():
            self._journal.clear(_remove)

    def close(self) -> None:
        """Close the journal."""
        with self._lock:
            self._journal.close()


def is_left_over(path: Path) -> bool:
    """True for an entry that looks like a placeholder."""
    try:
        status = path.lstat()
    except OSError:
        return False
    mode = stat.S_IMODE(status.st_mode)
    if status.st_uid != os.getuid():
        return False
    if stat.S_ISDIR(status.st_mode):
        return mode == FOLDER_MODE and status.st_nlink <= 2 and not _entries(path)
    if mode != FILE_MODE:
        return False
    return stat.S_ISSOCK(status.st_mode) or (stat.S_ISREG(status.st_mode) and _content(path) in CONTENTS)


def _content(path: Path) -> bytes | None:
    """The first bytes of a small file."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        return os.read(descriptor, 64)
    finally:
        os.close(descriptor)


def _entries(path: Path) -> list[str]:
    try:
        return os.listdir(path)
    except OSError:
        return ["?"]


def _first_missing(path: Path) -> Path:
    """The outermost part of a path that does not exist; the path itself where it does."""
    missing = path
    while not (os.path.exists(missing.parent) or os.path.islink(missing.parent)):
        missing = missing.parent
    return missing


def _make(path: Path, *, is_file: bool, content: str | None) -> bool:
    try:
        if not is_file:
            path.mkdir(mode=FOLDER_MODE)
        elif content is None:
            try:
                os.mknod(path, stat.S_IFSOCK | FILE_MODE)
            except FileExistsError:
                raise
            except OSError:  # not on this file system
                _write(path, "")
        else:
            _write(path, content)
    except OSError:
        return False
    return True


def _write(path: Path, content: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, FILE_MODE)
    try:
        os.write(descriptor, content.encode())
    finally:
        os.close(descriptor)


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):
        if not is_left_over(path):
            return
        if os.path.isdir(path):
            path.rmdir()
        else:
            path.unlink()
