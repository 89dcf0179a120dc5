"""Loads messages that come into view and are not in memory, one window at a time."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Final, TypeAlias

from textual.widget import Widget

from engine.records import StoredMessage, ToolCallRecord
from phoenix_tui.widgets.transcript.canvas import Canvas
from phoenix_tui.widgets.transcript.scroller import Scroller

History: TypeAlias = tuple[Sequence[StoredMessage], Sequence[ToolCallRecord]]
Loader: TypeAlias = Callable[[int, int], Awaitable[History | None]]
"""`Conversation.history`: before_seq and limit -> messages and their calls; None where they cannot be read now."""
WINDOW: Final = 64
"""Messages loaded at once."""
AGAIN_SECONDS: Final = 2.0
"""Seconds until rows that could not be read are requested again."""


class HistoryReader:
    """Reads visible messages that the model lacks; without a loader none."""

    def __init__(self, view: Widget, canvas: Canvas, scroller: Scroller) -> None:
        self._view = view
        self._canvas = canvas
        self._scroller = scroller
        self._loader: Loader | None = None
        self._absent: set[int] = set()
        """Slots that were requested in vain."""
        self.is_reading = False

    def use(self, loader: Loader | None) -> None:
        """Set the source of older messages."""
        self._loader = loader
        self.reset()

    def reset(self) -> None:
        """Forget the requests of another conversation."""
        self._absent.clear()

    def see_to(self) -> None:
        """Read the next window of messages that are missing in sight."""
        window = window_for(self._canvas.viewport.missing - self._absent, self._canvas.model.count)
        if window is not None and self._loader is not None and not self.is_reading and self._view.is_mounted:
            self.is_reading = True
            self._view.run_worker(self._read(self._loader, *window), group="history")

    async def _read(self, loader: Loader, before_seq: int, limit: int) -> None:
        try:
            history = await loader(before_seq, limit)
        finally:
            self.is_reading = False
        if history is None:
            self._view.set_timer(AGAIN_SECONDS, self.see_to)
            return
        found = {message.seq - 1 for message in history[0]}
        self._absent.update(slot for slot in range(before_seq - 1 - limit, before_seq - 1) if slot not in found)
        self._canvas.take_history(*history)
        self._scroller.place_again()


def window_for(missing: Iterable[int], count: int) -> tuple[int, int] | None:
    """The `before_seq` and `limit` of one query around the newest missing slots; None when nothing is missing."""
    slots = [slot for slot in missing if slot < count]
    if not slots:
        return None
    newest = max(slots)
    oldest = max(min(slots), newest - WINDOW // 2)
    return newest + 2, min(max(newest - oldest + 1 + WINDOW // 2, WINDOW // 2), newest + 1)
