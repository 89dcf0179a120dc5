"""The size of the terminal of shell lines: the room that their output has in the transcript."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from textual.geometry import Size
from textual.widget import Widget

from phoenix_tui.markdown.lines import MARGIN
from phoenix_tui.widgets.blocks.rows import BAR, column
from phoenix_tui.widgets.transcript.view import TranscriptView
from tools.terminal.screen import MOST_ROWS
from tools.terminal.values import TerminalSize

if TYPE_CHECKING:
    from engine.api.conversation import ConversationApi

LEAST_ROWS: Final = 10
SCROLLBAR: Final = 1
AROUND: Final = 3
"""Rows of title, rule and composer."""


def terminal_size(view: TranscriptView) -> TerminalSize:
    """Rows as high as the transcript and as wide as output in it; before it is shown, those of its place."""
    size = view.scrollable_content_region.size
    if not size.width and isinstance(view.parent, Widget):
        size = Size(max(view.parent.size.width - SCROLLBAR, 1), view.parent.size.height - AROUND)
    columns = column(size.width) - MARGIN - len(BAR.text)
    return TerminalSize(min(max(size.height, LEAST_ROWS), MOST_ROWS), columns)


def fit_running_line(conversation: ConversationApi | None, view: TranscriptView) -> None:
    """Tell the line that runs in view of another size."""
    if conversation is not None and conversation.terminal.modes is not None:
        conversation.terminal.fit(terminal_size(view))
