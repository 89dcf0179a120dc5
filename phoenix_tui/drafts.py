"""What was typed: drafts kept per conversation, and the prompts sent from a folder."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Final

HISTORY_LIMIT: Final = 500
"""Prompts kept per folder."""
ENTRY_LIMIT: Final = 20_000
"""Longest prompt that is remembered, in characters."""


class PromptHistory:
    """The prompts of one folder, oldest first, and a position while the user walks through them."""

    def __init__(self, state_folder: Path, working_dir: Path) -> None:
        name = hashlib.sha256(str(working_dir).encode("utf-8", "surrogateescape")).hexdigest()[:24]
        self._path = state_folder / "history" / f"{name}.jsonl"
        self._entries: list[str] | None = None
        self._position: int | None = None
        self._unsent = ""

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
        """The prompt after, at last what was being written; None when nothing is newer."""
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
        entries = [entry for entry in self._read() if entry != text][-(HISTORY_LIMIT - 1) :]
        appended_only = len(entries) == len(self._read())
        self._entries = [*entries, text]
        self._write(appended_only, text)

    def _write(self, appended_only: bool, text: str) -> None:
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if appended_only:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(text) + "\n")
        else:
            fresh = self._path.with_suffix(".new")
            fresh.write_text("".join(json.dumps(entry) + "\n" for entry in self._read()), "utf-8")
            fresh.replace(self._path)
        self._path.chmod(0o600)

    def _read(self) -> list[str]:
        if self._entries is None:
            try:
                lines = self._path.read_text("utf-8").splitlines()
            except (OSError, UnicodeDecodeError):
                lines = []
            self._entries = [entry for line in lines if (entry := _entry(line))][-HISTORY_LIMIT:]
        return self._entries


def _entry(line: str) -> str:
    try:
        value: object = json.loads(line)
    except ValueError:
        return ""
    return value if isinstance(value, str) else ""
