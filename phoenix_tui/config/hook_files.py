"""Hooks of each folder: those of files that the user trusts, read again when the files change."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Final

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
from engine.records import ConversationRecord
from phoenix_tui.config.sources.kinds import SourceFile, SourceKind, fill_root
from phoenix_tui.config.sources.project_sources import ProjectSources, TrustedSources, read_source
from tools.clean import reveal_name
from tools.files.own_files import make_folder

log = logging.getLogger(__name__)

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
