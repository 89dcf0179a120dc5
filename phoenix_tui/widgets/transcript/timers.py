"""Work of a transcript between frames: running clocks, code to colour, long texts to lay out."""

from __future__ import annotations

import asyncio
from typing import Final

from textual.widget import Widget

from phoenix_tui.markdown.code import CodeJob
from phoenix_tui.widgets.blocks.diff_colours import DiffJob
from phoenix_tui.widgets.still import Ticker
from phoenix_tui.widgets.transcript.canvas import Canvas
from phoenix_tui.widgets.transcript.frames import Frames
from phoenix_tui.widgets.transcript.long_texts import has_more, lay_more
from phoenix_tui.widgets.transcript.scroller import Scroller

TICK_SECONDS: Final = 1.0
"""Seconds between the ticks of a running call's clock."""
COLOUR_SECONDS: Final = 0.02
"""Rest between two slices of code that are coloured."""


class TranscriptTimers:
    """Timers of one transcript; nothing of it runs while there is nothing to do."""

    def __init__(self, view: Widget, canvas: Canvas, scroller: Scroller, frames: Frames) -> None:
        self._view = view
        self._canvas = canvas
        self._scroller = scroller
        self._frames = frames
        self._clock = Ticker(view, TICK_SECONDS, self._tick)
        self._colouring = False

    def see_to(self) -> None:
        """Start the needed work, stop the rest."""
        if not self._view.is_mounted:
            return
        self._clock.run(bool(self._canvas.model.calls.running))
        if not self._colouring and (self._canvas.has_plain_code() or has_more(self._canvas)):
            self._colouring = True
            self._view.set_timer(COLOUR_SECONDS, self._colour)

    def _tick(self) -> None:
        self._canvas.model.calls.touch_running()
        self._frames.request()

    def _colour(self) -> None:
        job = self._canvas.job_to_lex()
        if job is not None:
            self._view.run_worker(self._colour_later(job), group="colour")
            return
        self._colouring = False
        if lay_more(self._canvas):
            self._scroller.place_again()
            return
        first = self._canvas.colour()
        if first is not None:
            self._scroller.paint_from(first)
            self.see_to()

    async def _colour_later(self, job: CodeJob | DiffJob) -> None:
        """Colour later, so that no key waits for the lexing process."""
        await asyncio.to_thread(job.lex)
        self._colour()
