"""A change that waits for an answer, in the colours of its code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Final

from msgspec.structs import replace
from textual.color import Color
from textual.content import Content

from phoenix_tui.markdown.lines import TextTone
from phoenix_tui.widgets.blocks.diff_colours import coloured_rows, is_worth, language_of
from phoenix_tui.widgets.blocks.diff_layout import Coloured
from phoenix_tui.widgets.blocks.diff_rows import MOST_ROWS, DiffPiece, DiffRow, marked_runs
from tools.clean import clean_line, reveal

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


def coloured_change(rows: Sequence[DiffRow], path: str) -> Sequence[Coloured]:
    """Every row, hidden characters spelled out, in colours; none for a long change. Call it from a thread."""
    language = language_of(clean_line(path))
    if not language or len(rows) > MOST_ROWS or not is_worth(rows):
        return ()
    shown = [replace(row, text=reveal(row.text).replace(TAB_SIGN, " ")) for row in rows]
    coloured = coloured_rows(shown, language)
    return [line if _says(line) == row.text else () for line, row in zip(coloured, shown, strict=True)]


def changed_words(rows: Sequence[DiffRow]) -> list[list[tuple[int, int]]]:
    """Spans of the changed words of every row, hidden characters spelled out."""
    shown = [replace(row, text=reveal(row.text)) for row in rows[:MOST_ROWS]]
    marked = [row for old, new in marked_runs(shown) for row in (*old, *new)]
    return [_changed(row.pieces) for row in marked] + [[] for _ in rows[MOST_ROWS:]]


def _changed(pieces: Sequence[DiffPiece]) -> list[tuple[int, int]]:
    ends = list(accumulate((len(piece.text) for piece in pieces), initial=0))
    return [(ends[at], ends[at + 1]) for at, piece in enumerate(pieces) if piece.changed]


def with_words(text: Content, row: DiffRow, places: Sequence[tuple[int, int]]) -> Content:
    """One row of text with the words that changed."""
    for start, end in places:
        text = text.stylize(WORDS[row.sign], start, end)
    return text


def code_styles(variables: Mapping[str, str]) -> dict[TextTone, str]:
    """Style of each token in the theme with these variables."""
    text = Color.parse(variables["foreground"])
    styles = {tone: _half(text, Color.parse(variables[hue])) for tone, hue in HUES.items()}
    return {**styles, TextTone.QUIET: variables["text-muted"]}


def in_colours(text: Content, line: Coloured, styles: Mapping[TextTone, str]) -> Content:
    """One row of text with its tokens."""
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


def _says(line: Coloured) -> str:
    return "".join(span.text for span in line)
