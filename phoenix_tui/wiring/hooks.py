"""Opens the hooks of files: where they are read, what runs their programs, the transcript that they may read."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct, field

from engine.extensions.hooks.definitions import HookFile
from engine.extensions.hooks.file_hooks import FileHooks
from engine.extensions.hooks.reading import read_hooks
from engine.ports import StorageError
from engine.ports.services import ServiceRunner
from engine.records import ConversationRecord, StoredMessage
from phoenix_tui.cli.blocks import block_object, encode
from phoenix_tui.cli.output import write_progress
from phoenix_tui.cli.setup import Setup
from phoenix_tui.config.hook_files import HookFiles
from phoenix_tui.config.sources.project_sources import ProjectSources
from tools.clock import SYSTEM_CLOCK
from tools.contract import JsonObject, JsonValue
from tools.files.own_files import make_folder, open_file, write_file

if TYPE_CHECKING:
    from engine.store.store import Store


log = logging.getLogger(__name__)

SWITCHED_OFF: Final = "--no-hooks switches them off"
GIVEN: Final = "--settings"
NEUTRAL: Final = "neutral"
"""Folder of the state with the folders in which programs start that are not to find the project."""
APART: Final = "a folder of its own, since this one is not trusted: /trust"
"""Place in which the user's hooks and servers start, in words."""
LEFT_AFTER: Final = 24 * 3600.0
"""Seconds after which a transcript that a crash left behind is removed."""


class OpenedHooks(Struct, frozen=True):
    """Hooks of files: where they are read, and what runs their programs."""

    files: HookFiles
    runner: FileHooks


def file_hooks(setup: Setup, sources: ProjectSources, services: ServiceRunner, store: Store) -> OpenedHooks:
    """Hooks of all folders; nothing is looked at before a message is sent. No transcript where nothing is kept."""
    files = HookFiles(sources, SWITCHED_OFF if setup.no_hooks else "", given_hooks(setup), neutral_folder(setup))
    transcripts = None if setup.ephemeral else TranscriptFiles(setup.paths.state / "transcripts", store)
    return OpenedHooks(files, FileHooks(files, services, SYSTEM_CLOCK, transcripts))


def neutral_folder(setup: Setup) -> Path:
    """Folder in which the user's hooks start where the project is not trusted."""
    return setup.paths.state / NEUTRAL / "hooks"


def given_hooks(setup: Setup) -> HookFile:
    """Hooks of the settings on the command line; what is wrong with them goes to stderr."""
    if not setup.hooks:
        return HookFile()
    found = read_hooks(setup.hooks, GIVEN)
    for problem in found.problems:
        write_progress(f"phoenix: {problem.sentence}")
    return found


class TranscriptFiles(Struct, eq=False):
    """One JSONL file a conversation, which only the user can read; it grows when a hook runs.

    Each is in a folder of its own, which a sandbox can show without those of other conversations. Its lines have no
    blanks between their parts: scripts look for `"role":"assistant"` in them.
    """

    folder: Path
    store: Store
    _written: dict[str, int] = field(default_factory=dict[str, int])
    """Newest seq in the file of each conversation."""
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def path_of(self, record: ConversationRecord) -> str:
        """Path of the file with all stored messages; empty where it cannot be written."""
        path = self._file(record.id)
        async with self._lock:
            after = self._written.get(record.id, 0)
            try:
                rows = await self.store.messages(record.id, first_seq=after + 1)
                text = "".join(f"{encode(_row(record, row), compact=True)}\n" for row in rows)
                await asyncio.to_thread(self._append, path, text, is_new=not after)
            except (StorageError, OSError) as error:
                log.info("the transcript for hooks could not be written: %s", error)
                return ""
            self._written[record.id] = rows[-1].seq if rows else after
        return str(path)

    def forget(self, conversation_id: str) -> None:
        """Remove the file of a conversation that closes."""
        if self._written.pop(conversation_id, None) is not None:
            _remove(self._file(conversation_id))

    def _file(self, conversation_id: str) -> Path:
        return self.folder / conversation_id / f"{conversation_id}.jsonl"

    def _append(self, path: Path, text: str, *, is_new: bool) -> None:
        if is_new:
            make_folder(self.folder)
            for left in (*self.folder.glob("*.jsonl"), *self.folder.glob("*/*.jsonl")):
                if left.stat().st_mtime < time.time() - LEFT_AFTER:
                    _remove(left)
            make_folder(path.parent)
            write_file(path, text.encode("utf-8", "replace"))
            return
        with os.fdopen(open_file(path, os.O_WRONLY | os.O_APPEND), "w", encoding="utf-8", errors="replace") as file:
            file.write(text)


def _remove(path: Path) -> None:
    """Remove a transcript with its folder, unless something else is in it."""
    path.unlink(missing_ok=True)
    with contextlib.suppress(OSError):
        path.parent.rmdir()


def _row(record: ConversationRecord, row: StoredMessage) -> JsonObject:
    content: list[JsonValue] = [block_object(block) for block in row.blocks]
    return {
        "type": row.role.value,
        "uuid": row.id,
        "sessionId": record.id,
        "cwd": str(record.cwd),
        "timestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(row.created_at)),
        "message": {"role": row.role.value, "content": content},
    }
