"""What the screens need of a conversation's window (`engine.executor.context_manager`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from engine.context.measure import Part
    from engine.executor.context_manager import ContextReport, Edited, SystemPrompt
    from engine.executor.requests import Receipt, Refused
    from engine.executor.reviewing import Review


class ContextSurface(Protocol):
    """What fills the window, and what can be done about it; the stored messages are never changed."""

    async def report(self) -> ContextReport:
        """What fills it now."""
        ...

    def prompt(self) -> SystemPrompt:
        """What stands before the messages of the next request."""
        ...

    async def compact(self, focus: str = "", review: Review | None = None, before: int = 0) -> Receipt:
        """Summarize older messages, or those before one of the user's messages, given by its seq.

        `focus` says what matters most, `review` shows the summary before it counts.
        """
        ...

    async def prune(self) -> Edited | Refused:
        """Shorten old tool results."""
        ...

    async def strip_images(self) -> Edited | Refused:
        """Leave every image out."""
        ...

    async def omit(self, part: Part) -> Edited | Refused:
        """Leave one part out."""
        ...

    async def put_back(self, part: Part | None = None) -> Edited | Refused:
        """Send one part whole again, or all of them."""
        ...

    async def undo(self) -> Edited | Refused:
        """Take the last edit of this sitting back."""
        ...

    async def restore(self) -> Edited | Refused:
        """Send the messages again that the newest summary stands for."""
        ...

    async def set_threshold(self, percent: int) -> None:
        """From how full a window on older messages are summarized; above 95 never."""
        ...
