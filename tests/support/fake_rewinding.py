"""Going back without an engine: what a test wants is shown, what was asked is kept."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from engine.machine.states import State, is_busy
from engine.ports.files import BranchRow, Coverage, FileChange, FileKind, FileState, Restored
from engine.records import ConversationRecord
from engine.rewind.rewind import (
    BUSY,
    Changed,
    ChangedFile,
    Done,
    Preview,
    PreviewFile,
    RewindList,
    RewindPoint,
    RewindScope,
    Takeback,
)
from tools.contract import DiffDisplay

FILE = FileState(FileKind.FILE, 0o644, b"digest", 4)


def change(name: str, added: int = 0, removed: int = 0, kind: str = "~") -> FileChange:
    before, after = (None if kind == "+" else FILE), (None if kind == "-" else FILE)
    return FileChange(name.encode(), before, after, added, removed)


def point(seq: int, text: str, *files: FileChange, age: float = 60.0) -> RewindPoint:
    return RewindPoint(seq, time.time() - age, text, 0, files, Coverage())


@dataclass
class FakeRewinding:
    """Answers with what it was given."""

    found: tuple[RewindPoint, ...] = ()
    files: tuple[PreviewFile, ...] = ()
    changes: tuple[ChangedFile, ...] = ()
    coverage: Coverage = field(default_factory=Coverage)
    refusal: str = ""
    takeback: Takeback | None = None
    unfinished: int = 0
    family: tuple[BranchRow, ...] = ()
    problems: tuple[Restored, ...] = ()
    shows: str = ""
    """The conversation that going back leads to; empty: the same."""
    asked: list[tuple[object, ...]] = field(default_factory=list[tuple[object, ...]])

    def why_not(self, state: State) -> str:
        return BUSY if is_busy(state) else ""

    async def points(self, record: ConversationRecord) -> RewindList:
        return RewindList(Path(record.cwd), self.found, self.takeback, self.unfinished, max(len(self.family), 1))

    async def read_changes(self, record: ConversationRecord) -> Changed:
        return Changed(self.changes, self.coverage, self.refusal)

    async def preview(self, record: ConversationRecord, seq: int) -> Preview:
        return Preview(self.files, self.coverage, self.refusal)

    async def preview_undo(self, record: ConversationRecord) -> Preview:
        return Preview(self.files, self.coverage, self.refusal)

    async def diff(self, change: FileChange) -> DiffDisplay | None:
        return DiffDisplay(change.name, "--- a\n+++ a\n@@ -1 +1 @@\n-was here\n+is here\n", 1, 1)

    async def rewind(
        self, record: ConversationRecord, state: State, seq: int, scope: RewindScope, overwrite: Collection[bytes] = ()
    ) -> Done:
        self.asked.append(("rewind", seq, scope, tuple(sorted(overwrite))))
        return self._done(record)

    async def undo(self, record: ConversationRecord, state: State, overwrite: Collection[bytes] = ()) -> Done:
        self.asked.append(("undo", tuple(sorted(overwrite))))
        return self._done(record)

    async def switch(self, record: ConversationRecord, state: State, to: str) -> Done:
        self.asked.append(("switch", to))
        return Done(to)

    async def branches(self, record: ConversationRecord) -> Sequence[BranchRow]:
        return self.family

    async def finish(self, record: ConversationRecord, *, take_back: bool = False) -> Done:
        self.asked.append(("finish", take_back))
        return Done(record.id, 2)

    def _done(self, record: ConversationRecord) -> Done:
        return Done(self.shows or record.id, len(self.files), self.problems, "the prompt" if self.shows else "")
