"""Questions of the model as rows: a tab for each, the one in view with its options, and the keys that answer."""

from __future__ import annotations

from typing import Final

from textual.content import Content

from phoenix_tui.keys.active_keys import hint, key
from phoenix_tui.text.ask_form import NO_ROW, AskForm
from phoenix_tui.text.labels import Tone
from phoenix_tui.widgets.flowing import hanging

OTHER: Final = "Other"
ONE: Final = ("( )", "(•)")
PLAIN_ONE: Final = ("( )", "(*)")
SEVERAL: Final = ("[ ]", "[x]")
LEAD: Final = 6
"""Cells of number and mark before a label."""
BOLD: Final = f"bold {Tone.NEEDS_YOU.value}"


class AskRows:
    """The rows of a form for one width, and which of them belong to the selected option."""

    def __init__(self, form: AskForm, width: int, *, plain: bool = False) -> None:
        self.rows: list[Content] = []
        self.chosen: tuple[int, int] = (0, 0)
        """First row of the selected option, and the row behind its last."""
        self._form, self._width, self._plain = form, max(width, 1), plain
        if len(form.questions) > 1:
            self.rows += [*self._tabs(), Content("")]
        self.rows += Content.styled(form.question.question, "bold").wrap(self._width)
        for place in range(form.last_row + 1):
            first = len(self.rows)
            self.rows += self._option(place)
            if place == form.row:
                self.chosen = (first, len(self.rows))
        self.rows += self._quoted(form.question.details)
        preview = self._preview()
        self.has_preview = bool(preview)
        self.rows += preview

    def _tabs(self) -> list[Content]:
        tabs: list[Content] = []
        for at, asked in enumerate(self._form.questions):
            done = self._form.is_answered(at)
            mark = ("*" if self._plain else "✓") if done else " "
            style = "bold reverse" if at == self._form.at else Tone.QUIET.value
            tabs.append(Content.styled(f" {mark} {asked.header} ", style))
        rows: list[Content] = []
        for tab in tabs:
            if rows and rows[-1].cell_length + 1 + tab.cell_length <= self._width:
                rows[-1] = Content.assemble(rows[-1], " ", tab)
            else:
                rows.append(tab.truncate(self._width, ellipsis=True))
        return rows

    def _option(self, place: int) -> list[Content]:
        form = self._form
        marks = SEVERAL if form.question.multi else PLAIN_ONE if self._plain else ONE
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
        rows = hanging(line, LEAD, self._width)
        return [Content.styled(row.plain, "reverse") for row in rows] if place == form.row else rows

    def _preview(self) -> list[Content]:
        """Preview of the selected option, else of the only chosen one."""
        form, options = self._form, self._form.question.options
        places = [form.row] if form.row != NO_ROW else [one for one in range(len(options)) if form.is_chosen(one)]
        return self._quoted(options[places[0]].preview) if len(places) == 1 and places[0] < len(options) else []

    def _quoted(self, text: str) -> list[Content]:
        """A text of others, marked in front of each row."""
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
