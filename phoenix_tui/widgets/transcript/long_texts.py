"""Messages too long to be laid out at once: slice by slice between frames, while they are in sight."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from phoenix_tui.widgets.transcript.canvas import Canvas


def has_more(canvas: Canvas) -> bool:
    """True when a visible text is not completely laid out."""
    return any(part.stream is not None and bool(part.stream.waiting) for part in canvas.visible_parts())


def lay_more(canvas: Canvas) -> bool:
    """Lay out a slice of a visible text; False when there is none."""
    return any(drawn is not None and canvas.stack.lay_slice(slot, drawn) for slot, _, drawn in canvas.viewport.rows())
