"""The row of the user's own status line; there only where one is configured."""

from __future__ import annotations

from textual.content import Content
from textual.widget import Widget

from phoenix_tui.text.labels import Tone
from phoenix_tui.widgets.still import Still

FAILING = "! "


class ScriptRow(Still, Widget):
    """One row: the last good text, cut to the width, with a mark while the program fails."""

    DEFAULT_CSS = """
    ScriptRow { height: 1; width: 1fr; background: $background; color: $foreground; padding: 0 1; }
    """

    def __init__(self, padding: int) -> None:
        super().__init__()
        self._padding = padding
        self._shown: tuple[Content, bool] = Content(""), False

    def show(self, text: Content | None, *, failing: bool) -> None:
        """Show a text; None keeps the last good one."""
        shown = (self._shown[0] if text is None else text), failing
        if shown != self._shown:
            self._shown = shown
            self.refresh()

    def render(self) -> Content:
        """The row for the width there is."""
        text, failing = self._shown
        mark = (FAILING if failing else "", Tone.BAD.value)
        return Content.assemble(" " * self._padding, mark, text).truncate(max(self.size.width, 1), ellipsis=True)
