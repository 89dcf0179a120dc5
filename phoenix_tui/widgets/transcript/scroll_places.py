"""Scroll position of each conversation when it was left: the row at the top, for coming back to it."""

from __future__ import annotations

from msgspec import Struct

from phoenix_tui.widgets.transcript.canvas import Canvas
from phoenix_tui.widgets.transcript.model import TranscriptModel, shows_nothing


class _Place(Struct, frozen=True):
    slot: int
    row: int
    count: int
    """Messages there were."""


class ScrollPlaces:
    """The places of the conversations one transcript has shown; those left at their end have none."""

    def __init__(self) -> None:
        self._places: dict[str, _Place] = {}

    def leave(self, canvas: Canvas) -> None:
        """Remember the scroll position of the conversation in view."""
        record, viewport = canvas.model.conversation, canvas.viewport
        if record is None:
            return
        self._places.pop(record.id, None)
        if not viewport.following:
            self._places[record.id] = _Place(viewport.slot, viewport.row, canvas.model.count)

    def come_back(self, canvas: Canvas) -> bool:
        """Go where the conversation in view was left, in this process or an earlier one; False for its end."""
        record = canvas.model.conversation
        if record is None:
            return False
        place = self._places.get(record.id)
        if place is not None:
            canvas.viewport.stand_at(place.slot, place.row)
            canvas.new_below = _new_since(canvas.model, place.count)
        elif 0 < record.scroll_seq <= canvas.model.count:
            canvas.viewport.stand_at(record.scroll_seq - 1)
        return not canvas.viewport.following


def seq_at_top(canvas: Canvas) -> int:
    """The message at the top as it is stored, 0 at the end."""
    return 0 if canvas.viewport.following else canvas.viewport.slot + 1


def _new_since(model: TranscriptModel, count: int) -> int:
    newer = (model.messages.get(seq) for seq in range(count + 1, model.count + 1))
    return sum(message is None or not shows_nothing(message) for message in newer)
