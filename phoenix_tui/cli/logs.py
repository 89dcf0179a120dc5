"""The log: JSON lines in a private file of bounded size, with every key blotted out (FAULTS 70)."""

from __future__ import annotations

import fcntl
import json
import logging
import os
import re
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Final

from engine.context.input_guard import SECURITY_LOG
from phoenix_tui.cli.output import utc_time
from tools.files.own_files import make_folder, open_file
from tools.known_secrets import SECRETS

LONGEST: Final = 256 * 1024
"""Bytes of a record up to which it is written as one."""


class PrivateFile(RotatingFileHandler):
    """A rotating file without access for other users, which several processes write and rotate.

    Each record is one append, so lines do not mix. Whoever rotates holds a lock on the folder, and the others go on
    with the new file at their next record; where the lock is taken, the file grows by that record.
    """

    def _open(self) -> TextIOWrapper:
        path = Path(self.baseFilename)
        make_folder(path.parent)
        descriptor = open_file(path, os.O_WRONLY | os.O_APPEND)
        return TextIOWrapper(os.fdopen(descriptor, "ab", LONGEST), encoding="utf-8", errors="replace")

    def shouldRollover(self, record: logging.LogRecord) -> int:
        """1 where this record would make the file too large. The file is the present one, whoever made it."""
        self._follow()
        if self.stream is None:
            return 0
        length = len(f"{self.format(record)}\n".encode("utf-8", "replace"))
        return int(bool(size := os.fstat(self.stream.fileno()).st_size) and size + length > self.maxBytes)

    def doRollover(self) -> None:
        """Rotate, unless another process is at it or has done it."""
        with self._alone() as is_alone:
            if is_alone and not self._follow():
                super().doRollover()

    def handleError(self, record: logging.LogRecord) -> None:
        """Drop a record that cannot be written: a message on stderr would be in the middle of a screen."""
        del record

    def _follow(self) -> bool:
        """True where another process has put a new file in the place of this one; it is open then."""
        opened: TextIOWrapper | None = self.stream
        if opened is not None:
            ours = os.fstat(opened.fileno())
            try:
                there = os.stat(self.baseFilename)  # noqa: PTH116 - for every record
            except FileNotFoundError:
                there = None
            if there is not None and os.path.samestat(ours, there):
                return False
            self.stream = None
            opened.close()
        self.stream = self._open()
        return True

    @contextmanager
    def _alone(self) -> Generator[bool]:
        """True for the one process that holds the lock."""
        descriptor = os.open(Path(self.baseFilename).parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
        finally:
            os.close(descriptor)


FILE_LIMIT = 5 * 1024 * 1024
"""Bytes of one file; three older ones are kept."""
KEPT = 3
OWN: Final = ("engine", "phoenix_tui", "tools")
"""Loggers of Phoenix itself: what they inform about is kept without `debug` too."""
KEY_SHAPES = re.compile(r"(?:sk|gsk|xai|pplx|hf|ghp|glpat)[-_][\w-]{8,}|(?<=[Bb]earer )\S+")
"""Patterns of common API keys, for keys that are not configured."""
BLOT = "[key]"


def redact_keys(text: str, secrets: Sequence[str]) -> str:
    """Remove these keys, those known by now, and everything that looks like one, from `text`."""
    for secret in sorted({*secrets, *SECRETS.values(os.environ)} - {""}, key=len, reverse=True):
        text = text.replace(secret, BLOT)
    return KEY_SHAPES.sub(BLOT, text)


class JsonLines(logging.Formatter):
    """One record as one JSON object."""

    def __init__(self, secrets: Sequence[str]) -> None:
        super().__init__()
        self._secrets = tuple(secrets)

    def format(self, record: logging.LogRecord) -> str:
        """Time, level, logger, message and traceback."""
        fields = {
            "time": utc_time(record.created),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": self._redact(record.getMessage()),
        }
        if record.exc_info:
            fields["traceback"] = self._redact(self.formatException(record.exc_info))
        return json.dumps(fields, ensure_ascii=True)

    def _redact(self, text: str) -> str:
        return redact_keys(text, self._secrets)


def start_log(path: Path, secrets: Sequence[str], *, debug: bool) -> logging.Handler | None:
    """Send every logger's records to `path`; None if it cannot be written, which is no error."""
    try:
        make_folder(path.parent)
        handler = PrivateFile(path, maxBytes=FILE_LIMIT, backupCount=KEPT, encoding="utf-8")
    except OSError:
        logging.getLogger().addHandler(logging.NullHandler())  # else warnings go to the terminal
        return None
    handler.setFormatter(JsonLines(secrets))
    root = logging.getLogger()
    root.addHandler(handler)
    root.setLevel(logging.DEBUG if debug else logging.WARNING)
    for chatty in ("asyncio", "aiosqlite", "httpcore2", "markdown_it"):
        logging.getLogger(chatty).setLevel(logging.WARNING)
    for own in (SECURITY_LOG, *OWN):
        logging.getLogger(own).setLevel(logging.NOTSET if debug else logging.INFO)
    return handler
