"""Vim's undo: a command and its text are undone as one."""

from __future__ import annotations

from textual.widgets import TextArea

from phoenix_tui.widgets.vim_state import Draft


class VimChanges:
    """Groups the edits of a text area, which keeps them in smaller pieces."""

    def __init__(self, area: TextArea) -> None:
        self._area = area
        self._depths: list[int] = []
        """Number of pieces that could be undone when each change began."""
        self._undone: list[int] = []
        """Number of pieces that each undo took back."""

    def begin(self) -> None:
        """A change begins here."""
        self._area.history.checkpoint()
        self._depths.append(self._depth())

    def forget(self) -> None:
        """Forget the changes of another text: earlier ones are undone piece by piece."""
        self._depths.clear()

    def undo(self) -> None:
        """Take the last change back."""
        depth = self._depth()
        while self._depths and self._depths[-1] >= depth:
            self._depths.pop()  # it changed nothing, or was undone in another way
        wanted = self._depths.pop() if self._depths else max(depth - 1, 0)
        if not self._area.history.redo_stack:
            self._undone.clear()
        self._undone.append(depth - wanted)
        for _ in range(depth - wanted):
            self._area.action_undo()

    def redo(self) -> None:
        """Redo the last undone change."""
        if not self._area.history.redo_stack:
            return
        self._depths.append(self._depth())
        for _ in range(self._undone.pop() if self._undone else 1):
            self._area.action_redo()

    def _depth(self) -> int:
        return len(self._area.history.undo_stack)


def written(before: Draft, text: str) -> str | None:
    """Text inserted at one place of a draft; None when more has changed than that."""
    head, tail = before.text[: before.at], before.text[before.at :]
    longer = len(text) >= len(before.text)
    inside = longer and text.startswith(head) and text.endswith(tail)
    return text[before.at : len(text) - len(tail)] if inside else None
