"""The part of a question that knows which rows of its request have been in sight, and lets no yes count before."""

from __future__ import annotations

from textual.containers import Vertical, VerticalScroll

from phoenix_tui.widgets.answer_gate import AnswerGate
from phoenix_tui.widgets.flowing import Flowing
from phoenix_tui.widgets.request_view import TAIL, RequestView
from phoenix_tui.widgets.unseen import RowRange


class RequestReading(Vertical):
    """A column with the request in `#asked` and `#request`, and its last rows in `#tail`."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = AnswerGate()
        """Gate that delays answers."""
        self.request = RequestView()
        self._remarks = ""
        """Warnings about the letters of the request."""

    def say_more(self) -> None:
        """Show what is hidden."""

    def _look(self) -> str:
        """Take in which rows are in sight, and say it where not all are."""
        asked, request = self.query_one("#asked", VerticalScroll), self.query_one("#request", Flowing)
        first, height, width = round(asked.scroll_y), asked.size.height, request.size.width
        body = len(self.request.body(width)) if width else 0
        if not body or not height or asked.virtual_size.height != body:
            return ""  # not laid out yet
        total = body + (TAIL if self.request.pinned else 0)
        last = min(first + height, body)
        seen = [RowRange(first, last), *([RowRange(body, total)] if self.request.pinned else [])]
        if self.request.is_change:
            seen.append(RowRange(0, self.request.first_change(width)))
        self.gate.seen_rows.left_out = self.request.whole(width).left_out
        self.gate.seen_rows.saw((width, total, self.request.pinned), total, seen)
        if self.request.between != body - last:
            self.request.between = body - last
            self.query_one("#tail").refresh()
        also = f" and {body + 1}-{total}" if self.request.pinned and last < body else ""
        last = total if last == body else last
        return f"rows {first + 1}-{last}{also} of {total}" if body > height or also else ""

    def refuses(self) -> bool:
        """True while a yes does not count; then the unseen rows are shown, and a sentence says so.

        None counts while the terminal is too small to show anything.
        """
        if getattr(self.app, "is_too_small", False):  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType] - Textual leaves the app's type open
            return True
        self._look()
        asked = self.query_one("#asked", VerticalScroll)
        refusal = self.gate.refuses(asked.size.height)
        if refusal is not None:
            asked.scroll_to(y=refusal.row, animate=False, force=True)
        self.say_more()
        return refusal is not None
