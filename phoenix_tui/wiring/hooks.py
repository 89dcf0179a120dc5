"""Hooks of files: those of each folder that the user trusts, read again when the files change; opened for the engine,
and as the screens and the doctor need them.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct, field

from engine.extensions.hooks.definitions import (
    MOST_BYTES,
    NO_HOOKS,
    Hook,
    HookFile,
    HookProblem,
    HookSet,
    join_files,
    read_hooks,
    read_toml_hooks,
)
from engine.extensions.hooks.file_hooks import FileHooks, Transcripts
from engine.ports import StorageError
from engine.records import ConversationRecord, StoredMessage
from phoenix_tui.cli.blocks import block_object, encode
from phoenix_tui.cli.output import write_progress
from phoenix_tui.cli.setup import Setup
from phoenix_tui.config.sources.extension_files import SourceFile, SourceKind, fill_root
from phoenix_tui.config.sources.project_sources import ProjectSources, TrustedSources, read_source
from phoenix_tui.features.service_interfaces import Finding, Health
from tools.clean import reveal_name
from tools.clock import SYSTEM_CLOCK
from tools.contract import JsonObject, JsonValue
from tools.files.own_files import make_folder, open_file, write_file
from tools.wording import pluralize

if TYPE_CHECKING:
    from engine.store.store import Store
    from tools.process.service import SupervisedServices


MOST_FOLDERS: Final = 100
UNREADABLE: Final = f"it changed while it was read, or is larger than {MOST_BYTES // 1024} KB"


class HookFiles(Struct, eq=False):
    """Implements `engine.extensions.hooks.file_hooks.HookSource`."""

    sources: ProjectSources
    off: str = ""
    """Reason why no hook runs in this process; empty where they do."""
    given: HookFile = HookFile()
    """Hooks of the command line."""
    neutral: Path = Path("/")
    """Folder in which the user's hooks start where the project is not trusted: empty, or the system's."""
    _found: dict[Path, tuple[TrustedSources, HookSet]] = field(
        default_factory=dict[Path, tuple[TrustedSources, HookSet]]
    )

    def current(self, record: ConversationRecord) -> HookSet:
        """Hooks of a conversation's folder as of the last look."""
        found = self._found.get(record.cwd)
        return found[1] if found is not None else NO_HOOKS

    async def refresh(self, record: ConversationRecord) -> None:
        """Look at the files of a folder, in a thread where they have changed; a folder that is gone has no hooks."""
        known = self._found.get(record.cwd)
        if known is not None and known[0] is self.sources.current(record.cwd) and self.sources.is_quick(record.cwd):
            return
        await asyncio.to_thread(self.look, record.cwd)

    async def holds(self, record: ConversationRecord, hook: Hook) -> bool:
        """True if a project's hook is still one of its folder now: its file and all programs are as trusted."""
        now = await asyncio.to_thread(self.look, record.cwd, keeps=False)
        return hook in now.by_event.get(hook.event, ())

    async def start_folder(self, record: ConversationRecord) -> Path:
        """The conversation's folder where the user trusts it, else a neutral one: `python -m NAME`, `npx` and others
        run what lies where they start.
        """
        return await asyncio.to_thread(self.start_of, record.cwd)

    def start_of(self, folder: Path) -> Path:
        """The same for a folder, in this thread."""
        try:
            trusted = self.sources.is_trusted(folder)
            if not trusted and self.neutral != Path("/"):
                make_folder(self.neutral)
        except OSError as error:
            log.info("the user's hooks start in /: %s", error)
            return Path("/")
        return folder if trusted else self.neutral

    def look(self, folder: Path, *, keeps: bool = True) -> HookSet:
        """The hooks of a folder as it is now; `keeps` makes them those in force."""
        try:
            sources = self.sources.look(folder)
        except OSError as error:
            log.info("hooks of %s are off: %s", folder, error)
            self._found.pop(folder, None)
            return NO_HOOKS
        known = self._found.get(folder)
        if known is not None and known[0] is sources:
            return known[1]
        files = self.given, *(_read(file) for file in sources.of(SourceKind.HOOKS))
        waiting = tuple(str(file.path) for file in sources.waiting if file.kind is SourceKind.HOOKS)
        found = join_files(files, waiting, is_off=self.off)
        if keeps:
            if len(self._found) >= MOST_FOLDERS:
                self._found.clear()
            self._found[folder] = sources, found
        return found


def _read(file: SourceFile) -> HookFile:
    source = reveal_name(file.path)
    content = read_source(file, MOST_BYTES)
    if content is None:
        return HookFile(problems=(HookProblem(source, 1, UNREADABLE),))
    if file.path.suffix == ".toml":
        return read_toml_hooks(content, source)
    return read_hooks(fill_root(content, file.plugin), source, is_users=file.is_users)


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


def file_hooks(setup: Setup, sources: ProjectSources, services: SupervisedServices, store: Store) -> OpenedHooks:
    """Hooks of all folders; nothing is looked at before a message is sent. No transcript where nothing is kept."""
    files = HookFiles(
        sources, SWITCHED_OFF if setup.no_hooks else "", read_given_hooks(setup), setup.paths.state / NEUTRAL / "hooks"
    )
    transcripts = None if setup.ephemeral else write_transcripts(setup.paths.state / "transcripts", store)
    return OpenedHooks(files, FileHooks(files, services, SYSTEM_CLOCK, transcripts))


def write_transcripts(folder: Path, store: Store) -> Transcripts:
    """Files of the conversations of a store, each written when a hook runs."""
    files = TranscriptFiles(folder, store)
    return Transcripts(files.path_of, files.forget)


def read_given_hooks(setup: Setup) -> HookFile:
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


MOST_NAMED: Final = 5


def hook_findings(sources: ProjectSources, cwd: Path) -> Iterator[Finding]:
    """Findings about the hooks of a folder: their number, and what is not used."""
    found = HookFiles(sources).look(cwd)
    if found.hooks:
        own = sum(hook.is_users for hook in found.hooks)
        place = f", started in {reveal_name(cwd) if sources.is_trusted(cwd) else APART}" if own else ""
        yield Finding("hooks", Health.OK, f"{pluralize(len(found.hooks), 'hook')}, {own} of them yours{place}")
    for problem in found.problems[:MOST_NAMED]:
        yield Finding("hooks", Health.NOTE, problem.sentence)
    if len(found.problems) > MOST_NAMED:
        yield Finding("hooks", Health.NOTE, f"{len(found.problems) - MOST_NAMED} more problems; /hooks lists them.")
