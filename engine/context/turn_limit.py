"""The newest turns of a conversation, where a model is sent no more than those (SPEC CLAW-20)."""

from __future__ import annotations

from collections.abc import Sequence

from engine.machine.messages import Role, ToolResultBlock
from engine.records import StoredMessage


class TurnStarts:
    """Index of the first message of each turn; every row is read once while rows are only added."""

    def __init__(self) -> None:
        self._forget()

    def _forget(self) -> None:
        self._starts: list[int] = []
        self._read = 0
        self._last: StoredMessage | None = None
        self._turn: int | None = None
        """Number of the newest turn."""

    def first_kept(self, rows: Sequence[StoredMessage], turns: int) -> int:
        """Index of the first of the rows that belong to the newest `turns` turns; 0 for no limit."""
        if turns <= 0:
            return 0
        if self._read > len(rows) or (self._read and rows[self._read - 1] is not self._last):
            self._forget()
        for place in range(self._read, len(rows)):
            if rows[place].turn_number != self._turn and begins_turn(rows[place]):
                self._starts.append(place)
                self._turn = rows[place].turn_number
        self._read, self._last = len(rows), rows[-1] if rows else None
        return self._starts[-turns] if len(self._starts) > turns else 0


def limited(rows: Sequence[StoredMessage], turns: int) -> Sequence[StoredMessage]:
    """The rows of the newest `turns` turns; all of them for no limit."""
    first = TurnStarts().first_kept(rows, turns)
    return rows[first:] if first else rows


def begins_turn(row: StoredMessage) -> bool:
    """True for a message to the model; one of tool results alone begins no turn."""
    if row.role is not Role.USER or row.silent:
        return False
    return any(not isinstance(block, ToolResultBlock) for block in row.blocks)
