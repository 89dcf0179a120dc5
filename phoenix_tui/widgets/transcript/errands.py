"""What a transcript does between frames: running clocks, code to colour, messages to load."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from textual.timer import Timer
from textual.widget import Widget

from phoenix_tui.markdown.code import load
from phoenix_tui.widgets.transcript.canvas import Canvas
from phoenix_tui.widgets.transcript.history import History, Loader, window_for
from phoenix_tui.widgets.transcript.long_texts import has_more, lay_more
from phoenix_tui.widgets.transcript.signals import MoreNeeded

TICK_SECONDS: Final = 1.0
"""How often the clock of a running call moves."""
AGAIN_SECONDS: Final = 2.0
"""Until rows that could not be read are asked for again."""
COLOUR_SECONDS: Final = 0.02
"""Rest between two slices of code that are coloured."""


class Errands:
    """Timers and loads of one transcript; nothing of it runs while there is nothing to do."""

    def __init__(self, view: Widget, canvas: Canvas, loaded: Callable[[History], None]) -> None:
        self._view = view
        self._canvas = canvas
        self._loaded = loaded
        self.loader: Loader | None = None
        self.is_loading = False
        """Whether messages are being read."""
        self._absent: set[int] = set()
        """Slots that were asked for in vain."""
        self._ticker: Timer | None = None
        self._colouring = False

    def reset(self) -> None:
        """Another conversation, or another loader."""
        self._absent.clear()

    def see_to(self, tick: Callable[[], None], coloured: Callable[[int | None], None]) -> None:
        """Start what is needed, stop what is not; `tick` and `coloured` are called until then."""
        if not self._view.is_mounted:
            return
        running = bool(self._canvas.model.calls.running)
        if running and self._ticker is None:
            self._ticker = self._view.set_interval(TICK_SECONDS, tick)
        elif not running and self._ticker is not None:
            self._ticker.stop()
            self._ticker = None
        if not self._colouring and (self._canvas.has_plain_code() or has_more(self._canvas)):
            self._colouring = True
            self._view.set_timer(COLOUR_SECONDS, lambda: self._colour(coloured))
        self._load_missing()

    def _colour(self, coloured: Callable[[int | None], None]) -> None:
        language = self._canvas.language_to_load()
        if language:
            self._view.run_worker(self._colour_later(language, coloured), group="colour")
            return
        self._colouring = False
        if lay_more(self._canvas):
            coloured(None)
            return
        first = self._canvas.colour()
        if first is not None:
            coloured(first)

    async def _colour_later(self, language: str, coloured: Callable[[int | None], None]) -> None:
        """No key waits for the patterns of a language."""
        await asyncio.to_thread(load, language)
        self._colour(coloured)

    def _load_missing(self) -> None:
        missing = self._canvas.viewport.missing - self._absent
        window = window_for(missing, self._canvas.model.count)
        if window is None or self.is_loading:
            return
        if self.loader is None:
            self._absent |= missing
            self._view.post_message(MoreNeeded(self._view, *window))
            return
        self.is_loading = True
        self._view.run_worker(self._load(self.loader, *window), group="history")

    async def _load(self, loader: Loader, before_seq: int, limit: int) -> None:
        try:
            history = await loader(before_seq, limit)
        finally:
            self.is_loading = False
        if history is None:
            self._view.set_timer(AGAIN_SECONDS, self._load_missing)
            return
        found = {message.seq - 1 for message in history[0]}
        self._absent.update(slot for slot in range(before_seq - 1 - limit, before_seq - 1) if slot not in found)
        self._loaded(history)
