"""Where the list of conversations stands: beside the one in view, or over it like a drawer on a narrow screen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from phoenix_tui.way_out import CLOSES
from phoenix_tui.widgets.conversation_list import ZOOMED, ConversationList
from phoenix_tui.widgets.title_row import LIST_FROM

if TYPE_CHECKING:
    from phoenix_tui.screens.base import PhoenixScreen
    from phoenix_tui.widgets.composer import Composer

WIDE_FROM: Final = 160
ROOMY_FROM: Final = 200
"""Columns from which the list shows state, context and cost in columns of their own."""
LIST_WIDTH, WIDE_LIST, ROOMY_PERCENT = 29, 31, 30
BREAKPOINTS: Final = [(0, "-narrow"), (LIST_FROM, "-with-list"), (WIDE_FROM, "-wide"), (ROOMY_FROM, "-roomy")]
"""Columns from which a screen has a class; the widths that follow are in `styles/workspace.tcss`."""
OVER: Final = "-list-over"


class ListDrawer:
    """Opens and closes it, and gives the keys back to the composer."""

    def __init__(self, screen: PhoenixScreen[None], rows: ConversationList, composer: Composer) -> None:
        self._screen = screen
        self.rows = rows
        self._composer = composer

    @property
    def is_over(self) -> bool:
        """Whether it lies over the conversation; on a wider screen it stands beside it."""
        return self._screen.has_class(OVER) and self._screen.has_class("-narrow")

    @property
    def way_out(self) -> str:
        """What Esc does to it; empty where it hides nothing."""
        return CLOSES if self.is_over else ""

    def take(self) -> None:
        """Give the list the keys."""
        narrow = self._screen.has_class("-narrow")
        self._screen.set_class(narrow, OVER)
        self._screen.say_way_out(CLOSES if narrow else "")
        self._screen.set_focus(self.rows)

    def leave(self) -> None:
        """Give the keys back."""
        self._screen.remove_class(OVER)
        self._screen.say_way_out("")
        self._screen.set_focus(self._composer)

    def width(self, columns: int) -> int:
        """Cells that it takes beside the conversation of a screen that wide."""
        if columns < LIST_FROM or self.rows.has_class(ZOOMED):
            return 0
        if columns < ROOMY_FROM:
            return LIST_WIDTH if columns < WIDE_FROM else WIDE_LIST
        return WIDE_LIST if self._screen.has_class("-panes") else columns * ROOMY_PERCENT // 100
