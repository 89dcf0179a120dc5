"""Newest messages of the chosen conversation beside the zoomed list."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from rich.cells import cell_len
from textual.content import Content
from textual.widget import Widget

from engine.machine.messages import Origin
from phoenix_tui.keys.active_keys import hint
from phoenix_tui.text.labels import Tone, money, short_model, short_path
from phoenix_tui.widgets.markdown_rows import markdown_rows
from phoenix_tui.widgets.transcript.model import text_of
from tools.clean import clean_line
from tools.wording import pluralize

if TYPE_CHECKING:
    from engine.records import ConversationSummary, StoredMessage

ENOUGH: Final = 30
"""Messages that are read."""
LONGEST: Final = 2_000
"""Characters of a message that are shown: their end."""
MOST_TEXTS: Final = 6
"""Messages with words that are shown."""
PROMPT_ROWS: Final = 3
MEASURE: Final = 100
"""Cells of a row at most."""


class ListPreview(Widget):
    """Shows the end of a conversation; takes no keys."""

    DEFAULT_CSS = """
    ListPreview { height: 1fr; padding: 0 2; border-left: solid $panel; background: $background; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._summary: ConversationSummary | None = None
        self._messages: Sequence[StoredMessage] = ()

    def show(self, summary: ConversationSummary, messages: Sequence[StoredMessage]) -> None:
        self._summary, self._messages = summary, messages
        self.refresh()

    def render(self) -> Content:
        """Draw title and facts, and of the messages the last rows that fit."""
        if self._summary is None:
            return Content("")
        width, height = min(self.size.width, MEASURE), self.size.height
        head = head_rows(self._summary, width)
        below = Content.styled(hint(("open", "opens"), ("peek", "answers or replies")), Tone.QUIET.value)
        room = max(height - len(head) - 2, 0)
        body = message_rows(self._messages, width)[-room:] if room else []
        blank = [Content("")] * (room - len(body) + 1)
        return Content("\n").join([*head, *body, *blank, below][:height])


def head_rows(summary: ConversationSummary, width: int) -> list[Content]:
    facts = (
        short_path(summary.cwd),
        short_model(summary.model),
        pluralize(summary.message_count, "message"),
        money(summary.totals.cost_usd),
    )
    words = clean_line(" · ".join(fact for fact in facts if fact))
    title = Content.styled(clean_line(summary.title) or "New conversation", "bold")
    return [*title.wrap(width), *Content.styled(words, Tone.QUIET.value).wrap(width), Content("")]


def message_rows(messages: Sequence[StoredMessage], width: int) -> list[Content]:
    """Prompts and answers, oldest first, each below a blank row."""
    made: list[Content] = []
    told = [one for one in messages if one.origin in {Origin.HUMAN, Origin.LLM} and text_of(one).strip()]
    for one in told[-MOST_TEXTS:]:
        text = text_of(one).strip()
        made += [Content("")] if made else []
        made += _prompt(text, width) if one.origin is Origin.HUMAN else markdown_rows(text[-LONGEST:], width)
    return made or [Content.styled("No text yet.", Tone.QUIET.value)]


def _prompt(text: str, width: int) -> list[Content]:
    """A prompt behind its bar; a long one ends with an ellipsis."""
    bar = "┃ "
    rows = Content(clean_line(text[:LONGEST])).wrap(width - cell_len(bar))
    shown = rows[:PROMPT_ROWS]
    if len(rows) > PROMPT_ROWS:
        shown[-1] = Content.assemble(shown[-1], "…").truncate(width - cell_len(bar), ellipsis=True)
    return [Content.assemble((bar, Tone.YOU.value), row.stylize("bold")) for row in shown]
