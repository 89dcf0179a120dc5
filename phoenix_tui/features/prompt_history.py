"""The prompts sent from a folder: kept in one file per folder, walked with Up and Down, searched with Ctrl+R."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from tools.files.own_files import make_folder, open_file, read_file, write_file

HISTORY_LIMIT: Final = 500
"""Prompts kept per folder."""
SLACK: Final = 500
"""Lines above the limit after which the file is rewritten; until then one line is appended per prompt."""
ENTRY_LIMIT: Final = 200_000
"""Longest prompt that is remembered, in characters."""


class PromptHistory:
    """The prompts of one folder, oldest first, and a position while the user walks through them.

    Several processes may add to the same file: each appends whole lines and sees the others' when it is made.
    """

    def __init__(self, state_folder: Path, working_dir: Path) -> None:
        import hashlib  # noqa: PLC0415 - OpenSSL behind it takes 2 ms: not before the first frame

        name = hashlib.sha256(str(working_dir).encode("utf-8", "surrogateescape")).hexdigest()[:24]
        self._path = state_folder / "history" / f"{name}.jsonl"
        self._entries: list[str] | None = None
        self._lines = 0
        self._position: int | None = None
        self._unsent = ""

    @property
    def entries(self) -> tuple[str, ...]:
        """Every prompt of this folder, the newest first."""
        return tuple(reversed(self._read()))

    def everywhere(self) -> tuple[str, ...]:
        """The prompts of every folder: those of this one first, each kind with the newest first."""
        try:
            others = sorted(
                (path for path in self._path.parent.glob("*.jsonl") if path != self._path),
                key=lambda path: path.stat().st_mtime,
                reverse=True,
            )
        except OSError:
            others = []
        found = dict.fromkeys(self.entries)
        for path in others:
            found |= dict.fromkeys(reversed(_deduplicate(_lines(path))))
        return tuple(found)

    def older(self, current: str) -> str | None:
        """The prompt before; None at the oldest. `current` is kept for the way back."""
        entries = self._read()
        if self._position is None:
            self._unsent, position = current, len(entries)
        else:
            position = self._position
        if position == 0:
            return None
        self._position = position - 1
        return entries[self._position]

    def newer(self) -> str | None:
        """The next prompt, at last the text being written; None when nothing is newer."""
        if self._position is None:
            return None
        entries = self._read()
        self._position += 1
        if self._position >= len(entries):
            self._position = None
            return self._unsent
        return entries[self._position]

    def leave(self) -> None:
        """Forget the position: the text was changed or sent."""
        self._position = None

    def add(self, text: str) -> None:
        """Remember a prompt; an earlier equal one moves to the end.

        Raises:
            OSError: it cannot be written; it is remembered until the end all the same.
        """
        self._position = None
        if not text.strip() or len(text) > ENTRY_LIMIT:
            return
        self._entries = _deduplicate([*self._read(), text])
        self._lines += 1
        make_folder(self._path.parent)
        if self._lines > HISTORY_LIMIT + SLACK:
            self._entries = _deduplicate([*_lines(self._path), *self._read()[-1:]])
            write_file(self._path, "".join(json.dumps(entry) + "\n" for entry in self._entries))
            self._lines = len(self._entries)
        else:
            _append(self._path, text)

    def _read(self) -> list[str]:
        if self._entries is None:
            lines = _lines(self._path)
            self._lines = len(lines)
            self._entries = _deduplicate(lines)
        return self._entries


def remember(history: PromptHistory | None, text: str) -> str:
    """Add a prompt to the history of its folder; where the disk does not take it, the sentence that says so."""
    try:
        if history is not None:
            history.add(text)
    except OSError as error:
        return f"The prompt history cannot be written: {error.strerror}."
    return ""


def _append(path: Path, text: str) -> None:
    """One line in one write; a line that a kill cut off before it stays alone on its own."""
    with os.fdopen(open_file(path, os.O_RDWR | os.O_APPEND), "ab+") as file:
        file.seek(0, os.SEEK_END)
        if file.tell():
            file.seek(-1, os.SEEK_END)
            begun = file.read(1) != b"\n"
        else:
            begun = False
        file.write((b"\n" if begun else b"") + json.dumps(text).encode() + b"\n")


def _lines(path: Path) -> list[str]:
    try:
        lines = read_file(path).decode("utf-8", "replace").splitlines()
    except OSError:
        return []
    return [entry for line in lines if (entry := _entry(line))]


def _deduplicate(entries: Iterable[str]) -> list[str]:
    """Each entry once, at its last place; at most the newest `HISTORY_LIMIT`."""
    newest_first = dict.fromkeys(reversed(list(entries)))
    return list(reversed(newest_first))[-HISTORY_LIMIT:]


def _entry(line: str) -> str:
    try:
        value: object = json.loads(line)
    except ValueError:
        return ""
    return value if isinstance(value, str) else ""
