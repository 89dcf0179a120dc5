"""Preview of a conversation: its newest prompt and answer, or the question that is open."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from textual.content import Content

from engine.machine.messages import Origin, Role
from engine.records import ConversationSummary, StoredMessage
from engine.updates import Question
from phoenix_tui.text.labels import Tone
from phoenix_tui.text.request_summary import odd_in
from phoenix_tui.widgets.question_text import what_text, where_text
from phoenix_tui.widgets.request_text import request_rows
from phoenix_tui.widgets.transcript.model import text_of
from tools.clean import clean, clean_line

if TYPE_CHECKING:
    from phoenix_tui.markdown.lines import TextStyle

LONGEST: Final = 8_000
"""Characters of the newest words that are shown: their end."""
MOST_WORK: Final = 24_000
"""Work (`heft`) of laying them out, at most about 40 ms: they are laid out ten times a second while they arrive."""
INDENT: Final = 2
TONES: Final = ("", *(tone.value for tone in (Tone.QUIET, Tone.YOU, Tone.WORK, Tone.NEEDS_YOU, Tone.GOOD, Tone.BAD)))
"""Tones by their number in `markdown.lines`; those of code stay plain here."""


def newest_rows(
    row: ConversationSummary, messages: Sequence[StoredMessage], live: str, failed: bool, width: int
) -> Sequence[Content]:
    """The prompt, where the title does not show it already, and the answer so far; `live` may be the reason of a
    failure.
    """
    said = next((clean_line(text_of(one)[:LONGEST]) for one in reversed(messages) if one.origin is Origin.HUMAN), "")
    answers = (text for one in reversed(messages) if one.role is Role.ASSISTANT and (text := text_of(one)))
    words = live or next(answers, "")
    rows: list[Content] = []
    if said and said[: len(row.title)] != clean_line(row.title):
        prompt = Content.assemble(("┃ ", Tone.YOU.value), (said, "bold"))
        rows.append(prompt.truncate(width, ellipsis=True))
    if not words:
        nothing = "No answer yet." if said else "No messages yet."
        return [*rows, Content.styled(f"{' ' * INDENT}{nothing}", Tone.QUIET.value)]
    if failed:
        return [
            *rows,
            *(
                Content.styled(f"  {one}", Tone.BAD.value)
                for one in Content(clean(words[-LONGEST:])).wrap(width - INDENT)
            ),
        ]
    return [*rows, *markdown_rows(words[-LONGEST:], width)]


def question_rows(question: Question, row: ConversationSummary, width: int) -> Sequence[Content]:
    """The whole request."""
    where = Content.styled(where_text(question, row.cwd), Tone.QUIET.value).wrap(width)
    odd = Content.styled("\n".join(odd_in(question)), Tone.NEEDS_YOU.value).wrap(width) if odd_in(question) else []
    return [Content(what_text(question).plain.lstrip()), *odd, *request_rows(question, width), *where]


@lru_cache(maxsize=4)
def markdown_rows(text: str, width: int) -> tuple[Content, ...]:
    """The end of an answer as the transcript lays it out, indented; code stays plain."""
    # The parser loads with the first preview.
    from phoenix_tui.markdown.bounded import last_piece  # noqa: PLC0415 - as said
    from phoenix_tui.markdown.stream import MarkdownStream  # noqa: PLC0415 - as said

    stream = MarkdownStream(width)
    stream.feed(last_piece(text, MOST_WORK))
    stream.finish()
    return tuple(Content.assemble(*((span.text, _style(span.look)) for span in line.spans)) for line in stream.lines)


def _style(look: TextStyle) -> str:
    traits = [name for name in ("bold", "italic", "strike", "underline") if getattr(look, name)]
    tone = TONES[look.tone] if look.tone < len(TONES) else ""
    return " ".join([*traits, tone, "on $surface" if look.surface else ""]).strip()
