"""Count of the lines that a change added and removed, and the change as a diff."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from engine.ports.files import FileChange, FileKind, FileState
from engine.rewind.snapshots.contents import Contents
from tools.contract import DiffDisplay
from tools.files.content import TextContent, diff_display, is_binary

MOST_COUNTED = 300
"""Changes of one turn whose lines are counted; the rest is shown without."""
MOST_BYTES = 1024 * 1024


def count_lines(contents: Contents, changes: Sequence[FileChange]) -> tuple[FileChange, ...]:
    """The same changes with their lines."""
    first = tuple(_count(contents, change) for change in changes[:MOST_COUNTED])
    return (*first, *changes[MOST_COUNTED:])


def diff_of(contents: Contents, change: FileChange) -> DiffDisplay | None:
    """The change as a diff; None where a side is no text, too large or not kept."""
    old, new = _text(contents, change.before), _text(contents, change.after)
    if old is None or new is None:
        return None
    return diff_display(change.name, old, new, created=change.before is None)


def _count(contents: Contents, change: FileChange) -> FileChange:
    diff = diff_of(contents, change)
    return change if diff is None else replace(change, added=diff.added, removed=diff.removed)


def _text(contents: Contents, state: FileState | None) -> str | None:
    if state is None:
        return ""
    if state.kind is not FileKind.FILE or not state.kept or state.size > MOST_BYTES:
        return None
    raw = contents.get(state.content)
    return None if raw is None or is_binary(raw) else TextContent.parse(raw).text
