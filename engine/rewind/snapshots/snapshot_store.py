"""The looks of a file of contents: the newest of each folder stays in memory, others are read when needed."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from uuid import uuid4

from engine.ports.files import FileChange
from engine.rewind.snapshots.contents import Contents
from engine.rewind.snapshots.folder_snapshots import NOTHING, LookAt, decode, encode
from tools.files.protected import looks_secret

FOLDERS_IN_MEMORY = 3
"""Number of folders whose newest snapshot stays in memory, about 300 bytes a file."""
STAMPS_BEHIND = 500
"""Files that may be read once more after a restart, rather than writing a look now."""


class LookBook:
    """Used by one thread. Every method may raise sqlite3.Error."""

    def __init__(self, contents: Contents) -> None:
        self._contents = contents
        self._newest: dict[bytes, tuple[str, LookAt]] = {}
        self._bases: dict[bytes, tuple[str, LookAt]] = {}
        """The whole look that the newest one is kept as a difference from."""

    def knows(self, root: bytes) -> bool:
        """True when this or another process has a snapshot of the folder."""
        return root in self._newest or bool(self._contents.newest(root))

    def newest(self, root: bytes) -> LookAt:
        """The newest look at a folder, by this process or, where there is none, by another."""
        if root in self._newest:
            return self._newest[root][1]
        look_id = self._contents.newest(root)
        if not look_id:
            return NOTHING
        look = self.load(look_id)
        self._remember(root, look_id, look)
        found = self._contents.look(look_id)
        base_id = found[0] if found else ""
        self._bases[root] = (base_id, self.load(base_id)) if base_id else (look_id, look)
        return look

    def add(self, root: bytes, now: LookAt) -> str:
        """Keep a snapshot, as the difference from the last whole one where that is little; returns its id, an old one
        where nothing has changed.
        """
        if root in self._newest and _same(self._newest[root][1], now):
            look_id = self._newest[root][0]
            self._remember(root, look_id, now)
            return look_id
        new_id = uuid4().hex
        base_id, base = self._bases.get(root, ("", NOTHING))
        data = encode(now, base) if base_id else None
        if data is None:
            base_id, data = "", encode(now, None) or b""
            self._bases[root] = (new_id, now)
        self._contents.put_look(new_id, root, base_id, data)
        self._remember(root, new_id, now)
        return new_id

    def load(self, look_id: str) -> LookAt:
        """One look. Raises LookupError where it is gone, msgspec.DecodeError where it cannot be read."""
        for known_id, look in (*self._newest.values(), *self._bases.values()):
            if known_id == look_id:
                return look
        found = self._contents.look(look_id)
        if found is None:
            raise LookupError(f"the look {look_id} is gone")
        base_id, data = found
        return decode(data, self.load(base_id) if base_id else None)

    def forget(self) -> None:
        """Keep nothing in memory."""
        self._newest.clear()
        self._bases.clear()

    def keep_only(self, changes: Sequence[FileChange], looks: Sequence[str]) -> int:
        """Drop contents that neither these nor the newest snapshot of a folder need; returns the bytes freed.

        What an earlier version kept of files that hold keys is needed by nothing.
        """
        contents = self._contents
        kept = {*looks, *(look_id for look_id, root in contents.newest_looks() if Path(os.fsdecode(root)).is_dir())}
        kept |= {base for one in tuple(kept) if (found := contents.look(one)) and (base := found[0])}
        kept |= {look_id for look_id, _ in (*self._newest.values(), *self._bases.values())}
        wanted = {
            state.content
            for change in changes
            for state in (change.before, change.after)
            if state is not None and not looks_secret(os.fsdecode(change.path))
        }
        for one in kept:
            if contents.look(one) is not None:
                seen = self.load(one).entries.items()
                wanted |= {each.state.content for path, each in seen if not looks_secret(os.fsdecode(path))}
        return contents.drop(wanted, kept)

    def shrink(self, limit: int) -> None:
        """Bring the file below `limit`: contents that no newest look needs go first, oldest ahead, then the looks at
        folders that this process does not work in, with their contents.
        """
        contents = self._contents
        if contents.size <= limit:
            return
        aim = limit * 9 // 10  # so that the next turn need not repeat it
        newest = contents.newest_looks()
        needed = {look_id: _contents_of(self.load(look_id)) for look_id, _ in newest}
        own = {look_id for look_id, _ in self._newest.values()}
        for kept in _fewer_and_fewer([look_id for look_id, _ in newest], own):
            contents.drop_oldest(aim, frozenset[bytes]().union(*(needed[one] for one in kept)))
            for look_id in needed.keys() - set(kept):
                contents.drop_look(look_id)
            if contents.size <= limit:
                return

    def _remember(self, root: bytes, look_id: str, look: LookAt) -> None:
        self._newest.pop(root, None)
        self._newest[root] = (look_id, look)
        while len(self._newest) > FOLDERS_IN_MEMORY:
            oldest = next(iter(self._newest))
            del self._newest[oldest]
            self._bases.pop(oldest, None)


def _contents_of(look: LookAt) -> frozenset[bytes]:
    return frozenset(seen.state.content for seen in look.entries.values() if seen.state.kept)


def _fewer_and_fewer(looks: Sequence[str], own: Collection[str]) -> Iterator[list[str]]:
    """All looks, then without the oldest that is not `own`, and so on."""
    kept = list(looks)
    yield kept
    for one in looks:
        if one not in own:
            kept = [each for each in kept if each != one]
            yield kept


def _same(before: LookAt, now: LookAt) -> bool:
    """True when a snapshot adds nothing: the same states, and about the same stamps to know them by."""
    if before.left_out != now.left_out or before.entries.keys() != now.entries.keys():
        return False
    new = [(before.entries[path], seen) for path, seen in now.entries.items() if before.entries[path] is not seen]
    return len(new) <= STAMPS_BEHIND and all(old.state == seen.state for old, seen in new)
