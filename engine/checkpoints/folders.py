"""`engine.ports.files.Folders`: one thread that looks, compares and restores, so that the loop stays free."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import TypeVar
from uuid import uuid4

import msgspec

from engine.checkpoints.capture import Capture, room_in
from engine.checkpoints.contents import Contents
from engine.checkpoints.counting import counted, diff_of
from engine.checkpoints.looks import NOTHING, LookAt, decode, difference, encode
from engine.checkpoints.restoring import Restoring
from engine.checkpoints.walk import MOST_ENTRIES, Stopped, TooMany, Walker
from engine.ports.files import Coverage, FileChange, FilesError, FileState, Look, Restored
from tools.contract import DiffDisplay

T = TypeVar("T")
FOLDERS_IN_MEMORY = 3
"""Of how many folders the newest look stays in memory, about 300 bytes a file."""
PACKED_AT_ONCE = 300
TRIED_AGAIN = 600.0
"""Seconds after which a folder that was too large is walked again."""
STAMPS_BEHIND = 500
"""Files that may be read once more after a restart, rather than writing a look now."""


class CheckpointFolders:
    """Contents in one file beside the attachments; `excluded` are Phoenix's own folders, which are never covered."""

    def __init__(self, file: Path, excluded: Iterable[Path] = ()) -> None:
        self._file = file
        self._excluded = frozenset(os.fsencode(os.path.realpath(path)) for path in (*excluded, file.parent))
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="checkpoints")
        self._contents: Contents | None = None
        self._stopping = Event()
        self._walkers: dict[bytes, Walker] = {}
        self._too_large: dict[bytes, float] = {}
        self._newest: dict[bytes, tuple[str, LookAt]] = {}
        self._bases: dict[bytes, tuple[str, LookAt]] = {}

    async def look(self, folder: Path) -> Look:
        """Remember the folder as it is now."""
        return await self._run(lambda: self._look(folder))

    async def warm(self, folder: Path) -> None:
        """Look, unless this process did before: ahead of the first tool, while the model thinks."""
        await self._run(lambda: None if os.fsencode(folder) in self._newest else self._look(folder))

    async def changes(self, before: str, after: str) -> tuple[FileChange, ...]:
        """How one look differs from an earlier one."""

        def job() -> tuple[FileChange, ...]:
            found = difference(self._load(before), self._load(after))
            return counted(self._kept(), tuple(found))

        return await self._run(job)

    async def states(self, folder: Path, paths: Sequence[bytes]) -> dict[bytes, FileState | None]:
        """What stands at these paths now."""

        def job() -> dict[bytes, FileState | None]:
            contents = self._kept()
            return Capture(contents, room_in(contents)).states(os.fsencode(folder), paths)

        return await self._run(job)

    async def diff(self, change: FileChange) -> DiffDisplay | None:
        """The change as a diff."""
        return await self._run(lambda: diff_of(self._kept(), change))

    async def count(self, changes: Sequence[FileChange]) -> tuple[FileChange, ...]:
        """The same changes with their lines counted."""
        return await self._run(lambda: counted(self._kept(), changes))

    async def restore(
        self, folder: Path, changes: Sequence[FileChange], made: Callable[[int], None] | None = None
    ) -> tuple[Restored, ...]:
        """Make these changes; once begun it ends, whoever waits for it."""
        return await self._run(lambda: Restoring(self._kept(), os.fsencode(folder), made).run(changes))

    async def keep_only(self, changes: Sequence[FileChange], looks: Sequence[str]) -> int:
        """Drop what nothing needs any more."""
        return await self._run(lambda: self._keep_only(changes, looks) if self._file.exists() else 0)

    async def tidy(self) -> bool:
        """Compress some of what was stored raw; False where nothing is left to do."""
        return await self._run(lambda: bool(self._kept().pack_some(PACKED_AT_ONCE)))

    async def rest(self) -> None:
        """Keep no look in memory: nothing has run for a while."""

        def job() -> None:
            self._newest.clear()
            self._bases.clear()
            self._walkers.clear()

        await self._run(job)

    async def close(self) -> None:
        """Stop looking, finish a restore, and close."""
        self._stopping.set()
        if self._contents is not None:
            await self._run(self._contents.close)
        self._thread.shutdown()

    async def _run(self, job: Callable[[], T]) -> T:
        """Do it in the thread; cancelling whoever waits does not stop it.

        Raises:
            FilesError: it cannot be done.
        """
        return await asyncio.shield(
            asyncio.get_running_loop().run_in_executor(self._thread, lambda: self._guarded(job))
        )

    def _guarded(self, job: Callable[[], T]) -> T:
        try:
            return job()
        except Stopped as error:
            raise FilesError("Phoenix closes.") from error
        except sqlite3.Error as error:
            raise FilesError(
                f"The checkpoints in {self._file} cannot be used ({error}): move that file away."
            ) from error
        except (msgspec.DecodeError, LookupError) as error:
            raise FilesError(f"A checkpoint in {self._file} cannot be read ({error}).") from error
        except (FileNotFoundError, NotADirectoryError) as error:
            raise FilesError(
                f"The folder {os.fsdecode(error.filename or '')} is gone: only the conversation can go back."
            ) from error
        except OSError as error:
            raise FilesError(f"{error.filename or 'The folder'} cannot be read: {error.strerror or error}.") from error

    def _kept(self) -> Contents:
        if self._contents is None:
            self._contents = Contents(self._file)
        return self._contents

    def _look(self, folder: Path) -> Look:
        root = os.fsencode(folder)
        walker = self._walkers.setdefault(root, Walker(root, self._excluded, self._stopping))
        refusal = f"{folder} holds more than {MOST_ENTRIES:,} files: too many to keep an eye on."
        if time.monotonic() - self._too_large.get(root, float("-inf")) < TRIED_AGAIN:
            return Look("", Coverage(refusal=refusal))
        try:
            walked = walker.walk()
        except TooMany:
            self._too_large[root] = time.monotonic()
            return Look("", Coverage(refusal=refusal))
        contents = self._kept()
        look_id, before = self._last(root)
        now = Capture(contents, room_in(contents), self._stopping).take(root, walked, before)
        if look_id and _same(before, now):
            self._remember(root, look_id, now)
            return Look(look_id, now.coverage)
        return Look(self._keep(root, now), now.coverage)

    def _keep(self, root: bytes, now: LookAt) -> str:
        """Store a look as what differs from the last whole one, or whole."""
        new_id = uuid4().hex
        base_id, base = self._bases.get(root, ("", NOTHING))
        data = encode(now, base) if base_id else None
        if data is None:
            base_id, data = "", encode(now, None) or b""
            self._bases[root] = (new_id, now)
        self._kept().put_look(new_id, root, base_id, data)
        self._remember(root, new_id, now)
        return new_id

    def _remember(self, root: bytes, look_id: str, look: LookAt) -> None:
        self._newest.pop(root, None)
        self._newest[root] = (look_id, look)
        while len(self._newest) > FOLDERS_IN_MEMORY:
            oldest = next(iter(self._newest))
            del self._newest[oldest]
            self._bases.pop(oldest, None)
            self._walkers.pop(oldest, None)

    def _last(self, root: bytes) -> tuple[str, LookAt]:
        """The newest look at a folder, by this process or, where there is none, by another."""
        if root in self._newest:
            return self._newest[root]
        look_id = self._kept().newest(root)
        look = self._load(look_id) if look_id else NOTHING
        if look_id:
            self._remember(root, look_id, look)
            found = self._kept().look(look_id)
            base_id = found[0] if found else ""
            self._bases[root] = (base_id, self._load(base_id)) if base_id else (look_id, look)
        return look_id, look

    def _load(self, look_id: str) -> LookAt:
        """One look. Raises LookupError where it is gone."""
        for known_id, look in (*self._newest.values(), *self._bases.values()):
            if known_id == look_id:
                return look
        found = self._kept().look(look_id)
        if found is None:
            raise LookupError(f"the look {look_id} is gone")
        base_id, data = found
        return decode(data, self._load(base_id) if base_id else None)

    def _keep_only(self, changes: Sequence[FileChange], looks: Sequence[str]) -> int:
        contents = self._kept()
        kept = {*looks, *(look_id for look_id, root in contents.newest_looks() if Path(os.fsdecode(root)).is_dir())}
        kept |= {base for one in tuple(kept) if (found := contents.look(one)) and (base := found[0])}
        kept |= {look_id for look_id, _ in (*self._newest.values(), *self._bases.values())}
        wanted = {state.content for change in changes for state in (change.before, change.after) if state is not None}
        for one in kept:
            if contents.look(one) is not None:
                wanted |= {seen.state.content for seen in self._load(one).entries.values()}
        return contents.drop(wanted, kept)


def _same(before: LookAt, now: LookAt) -> bool:
    """Whether a look adds nothing: the same states, and about the same stamps to know them by."""
    if before.left_out != now.left_out or before.entries.keys() != now.entries.keys():
        return False
    new = [(before.entries[path], seen) for path, seen in now.entries.items() if before.entries[path] is not seen]
    return len(new) <= STAMPS_BEHIND and all(old.state == seen.state for old, seen in new)
