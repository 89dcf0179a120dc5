"""Rows laid over the transcript: the prompt that stays on top, the mark of new content below."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from engine.machine.messages import Origin, Role, TextBlock
from phoenix_tui.markdown.lines import Span, Surface, TextStyle, TextTone, cells
from phoenix_tui.widgets.blocks.speech import sticky_prompt
from phoenix_tui.widgets.transcript.model import TranscriptModel
from phoenix_tui.widgets.transcript.painter import Painter

BAR: Final = "▌"
"""Mark left of every row of the block under the cursor."""
_FAR: Final = 400
"""Messages looked through for the prompt above the window."""


def is_prompt(model: TranscriptModel, seq: int) -> bool:
    """True for a person's message; False where it is not in memory."""
    message = model.messages.get(seq)
    return message is not None and message.role is Role.USER and message.origin is Origin.HUMAN


def prompt_above(model: TranscriptModel, slot: int) -> str | None:
    """The person's message that is answered at `slot`, None where it is not in memory."""
    for seq in range(slot, max(slot - _FAR, 0), -1):
        message = model.messages.get(seq)
        if message is None:
            return None
        if is_prompt(model, seq):
            return next((block.text for block in message.blocks if isinstance(block, TextBlock)), None)
    return None


class Overlays:
    """Makes the rows laid over others; the same object for the same row, so it is rendered once."""

    def __init__(self) -> None:
        self._sticky: tuple[tuple[str, Painter], Strip] | None = None
        self._mark: tuple[tuple[str, Strip, Painter], Strip] | None = None
        self._keys: tuple[tuple[tuple[Span, ...], Painter], Strip] | None = None

    def sticky(self, text: str, painter: Painter) -> Strip:
        """A prompt as the top row."""
        key = (text, painter)
        if self._sticky is None or self._sticky[0] != key:
            prompt = sticky_prompt(text, painter.width)
            spans = [span._replace(look=span.look._replace(surface=Surface.CODE)) for span in prompt]
            fill = painter.width - sum(cells(span.text) for span in spans)
            spans.append(Span(" " * max(fill, 0), TextStyle(surface=Surface.CODE)))
            self._sticky = (key, painter.spans_strip(spans))
        return self._sticky[1]

    def keys(self, spans: Sequence[Span], painter: Painter) -> Strip:
        """Actions on the block under the cursor, as the bottom row."""
        key = (tuple(spans), painter)
        if self._keys is None or self._keys[0] != key:
            tinted = [span._replace(look=span.look._replace(surface=Surface.CODE)) for span in spans]
            fill = painter.width - sum(cells(span.text) for span in tinted)
            tinted.append(Span(" " * max(fill, 0), TextStyle(surface=Surface.CODE)))
            self._keys = (key, painter.spans_strip(tinted))
        return self._keys[1]

    def mark(self, label: str, under: Strip, painter: Painter) -> Strip:
        """A row with the new content below at its right end."""
        key = (label, under, painter)
        if self._mark is None or self._mark[0][0] != label or self._mark[0][1] is not under:
            text = f" ↓ {label} "
            if cells(text) >= painter.width:
                return under
            room = painter.width - cells(text) - 1  # the scrollbar covers the last column
            style = painter.style(TextStyle(TextTone.YOU, Surface.CODE, bold=True)) + Style(
                meta={"@click": "view('bottom')"}
            )
            self._mark = (
                key,
                Strip([*under.crop(0, room), Segment(text, style), *under.crop(painter.width - 1)], painter.width),
            )
        return self._mark[1]


def barred(strip: Strip, painter: Painter) -> Strip:
    """A row of the block under the cursor: its first column is the cursor's bar."""
    return Strip([Segment(BAR, painter.style(TextStyle(TextTone.YOU, bold=True))), *strip.crop(1)], strip.cell_length)
