"""The log: JSON lines in a private file of bounded size, with every key blotted out (FAULTS 70)."""

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import Sequence
from pathlib import Path

from engine.context.input_guard import SECURITY_LOG
from phoenix_tui.cli.log_file import PrivateFile
from phoenix_tui.cli.times import utc_time
from tools.files.own_files import make_folder
from tools.known_secrets import SECRETS

FILE_LIMIT = 5 * 1024 * 1024
"""Bytes of one file; three older ones are kept."""
KEPT = 3
KEY_SHAPES = re.compile(r"(?:sk|gsk|xai|pplx|hf|ghp|glpat)[-_][\w-]{8,}|(?<=[Bb]earer )\S+")
"""Patterns of common API keys, for keys that are not configured."""
BLOT = "[key]"


def redacted(text: str, secrets: Sequence[str]) -> str:
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
            "message": self._redacted(record.getMessage()),
        }
        if record.exc_info:
            fields["traceback"] = self._redacted(self.formatException(record.exc_info))
        return json.dumps(fields, ensure_ascii=True)

    def _redacted(self, text: str) -> str:
        return redacted(text, self._secrets)


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
    logging.getLogger(SECURITY_LOG).setLevel(logging.INFO)
    return handler
