"""Note for the model after a rewind of files alone: its memory of them is outdated."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from engine.machine.messages import Origin, Role
from engine.ports.files import FileState, same_state
from engine.ports.turns import FileStep, TurnLog
from engine.records import StoredMessage
from tools.clean import clean_line

NAMED: Final = 20
"""Files that are named; of more the number is given."""


async def files_note(log: TurnLog, conversation_id: str, rows: Sequence[StoredMessage]) -> str:
    """The note for the turn that `rows` end with, which follows a restore; empty where none came ahead of it.

    It goes with every request of that turn and is stored in no message (SPEC UNI-33). Raises StorageError.
    """
    return worded(changed_paths(await log.restored(conversation_id, _before_the_turn(rows))))


def _before_the_turn(rows: Sequence[StoredMessage]) -> int:
    """The seq of the last reply ahead of the newest message of the user."""
    asked = next((place for place in reversed(range(len(rows))) if rows[place].origin is Origin.HUMAN), len(rows))
    replies = (rows[place].seq for place in reversed(range(asked)) if rows[place].role is Role.ASSISTANT)
    return next(replies, rows[0].seq - 1 if rows else 0)


def changed_paths(steps: Sequence[FileStep]) -> list[str]:
    """The files that are another than before these restores; one that was undone changed nothing."""
    net: dict[str, tuple[FileState | None, FileState | None]] = {}
    for step in steps:
        for change in step.changes:
            if not change.only_folder:
                first = net[change.name][0] if change.name in net else change.before
                net[change.name] = (first, change.after)
    return sorted(name for name, (before, after) in net.items() if not same_state(before, after))


def worded(names: Sequence[str]) -> str:
    """One note, empty without files."""
    if not names:
        return ""
    listed = ", ".join(clean_line(name) for name in names[:NAMED])
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return (
        f"[The user put files back to an earlier state since your last reply: {listed}{more}. What you read or wrote"
        " of them before may no longer be there: read them again before you rely on it.]"
    )
