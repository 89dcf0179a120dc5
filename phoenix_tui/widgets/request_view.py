"""The request that a panel shows: its rows for a width, those that were visible, and questions of the model."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Final, TypeAlias

from msgspec.structs import replace
from textual.containers import Vertical, VerticalScroll
from textual.content import Content

from engine.updates import Question
from phoenix_tui.keys.active_keys import hint, key
from phoenix_tui.text.labels import Tone
from phoenix_tui.text.request_text import NO_ROW, AskForm
from phoenix_tui.widgets.answer_gate import AnswerGate, RowRange
from phoenix_tui.widgets.bases import Flowing, wrap_hanging
from phoenix_tui.widgets.question_text import Paint, RequestRows, first_change, lay_out
from tools.contract import DiffDisplay
from tools.wording import pluralize

TAIL: Final = 2
"""Rows of a long command that stay in sight: its end."""
DIVIDER: Final = 1
LEAST_PINNED: Final = 6
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
        self.question, self.pinned, self.between, self._colours, self.edited = question, False, 0, None, ""
        self._made.clear()

    def forget(self) -> None:
        self._made.clear()

    @property
    def plan(self) -> str:
        return self.question.request.plan if self.question is not None else ""

    def change(self, question: Question, plan: str) -> None:
        self.show(replace(question, request=replace(question.request, plan=plan)))
        self.edited = plan

    def colour(self, colours: PaintOf) -> None:
        self._colours = colours
        self._made.clear()

    def whole(self, width: int) -> RequestRows:
        if self.question is None:
            return RequestRows([])
        name, paint = self._colours() if self._colours is not None else ("", None)
        made = self._made.get((width, name))
        if made is None:
            if len(self._made) >= KEPT:
                self._made.clear()
            made = RequestRows(self._form_rows(width).rows) if self.form else lay_out(self.question, width, paint)
            self._made[width, name] = made
        return made

    def _form_rows(self, width: int) -> AskRows:

        assert self.form is not None, "asked for where there is one"
        return AskRows(self.form, width)

    def find_chosen_rows(self, width: int, room: int) -> tuple[int, int]:
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
        rows = self.whole(width).rows
        return rows[:-TAIL] if self.pinned else rows

    def tail(self, width: int) -> Sequence[Content]:
        if not self.pinned:
            return ()
        words = f"⋯ {pluralize(self.between, 'row')} between, not shown" if self.between else ""
        return [Content.styled(words, Tone.NEEDS_YOU.value), *self.whole(width).rows[-TAIL:]]

    def first_change(self, width: int) -> int:
        """The row at which a change begins to differ; the rows above it are in the file already."""
        return first_change(self.question, width) if self.question is not None else 0


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
        if getattr(self.app, "is_too_small", False):
            return True
        self._look()
        asked = self.query_one("#asked", VerticalScroll)
        refusal = self.gate.refuses(asked.size.height)
        if refusal is not None:
            asked.scroll_to(y=refusal.row, animate=False, force=True)
        self.say_more()
        return refusal is not None


OTHER: Final = "Other"
ONE: Final = ("( )", "(•)")
SEVERAL: Final = ("[ ]", "[x]")
LEAD: Final = 6
"""Cells of number and mark before a label."""
BOLD: Final = f"bold {Tone.NEEDS_YOU.value}"


class AskRows:
    """The rows of a form for one width, and which of them belong to the selected option."""

    def __init__(self, form: AskForm, width: int) -> None:
        self.rows: list[Content] = []
        self.chosen: tuple[int, int] = (0, 0)
        """First row of the selected option, and the row behind its last."""
        self._form, self._width = form, max(width, 1)
        if len(form.questions) > 1:
            tabs: list[Content] = []
            for at, asked in enumerate(self._form.questions):
                done = self._form.is_answered(at)
                mark = "✓" if done else " "
                style = "bold reverse" if at == self._form.at else Tone.QUIET.value
                tabs.append(Content.styled(f" {mark} {asked.header} ", style))
            rows: list[Content] = []
            for tab in tabs:
                if rows and rows[-1].cell_length + 1 + tab.cell_length <= self._width:
                    rows[-1] = Content.assemble(rows[-1], " ", tab)
                else:
                    rows.append(tab.truncate(self._width, ellipsis=True))
            self.rows += [*rows, Content("")]
        self.rows += Content.styled(form.question.question, "bold").wrap(self._width)
        for place in range(form.last_row + 1):
            first = len(self.rows)
            self.rows += self._option(place)
            if place == form.row:
                self.chosen = (first, len(self.rows))
        self.rows += self._quote(form.question.details)
        options = form.question.options
        places = [form.row] if form.row != NO_ROW else [one for one in range(len(options)) if form.is_chosen(one)]
        preview = self._quote(options[places[0]].preview) if len(places) == 1 and places[0] < len(options) else []
        self.has_preview = bool(preview)
        self.rows += preview

    def _option(self, place: int) -> list[Content]:
        form = self._form
        marks = SEVERAL if form.question.multi else ONE
        is_other = form.is_other(place)
        chosen = bool(form.other) if is_other else form.is_chosen(place)
        label = OTHER if is_other else form.question.options[place].label
        described = form.other or "in your own words" if is_other else form.question.options[place].description
        number = f"{place + 1} "
        line = Content.assemble(
            (number, BOLD),
            (f"{marks[chosen]} ", BOLD if chosen else ""),
            (label, "bold" if chosen else ""),
            (f"  {described}" if described else "", Tone.QUIET.value),
        )
        rows = wrap_hanging(line, LEAD, self._width)
        return [Content.styled(row.plain, "reverse") for row in rows] if place == form.row else rows

    def _quote(self, text: str) -> list[Content]:
        if not text.strip():
            return []
        rows = Content(text.rstrip()).wrap(max(self._width - 2, 1))
        return [Content(""), *(Content.assemble(("│ ", Tone.QUIET.value), row) for row in rows)]


def ask_keys(form: AskForm, *, guarded: bool, left_open: bool) -> str:
    """The keys that answer; none are named while none is taken."""
    if guarded:
        return "…"
    digits = f"{key('answer_1')}-{form.last_row + 1}" if key("answer_1") else ""
    several = len(form.questions) > 1
    does = "answers" if form.is_quick else "chooses"
    return hint(
        f"{digits} {does}" if digits else "",
        "" if form.question.only_options else ("ask_other", "own words"),
        ("ask_before ask_after", "questions") if several else "",
        "" if form.is_quick else ("ask_send", "sends all" if several else "sends"),
        ("answer_no", "closes" if left_open else "declines"),
    )
