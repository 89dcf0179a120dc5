"""The size of the terminal of shell lines: the room that their output has in the transcript."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from textual.geometry import Size
from textual.widget import Widget

from phoenix_tui.markdown.lines import MARGIN
from phoenix_tui.widgets.blocks.rows import BAR, column
from phoenix_tui.widgets.transcript.canvas import RIGHT_MARGIN
from tools.terminal.screen import MOST_ROWS
from tools.terminal.values import TerminalSize

if TYPE_CHECKING:
    from phoenix_tui.workspace.active_conversation import ActiveConversation

LEAST_ROWS: Final = 10
AROUND: Final = 3
"""Rows of title, rule and composer."""


def terminal_size(view: Widget) -> TerminalSize:
    """Rows as high as the transcript and as wide as output in it; before it is shown, those of its place."""
    size = view.size
    if not size.width and isinstance(view.parent, Widget):
        size = Size(view.parent.size.width, view.parent.size.height - AROUND)
    columns = column(size.width - RIGHT_MARGIN) - MARGIN - len(BAR.text)
    return TerminalSize(min(max(size.height, LEAST_ROWS), MOST_ROWS), columns)


def fit_running_line(active: ActiveConversation, view: Widget) -> None:
    """Tell the line that runs in this transcript of another size; one that is hidden keeps its size."""
    conversation = active.conversation if active.beside is None else active.beside.conversation_of(view)
    if view.size.width and conversation is not None and conversation.terminal.modes is not None:
        conversation.terminal.fit(terminal_size(view))
