"""Messages too long to be laid out at once: slice by slice between frames, while they are in sight."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from phoenix_tui.widgets.transcript.canvas import Canvas
    from phoenix_tui.widgets.transcript.parts import Drawn
    from phoenix_tui.widgets.transcript.stack import Stack


def has_more(canvas: Canvas) -> bool:
    """Whether a text in sight is not all laid out."""
    return any(part.stream is not None and bool(part.stream.waiting) for part in canvas.parts_in_sight())


def lay_more(canvas: Canvas) -> bool:
    """Lay out a slice of a text in sight; False when there is none."""
    return any(drawn is not None and lay_slice(canvas.stack, slot, drawn) for slot, _, drawn in canvas.viewport.rows())


def lay_slice(stack: Stack, slot: int, drawn: Drawn) -> bool:
    """Lay out a slice of one message; False when all of it is there."""
    for part in drawn.parts:
        if part.stream is not None and part.stream.waiting:
            del part.strips[part.stream.more() :]
            stack.heights.set(slot, drawn.height)
            return True
    return False
