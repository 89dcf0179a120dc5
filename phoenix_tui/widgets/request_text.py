"""The request of a question as rows: nothing hidden, odd characters marked, runs of blanks folded and counted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from typing import Final, NamedTuple, TypeAlias

from textual.content import Content

from engine.updates import Question
from phoenix_tui.text.labels import Tone
from phoenix_tui.text.request_summary import END, LONGEST, MOST_BLANK, both_ends, folded, text_asked
from phoenix_tui.widgets.blocks.diff_rows import GAP, DiffRow, diff_rows
from tools.asked_questions import lines_of
from tools.clean import reveal
from tools.contract import DiffDisplay
from tools.look_alikes import in_order, suspects

TINTS: Final = {"+": (Tone.GOOD.value, "on $success 12%"), "-": (Tone.BAD.value, "on $error 12%")}
ODD: Final = f"bold reverse {Tone.NEEDS_YOU.value}"
"""Look of a character that may be taken for another."""
MOST_MARKED: Final = 200
"""Highlighted characters; beyond that a sentence is enough."""
LONGEST_ROW: Final = 4_000
"""Characters of one line of a change that are laid out: its beginning and its end."""
MOST_ROWS: Final = 1_000
"""Lines of a change that are laid out: its beginning and its end."""
MOST_PLAN_WORK: Final = 250_000
"""Work (`heft`) of laying out a plan, 0.2 s at most; one with more signs is shown as it is written."""
Paint: TypeAlias = Callable[[int, Content], Content]
"""Puts the colours of its code into the text of one row of a change, by the number of the row."""


class RequestRows(NamedTuple):
    """The rows of a request for one width, and how much of it is not among them."""

    rows: list[Content]
    left_out: int = 0
    """Characters of a command, lines of a change that are too many to be laid out."""


def request_rows(question: Question, width: int, paint: Paint | None = None) -> list[Content]:
    """The command or the change, every hidden character spelled out."""
    return laid_out(question, width, paint).rows


def laid_out(question: Question, width: int, paint: Paint | None = None) -> RequestRows:
    """The command or the change as rows, and a note about a part too long for them."""
    preview = question.request.preview
    if plan := question.request.plan:
        from phoenix_tui.markdown.bounded import heft  # noqa: PLC0415 - with the first plan
        from phoenix_tui.widgets.markdown_rows import markdown_rows  # noqa: PLC0415 - likewise

        if heft(plan) <= MOST_PLAN_WORK:
            return RequestRows(list(markdown_rows(plan, width, most_work=0)))
        return RequestRows(broken(_marked(reveal(plan)).rstrip(), width))
    if isinstance(preview, DiffDisplay) and (rows := list(diff_rows(preview.diff))):
        return _change(rows, width, paint)
    if asked := question.request.questions:
        return RequestRows(broken(Content("\n".join(lines_of(asked))), width))
    text, left_out = both_ends(text_asked(question), LONGEST)
    return RequestRows(broken(_marked(folded(reveal(text))).rstrip(), width), left_out)


def first_change(question: Question, width: int) -> int:
    """The row at which a change begins to differ from the file; 0 for other requests."""
    preview = question.request.preview
    rows = list(diff_rows(preview.diff)) if isinstance(preview, DiffDisplay) else []
    place = next((place for place, row in enumerate(rows) if row.sign in TINTS), 0)
    digits = max((len(str(row.number)) for row in rows), default=1)
    above = rows[: min(place, _room(rows)[0])]
    return sum(len(_diff_row(row, Content(_shown(row)), digits, width)) for row in above)


def broken(content: Content, width: int, *, hard: bool = False) -> list[Content]:
    """The rows of a text, none wider than `width`; Textual's `fold` makes one row of a line of combining marks."""
    from phoenix_tui.markdown.wrap import breaks  # noqa: PLC0415 - not loaded before the first frame

    rows: list[Content] = []
    start = 0
    for line in content.plain.split("\n"):
        for row in breaks(line, max(width, 1), hard=hard):
            first, after = start + row.start, start + row.end
            rows.append(content[first:after] if content.spans else Content(content.plain[first:after]))
        start += len(line) + 1
    return rows


def _marked(text: str) -> Content:
    """Text whose right-to-left words stay in their order and whose look-alikes are highlighted."""
    text = in_order(text)
    content = Content(text)
    for suspect in suspects(text)[:MOST_MARKED]:
        content = content.stylize(ODD, suspect.place, suspect.place + 1)
    return content


def _shown(row: DiffRow) -> str:
    return reveal(both_ends(row.text, LONGEST_ROW)[0])


def _change(rows: Sequence[DiffRow], width: int, paint: Paint | None) -> RequestRows:
    digits = max(len(str(row.number)) for row in rows)
    lines: list[Content] = []
    most, end = _room(rows)
    for first, after in _stretches(rows, most, end):
        row = rows[first]
        if after - first > MOST_BLANK:
            what = "lines" if first == most else "blank lines"
            fold = Content.styled(f"⟨{after - first:,} {what}⟩", Tone.QUIET.value)
            lines += _diff_row(row, fold, digits, width)
            continue
        for place in range(first, after):
            text = Content(_shown(rows[place]))
            lines += _diff_row(rows[place], text if paint is None else paint(place, text), digits, width)
    return RequestRows(lines, end - most)


def _room(rows: Sequence[DiffRow]) -> tuple[int, int]:
    """End of the first rows and start of the last rows that are laid out of a change; both are its length when all of
    it is.
    """
    if len(rows) <= MOST_ROWS and sum(len(row.text) for row in rows) <= LONGEST:
        return len(rows), len(rows)
    most = _fitting(rows, MOST_ROWS - MOST_ROWS // END, LONGEST - LONGEST // END)
    return most, len(rows) - _fitting(rows[most:][::-1], MOST_ROWS // END, LONGEST // END)


def _fitting(rows: Sequence[DiffRow], most: int, longest: int) -> int:
    """Number of the first rows that fit into these bounds; at least one of any."""
    lengths = accumulate(min(len(row.text), LONGEST_ROW) for row in rows[:most])
    return max(sum(1 for length in lengths if length <= longest), min(len(rows), 1))


def _stretches(rows: Sequence[DiffRow], most: int, end: int) -> Iterator[tuple[int, int]]:
    """Ranges of rows: blank ones of one sign together, left out ones together, each other row alone."""
    place = 0
    while place < len(rows):
        after = place + 1
        if place == most and end > most:
            after = end
        elif not rows[place].text.strip() and rows[place].sign != GAP:
            limit = most if place < most else len(rows)
            while after < limit and rows[after].sign == rows[place].sign and not rows[after].text.strip():
                after += 1
        yield place, after
        place = after


def _diff_row(row: DiffRow, whole: Content, digits: int, width: int) -> list[Content]:
    """One line as the transcript draws it, but wrapped: nothing of it is cut."""
    if row.sign == GAP:
        return [Content.styled(f"{' ' * digits} ⋯", Tone.QUIET.value)]
    tone, tint = TINTS.get(row.sign, ("", ""))
    lead = digits + 3
    room = max(width - lead, 1)
    lines: list[Content] = []
    for text in broken(whole, room, hard=True):
        number = f"{row.number:>{digits}} " if not lines else " " * (digits + 1)
        sign = f"{row.sign} " if not lines else "  "
        line = Content.assemble((number, Tone.QUIET.value), (sign, tone), text, " " * max(room - text.cell_length, 0))
        lines.append(line.stylize_before(tint) if tint else line.rstrip())
    return lines
