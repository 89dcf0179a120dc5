"""Text of a question: the whole request with nothing hidden, place, reason, answers (docs/decisions/looks.md)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

from msgspec.structs import replace
from textual.color import Color
from textual.content import Content

from engine.machine.texts import OUTSIDE
from engine.updates import Question
from phoenix_tui.keys.active_keys import hint, key
from phoenix_tui.markdown.lines import TextTone, breaks
from phoenix_tui.text.labels import Tone, short_path
from phoenix_tui.text.request_text import (
    END,
    LEFT_OPEN,
    LONGEST,
    MOST_BLANK,
    NO_APPROVAL,
    both_ends,
    describe_request,
    fold_blanks,
    list_answers,
    mode_words,
    one_line,
    sentence_of,
)
from phoenix_tui.widgets.answer_keys import PLAN_ANSWERS
from phoenix_tui.widgets.bases import wrap_hanging
from phoenix_tui.widgets.blocks.diff import Coloured, colour_rows, is_worth, language_of
from phoenix_tui.widgets.blocks.diff_rows import GAP, MOST_ROWS, DiffPiece, DiffRow, diff_rows, mark_runs
from tools.clean import clean_line, reveal
from tools.contract import DiffDisplay, ToolClass
from tools.displays import question_lines
from tools.look_alikes import in_order, suspects

NONE: Final = -1
"""The place of the lit answer where none is."""
LIT: Final = "› "
"""Sign of the answer that Enter gives."""
END_GAP: Final = 3
"""Cells between a question and the words at the end of its row."""
GUARDED: Final = "·"
"""Replacement of a letter that is not taken yet."""
ACTIONS: Final = {letter: name for name, letter in PLAN_ANSWERS.items() if not letter.isdecimal()}
"""The actions whose keys give an answer, by its letter."""


def what_text(question: Question, *, own: bool = True) -> Content:
    """The question, in one sentence; of a change also how much of it. One of another conversation names who asks."""
    asker = clean_line(question.asker)
    if asked := question.request.questions:
        asks = f" asks you {len(asked)} questions" if len(asked) > 1 else " asks you"
        return Content.assemble((asker or "The agent", "bold"), asks if question.server else f"{asks} · {NO_APPROVAL}")
    what = Content.styled(sentence_of(question), "bold")
    change = question.request.preview
    if isinstance(change, DiffDisplay):
        counts = ((f"  +{change.added}", Tone.GOOD.value), (f" -{change.removed}", Tone.BAD.value))
        what = Content.assemble(what, *counts)
    return Content.assemble(f"{asker}: ", what) if asker and not own else what


def heading_rows(sign: Content, what: Content, end: str, width: int) -> Sequence[Content]:
    """The question behind its sign, and words at the right end, or below it where they have no room."""
    line = Content.assemble(sign, what)
    gap = width - line.cell_length - Content(end).cell_length
    if end and gap >= END_GAP:
        return [Content.assemble(line, " " * gap, (end, Tone.QUIET.value))]
    rows = wrap_hanging(line, sign.cell_length, width)
    quiet = Content.assemble(" " * sign.cell_length, (end, Tone.QUIET.value))
    return [*rows, *wrap_hanging(quiet, sign.cell_length, width)] if end else rows


def mode_note(question: Question) -> str:
    """Words about a question that the mode alone asks, and the key of the mode in which it does not."""
    words = mode_words(question)
    accepts = (
        ("mode", "accept edits") if question.tool_class is ToolClass.EDIT and " ask mode" in question.reason else ""
    )
    return hint(words, accepts) if words else ""


def where_text(question: Question, folder: Path, *, is_elsewhere: bool = False) -> str:
    """Paths outside of the folder and the reason; the folder where it is not that of the conversation in view."""
    if question.left_open:
        return LEFT_OPEN
    outside = [path for path in question.request.paths if not path.is_relative_to(folder)]
    parts = [f"in {one_line(short_path(folder))}"] if is_elsewhere else []
    if outside:
        begin = "outside it" if is_elsewhere else "outside the folder"
        parts.append(f"{begin}: " + ", ".join(one_line(str(path)) for path in outside))
    if question.reason and not mode_words(question) and not (outside and question.reason.startswith(OUTSIDE)):
        parts.append(one_line(question.reason))
    return " · ".join(parts)


def answer_rows(
    question: Question, width: int, *, guarded: bool = False, lit: int = 0, chosen: bool = False
) -> list[Content]:
    """One answer a row: its key, then its words, wrapped below their beginning.

    Without the keys, `guarded`, they keep their places. The row `lit` is the one that Enter gives; `chosen`: while the
    question has the focus.
    """
    rows: list[Content] = []
    for place, answer in enumerate(list_answers(question)):
        letter = key(ACTIONS[answer.letter]) or key(f"answer_{place + 1}")
        style = Tone.QUIET.value if guarded else f"bold {Tone.NEEDS_YOU.value}"
        sign = LIT if place == lit else " " * len(LIT)
        words = (answer.shown, "bold" if place == lit else "")
        line = Content.assemble((sign, style), (GUARDED * len(letter) if guarded else letter, style), "  ", words)
        wrapped = wrap_hanging(line, len(LIT) + len(letter) + 2, width)
        rows += [Content.styled(row.plain, "reverse") for row in wrapped] if chosen and place == lit else wrapped
    return rows


def rule_effect(question: Question, rule: str, folder: Path) -> tuple[str, str]:
    """Reason why this rule cannot be kept for the call, else its effect and the keys that keep it."""
    from engine.permissions.rules import RuledCall, meaning, refusal  # noqa: PLC0415 - 1.5 ms of the first frame

    call = RuledCall(question.call.name, question.tool_class, question.request, folder)
    if why := refusal(rule, call):
        return why, ""
    keeps = hint("Enter allows in this project", ("rule_everywhere", "everywhere"), "Tab in this conversation")
    return "", f"{meaning(rule, call)}\n{keeps}"


TINTS: Final = {"+": (Tone.GOOD.value, "on $success 12%"), "-": (Tone.BAD.value, "on $error 12%")}
ODD: Final = f"bold reverse {Tone.NEEDS_YOU.value}"
"""Look of a character that may be taken for another."""
MOST_MARKED: Final = 200
"""Highlighted characters; beyond that a sentence is enough."""
LONGEST_ROW: Final = 4_000
"""Characters of one line of a change that are laid out: its beginning and its end."""
MOST_REQUEST_ROWS: Final = 1_000
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


def request_rows(question: Question, width: int) -> list[Content]:
    """The command or the change, every hidden character spelled out."""
    return lay_out(question, width).rows


def lay_out(question: Question, width: int, paint: Paint | None = None) -> RequestRows:
    """The command or the change as rows, and a note about a part too long for them."""
    preview = question.request.preview
    if plan := question.request.plan:
        from phoenix_tui.markdown.layout import heft  # noqa: PLC0415 - with the first plan
        from phoenix_tui.widgets.markdown_rows import markdown_rows  # noqa: PLC0415 - likewise

        if heft(plan) <= MOST_PLAN_WORK:
            return RequestRows(list(markdown_rows(plan, width, most_work=0)))
        return RequestRows(break_rows(_mark_text(reveal(plan)).rstrip(), width))
    if isinstance(preview, DiffDisplay) and (rows := list(diff_rows(preview.diff))):
        return _change(rows, width, paint)
    if asked := question.request.questions:
        return RequestRows(break_rows(Content("\n".join(question_lines(asked))), width))
    text, left_out = both_ends(describe_request(question), LONGEST)
    return RequestRows(break_rows(_mark_text(fold_blanks(reveal(text))).rstrip(), width), left_out)


def first_change(question: Question, width: int) -> int:
    """The row at which a change begins to differ from the file; 0 for other requests."""
    preview = question.request.preview
    rows = list(diff_rows(preview.diff)) if isinstance(preview, DiffDisplay) else []
    place = next((place for place, row in enumerate(rows) if row.sign in TINTS), 0)
    digits = max((len(str(row.number)) for row in rows), default=1)
    above = rows[: min(place, _room(rows)[0])]
    return sum(len(_diff_row(row, Content(_show_row(row)), digits, width)) for row in above)


def break_rows(content: Content, width: int, *, hard: bool = False) -> list[Content]:
    """The rows of a text, none wider than `width`; Textual's `fold` makes one row of a line of combining marks."""
    rows: list[Content] = []
    start = 0
    for line in content.plain.split("\n"):
        for row in breaks(line, max(width, 1), hard=hard):
            first, after = start + row.start, start + row.end
            rows.append(content[first:after] if content.spans else Content(content.plain[first:after]))
        start += len(line) + 1
    return rows


def _mark_text(text: str) -> Content:
    """Text whose right-to-left words stay in their order and whose look-alikes are highlighted."""
    text = in_order(text)
    content = Content(text)
    for suspect in suspects(text)[:MOST_MARKED]:
        content = content.stylize(ODD, suspect.place, suspect.place + 1)
    return content


def _show_row(row: DiffRow) -> str:
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
            text = Content(_show_row(rows[place]))
            lines += _diff_row(rows[place], text if paint is None else paint(place, text), digits, width)
    return RequestRows(lines, end - most)


def _room(rows: Sequence[DiffRow]) -> tuple[int, int]:
    """End of the first rows and start of the last rows that are laid out of a change; both are its length when all of
    it is.
    """
    if len(rows) <= MOST_REQUEST_ROWS and sum(len(row.text) for row in rows) <= LONGEST:
        return len(rows), len(rows)
    most = _count_fitting(rows, MOST_REQUEST_ROWS - MOST_REQUEST_ROWS // END, LONGEST - LONGEST // END)
    return most, len(rows) - _count_fitting(rows[most:][::-1], MOST_REQUEST_ROWS // END, LONGEST // END)


def _count_fitting(rows: Sequence[DiffRow], most: int, longest: int) -> int:
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
    for text in break_rows(whole, room, hard=True):
        number = f"{row.number:>{digits}} " if not lines else " " * (digits + 1)
        sign = f"{row.sign} " if not lines else "  "
        line = Content.assemble((number, Tone.QUIET.value), (sign, tone), text, " " * max(room - text.cell_length, 0))
        lines.append(line.stylize_before(tint) if tint else line.rstrip())
    return lines


HUES: Final = {
    TextTone.KEYWORD: "primary",
    TextTone.STRING: "success",
    TextTone.NUMBER: "warning",
    TextTone.NAME: "accent",
}
"""Hue of the theme for a token, mixed half and half with the text, as in the transcript."""
WORDS: Final = {"+": "bold on $success 25%", "-": "bold on $error 25%"}
"""Style of changed words: on the tint of the row the 34 % of the transcript."""
TAB_SIGN: Final = "␉"
"""Sign of `reveal` for a tab: no lexer knows it."""


def colour_change(rows: Sequence[DiffRow], path: str) -> Sequence[Coloured]:
    """Every row, hidden characters spelled out, in colours; none for a long change. Call it from a thread."""
    language = language_of(clean_line(path))
    if not language or len(rows) > MOST_ROWS or not is_worth(rows):
        return ()
    shown = [replace(row, text=reveal(row.text).replace(TAB_SIGN, " ")) for row in rows]
    coloured = colour_rows(shown, language)
    return [
        line if "".join(span.text for span in line) == row.text else ()
        for line, row in zip(coloured, shown, strict=True)
    ]


def find_changed_words(rows: Sequence[DiffRow]) -> list[list[tuple[int, int]]]:
    """Spans of the changed words of every row, hidden characters spelled out."""
    shown = [replace(row, text=reveal(row.text)) for row in rows[:MOST_ROWS]]
    marked = [row for old, new in mark_runs(shown) for row in (*old, *new)]
    return [_find_changed(row.pieces) for row in marked] + [[] for _ in rows[MOST_ROWS:]]


def _find_changed(pieces: Sequence[DiffPiece]) -> list[tuple[int, int]]:
    ends = list(accumulate((len(piece.text) for piece in pieces), initial=0))
    return [(ends[at], ends[at + 1]) for at, piece in enumerate(pieces) if piece.changed]


def with_words(text: Content, row: DiffRow, places: Sequence[tuple[int, int]]) -> Content:
    for start, end in places:
        text = text.stylize(WORDS[row.sign], start, end)
    return text


def code_styles(variables: Mapping[str, str]) -> dict[TextTone, str]:
    text = Color.parse(variables["foreground"])
    styles = {tone: _half(text, Color.parse(variables[hue])) for tone, hue in HUES.items()}
    return {**styles, TextTone.QUIET: variables["text-muted"]}


def in_colours(text: Content, line: Coloured, styles: Mapping[TextTone, str]) -> Content:
    place = 0
    for span in line:
        style = styles.get(span.look.tone, "")
        if style:
            text = text.stylize(style, place, place + len(span.text))
        place += len(span.text)
    return text


def _half(text: Color, hue: Color) -> str:
    mixes = text.ansi is None and hue.ansi is None
    return text.blend(hue, 0.5, 1.0).hex if mixes else ""
