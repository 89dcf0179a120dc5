"""Removed conversations: archived, or moved to the trash."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from engine.api.engine import EngineApi
from engine.machine.states import is_busy
from engine.ports import ConversationChanges


class ArchiveOutcome(Struct, frozen=True):
    """Conversations that were archived or deleted, and the number of refused ones."""

    ids: tuple[str, ...]
    deleted: bool
    running: int
    elsewhere: int
    """Open in another process."""

    def words(self, undo: str = "") -> str:
        """Result in words, with the undo, and with the refusals."""
        many = "" if len(self.ids) == 1 else f" {len(self.ids)}"
        done = f"Moved{many} to the trash" if self.deleted else f"Archived{many}"
        parts = [f"{done} · {undo}." if undo else f"{done}."] if self.ids else []
        return " ".join([*parts, *filter(None, (not_done(self.running, self.elsewhere),))])


def not_done(running: int, elsewhere: int) -> str:
    """Reason why some conversations stay unchanged; empty where none does."""
    parts: list[str] = []
    if running:
        parts.append(
            "The conversation is running; stop it first."
            if running == 1
            else f"{running} are running; stop them first."
        )
    if elsewhere:
        parts.append(f"{elsewhere} open in another Phoenix; close {'it' if elsewhere == 1 else 'them'} there.")
    return " ".join(parts)


async def archive_or_delete(engine: EngineApi, ids: Sequence[str], *, delete: bool) -> ArchiveOutcome:
    """Archive or trash those that rest. Raises StorageError."""
    running = {one.id for one in engine.live() if is_busy(one.state)}
    resting = [one for one in ids if one not in running]
    changes = ConversationChanges(deleted=True) if delete else ConversationChanges(archived=True)
    refused = await engine.bulk.change(resting, changes)
    moved = tuple(one for one in resting if one not in refused)
    for one in moved:
        await engine.forget(one)
    return ArchiveOutcome(moved, delete, len(ids) - len(resting), len(refused))
