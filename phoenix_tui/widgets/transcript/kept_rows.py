"""The rows of before, shown while the messages one went to are read, so that a jump never blinks."""

from __future__ import annotations

from typing import Final

from textual.strip import Strip
from textual.timer import Timer
from textual.widget import Widget

from phoenix_tui.widgets.transcript.canvas import Canvas
from phoenix_tui.widgets.transcript.history import HistoryReader
from phoenix_tui.widgets.transcript.painter import Painter

PATIENCE: Final = 0.15
"""Seconds after which a row says that messages are being read."""


class KeptRows:
    """Holds the last rows that were whole; nothing of it runs while nothing is read."""

    def __init__(self, view: Widget, canvas: Canvas, history: HistoryReader) -> None:
        self._view = view
        self._canvas = canvas
        self._history = history
        self.is_late = False
        """True while a row says that visible messages are still being read."""
        self._whole: tuple[Painter, list[Strip]] | None = None
        self._holding: Timer | None = None

    def forget(self) -> None:
        """Another conversation is shown: its rows have no before."""
        self._whole = None
        self._let_go()

    def see_to(self) -> None:
        """The window was placed: hold the rows of before while some in sight are still to come."""
        if not self._history.is_reading or not self._canvas.viewport.has_gap:
            self._let_go()
        elif self._holding is None and not self.is_late:
            self._holding = self._view.set_timer(PATIENCE, self._say_so)

    def painted(self, rows: list[Strip], painter: Painter) -> None:
        """Keep these painted rows."""
        if not self._canvas.viewport.has_gap:
            self._whole = (painter, rows)

    def instead(self, painter: Painter, height: int) -> list[Strip] | None:
        """The rows of before, None where those in sight are to be painted."""
        if self._holding is None or self._whole is None:
            return None
        made_by, rows = self._whole
        return rows if made_by is painter and len(rows) == height else None

    def _say_so(self) -> None:
        self._let_go()
        self.is_late = True
        self._view.refresh()

    def _let_go(self) -> None:
        self.is_late = False
        if self._holding is not None:
            self._holding.stop()
            self._holding = None
