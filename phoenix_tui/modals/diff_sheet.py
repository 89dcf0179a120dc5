"""One file's change over the workspace."""

from __future__ import annotations

from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical

from phoenix_tui.keys.keymap import Scope, bindings
from phoenix_tui.modals.base import Sheet
from phoenix_tui.widgets.diff_view import DiffView
from tools.contract import DiffDisplay

READING: Final = (
    "changes_up",
    "changes_down",
    "changes_page_up",
    "changes_page_down",
    "changes_first",
    "changes_last",
    "changes_before",
    "changes_after",
    "changes_turn",
    "changes_close",
)
"""Keys that read a change, whichever it is."""


class DiffSheet(Sheet[None]):
    """Shows a diff: Up and Down scroll, brackets go from change to change; without lines it shows `words`."""

    DEFAULT_CSS = "DiffSheet { & > .sheet { height: 92%; max-height: 92%; } }"
    BINDINGS: ClassVar[list[BindingType]] = bindings(Scope.CHANGES, *READING)
    WHOLE: ClassVar[bool] = True

    def __init__(self, display: DiffDisplay | None = None, words: str = "") -> None:
        super().__init__()
        self._display = display
        self._words = words

    def compose(self) -> ComposeResult:
        """The change alone: its first row is its heading."""
        with Vertical(classes="sheet"):
            yield DiffView()

    def on_mount(self) -> None:
        """Show it."""
        self.begin()

    def begin(self) -> None:
        """Show it."""
        self._view.show(self._display, self._words)

    def action_change(self, by: int) -> None:
        """Another change of the file."""
        self._view.to_change(by)

    def action_scroll(self, by: int) -> None:
        """Scroll by rows."""
        self._view.scroll_relative(y=by, animate=False)

    def action_page(self, by: int) -> None:
        """Scroll by the visible rows, two kept."""
        self.action_scroll(by * max(self._view.size.height - 2, 1))

    def action_end(self, by: int) -> None:
        """Scroll to the first or the last row."""
        self._view.scroll_to(y=0 if by < 0 else self._view.max_scroll_y, animate=False)

    def action_turn(self) -> None:
        """Side by side, or one below the other."""
        self._view.turn()

    @property
    def _view(self) -> DiffView:
        return self.query_one(DiffView)
