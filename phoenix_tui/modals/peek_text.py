"""Preview of a conversation: its newest prompt and answer, or the question that is open."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from textual.content import Content

from engine.machine.messages import Origin, Role
from engine.records import ConversationSummary, StoredMessage
from engine.updates import Question
from phoenix_tui.keys.active_keys import hint, key
from phoenix_tui.text.labels import Tone
from phoenix_tui.text.request_text import is_quick, odd_in, takes_words
from phoenix_tui.widgets.markdown_rows import markdown_rows
from phoenix_tui.widgets.question_text import request_rows, what_text, where_text
from phoenix_tui.widgets.transcript.model import text_of
from tools.clean import clean, clean_line

LONGEST: Final = 8_000
"""Characters of the newest words that are shown: their end."""
INDENT: Final = 2


def newest_rows(
    row: ConversationSummary,
    messages: Sequence[StoredMessage],
    live: str,
    failed: bool,
    width: int,
    *,
    layout: Callable[[str, int], Sequence[Content]] = markdown_rows,
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
        return [*rows, *(Content.styled(one.plain, Tone.BAD.value) for one in plain_words(words[-LONGEST:], width))]
    return [*rows, *layout(words[-LONGEST:], width)]


def plain_words(text: str, width: int) -> Sequence[Content]:
    """Words as they are, below one another."""
    return [Content(f"{' ' * INDENT}{row}") for row in Content(clean(text)).wrap(width - INDENT)]


def question_rows(question: Question, row: ConversationSummary, width: int) -> Sequence[Content]:
    """The whole request."""
    if question.request.questions and not question.left_open:
        return [Content(what_text(question).plain.lstrip()), *request_rows(question, width)]
    where = Content.styled(where_text(question, row.cwd), Tone.QUIET.value).wrap(width)
    odd = Content.styled("\n".join(odd_in(question)), Tone.NEEDS_YOU.value).wrap(width) if odd_in(question) else []
    return [Content(what_text(question).plain.lstrip()), *odd, *request_rows(question, width), *where]


def placeholder_of(question: Question | None) -> str:
    """Words in the empty line of the preview."""
    if question is None:
        return "reply"
    return "in your own words…" if takes_words(question) else "no, because…"


def quick_keys(question: Question) -> str:
    """The keys that answer questions of the model here: several at once need the conversation."""
    digits = f"{key('answer_1')}-{len(question.request.questions[0].options)} answers" if is_quick(question) else ""
    words = ("peek_reply", "own words" if takes_words(question) else "no, because…")
    return hint(digits, words, ("answer_no", "declines"), ("peek_open", "opens"))
