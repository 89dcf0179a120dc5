"""The request that a panel shows: its rows for a width, and of a long command the last ones below the others."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

from msgspec.structs import replace
from textual.content import Content

from engine.updates import Question
from phoenix_tui.text.labels import Tone
from phoenix_tui.widgets.request_text import Paint, RequestRows, first_change, laid_out
from tools.contract import DiffDisplay
from tools.wording import counted

if TYPE_CHECKING:
    from phoenix_tui.text.ask_form import AskForm
    from phoenix_tui.widgets.ask_rows import AskRows

TAIL: Final = 2
"""Rows of a long command that stay in sight: its end."""
DIVIDER: Final = 1
LEAST_PINNED: Final = 7
"""Rows of room from which the end of a command gets rows of its own."""
KEPT: Final = 4
"""Layouts that are kept: with and without a scrollbar, before and behind another width."""
PaintOf: TypeAlias = Callable[[], tuple[Hashable, Paint]]
"""A name for the present colours, and the function that paints a row of a change in them."""


class RequestView:
    """Lays out one request; a layout is made once for each width and theme."""

    def __init__(self) -> None:
        self.question: Question | None = None
        self.edited = ""
        """The plan as the user changed it; empty: as it is."""
        self.pinned = False
        """True while the last rows are shown below the others, apart."""
        self.between = 0
        """Rows between those in sight and the last ones."""
        self.form: AskForm | None = None
        """Answers to questions of the model, which are shown in place of the request."""
        self._colours: PaintOf | None = None
        self._made: dict[Hashable, RequestRows] = {}

    def show(self, question: Question) -> None:
        """Another request."""
        self.question, self.pinned, self.between, self._colours, self.edited = question, False, 0, None, ""
        self._made.clear()

    def forget(self) -> None:
        """Lay the request out again: the answers in it have changed."""
        self._made.clear()

    @property
    def plan(self) -> str:
        """The plan in view; empty for any other request."""
        return self.question.request.plan if self.question is not None else ""

    def change(self, question: Question, plan: str) -> None:
        """Show the plan of `question` as the user changed it."""
        self.show(replace(question, request=replace(question.request, plan=plan)))
        self.edited = plan

    def colour(self, colours: PaintOf) -> None:
        """Put colours into a change."""
        self._colours = colours
        self._made.clear()

    def whole(self, width: int) -> RequestRows:
        """All rows for a width."""
        if self.question is None:
            return RequestRows([])
        name, paint = self._colours() if self._colours is not None else ("", None)
        made = self._made.get((width, name))
        if made is None:
            if len(self._made) >= KEPT:
                self._made.clear()
            made = RequestRows(self._form_rows(width).rows) if self.form else laid_out(self.question, width, paint)
            self._made[width, name] = made
        return made

    def _form_rows(self, width: int) -> AskRows:
        from phoenix_tui.widgets.ask_rows import AskRows  # noqa: PLC0415 - with the first question of the model

        assert self.form is not None, "asked for where there is one"
        return AskRows(self.form, width)

    def chosen_rows(self, width: int, room: int) -> tuple[int, int]:
        """First row of the selected option, and the row behind its last, or behind a preview that `room` holds."""
        if self.form is None:
            return (0, 0)
        laid = self._form_rows(width)
        first, after = laid.chosen
        return (first, len(laid.rows)) if laid.has_preview and len(laid.rows) - first <= room else (first, after)

    @property
    def is_change(self) -> bool:
        """True for a change, whose end is no more important than its middle."""
        return self.question is not None and isinstance(self.question.request.preview, DiffDisplay)

    def pin(self, width: int, room: int) -> int:
        """Decide if the last rows are shown apart, with `room` rows for all; returns the rows for the others."""
        self.pinned = (
            not self.is_change and self.form is None and room >= LEAST_PINNED and len(self.whole(width).rows) > room
        )
        return room - TAIL - DIVIDER if self.pinned else room

    def body(self, width: int) -> Sequence[Content]:
        """The rows that scroll."""
        rows = self.whole(width).rows
        return rows[:-TAIL] if self.pinned else rows

    def tail(self, width: int) -> Sequence[Content]:
        """The rows shown below, and the number of hidden ones before them."""
        if not self.pinned:
            return ()
        words = f"⋯ {counted(self.between, 'row')} between, not shown" if self.between else ""
        return [Content.styled(words, Tone.NEEDS_YOU.value), *self.whole(width).rows[-TAIL:]]

    def first_change(self, width: int) -> int:
        """The row at which a change begins to differ; the rows above it are in the file already."""
        return first_change(self.question, width) if self.question is not None else 0
