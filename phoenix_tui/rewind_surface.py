"""What the screens need for going back."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from engine.machine.states import State
    from engine.ports.files import FileChange
    from engine.ports.turns import BranchRow
    from engine.records import ConversationRecord
    from engine.rewind.values import Changed, Done, Preview, RewindList, Scope
    from tools.contract import DiffDisplay


class RewindSurface(Protocol):
    """Going back in a conversation (`engine.rewind`). Raises CannotRewind, FilesError, StorageError."""

    def why_not(self, state: State) -> str:
        """Why nothing can go back now; empty where it can."""
        ...

    async def points(self, record: ConversationRecord) -> RewindList:
        """What can be gone back to, newest first."""
        ...

    async def changed(self, record: ConversationRecord) -> Changed:
        """What the conversation did to its folder until now."""
        ...

    async def preview(self, record: ConversationRecord, seq: int) -> Preview:
        """What going back to before the prompt `seq` would do to files."""
        ...

    async def preview_undo(self, record: ConversationRecord) -> Preview:
        """What undoing the last rewind would do to files."""
        ...

    async def diff(self, change: FileChange) -> DiffDisplay | None:
        """One change in full; None where it is no text."""
        ...

    async def rewind(
        self, record: ConversationRecord, state: State, seq: int, scope: Scope, overwrite: Collection[bytes] = ()
    ) -> Done:
        """Go back; files that somebody else changed stay, but for those in `overwrite`."""
        ...

    async def undo(self, record: ConversationRecord, state: State, overwrite: Collection[bytes] = ()) -> Done:
        """Take the last rewind back."""
        ...

    async def switch(self, record: ConversationRecord, state: State, to: str) -> Done:
        """Show another branch in place of this one."""
        ...

    async def branches(self, record: ConversationRecord) -> Sequence[BranchRow]:
        """Every conversation that shares messages with this one."""
        ...

    async def finish(self, record: ConversationRecord, *, take_back: bool = False) -> Done:
        """End what a crash cut off."""
        ...
