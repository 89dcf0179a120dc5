"""Parts of a pane besides title and transcript: its foot, the rule at its left, the row of tabs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct
from textual.content import Content
from textual.reactive import reactive
from textual.widget import Widget

from phoenix_tui.text.labels import Glyph, Tone
from phoenix_tui.text.request_text import one_line
from phoenix_tui.widgets.bases import Still
from phoenix_tui.widgets.status_line import StatusLine
from tools.clean import clean_line

GAP: Final = "  "


class PaneFoot(StatusLine):
    """State of the conversation of a pane without the dock, and its text that waits for the user."""

    DEFAULT_CSS = """
    PaneFoot { height: 2; border-top: solid $panel; }
    """
    note: reactive[str] = reactive("")
    """The open question or the draft, in one line."""

    def render(self) -> Content:
        """State at the left, then the question, else the draft."""
        now, width = self._label(), self.size.width
        self._drawn = self._format_state(now)
        state = Content.styled(self._drawn, now.glyph.tone.value).truncate(width, ellipsis=True)
        room = width - state.cell_length - len(GAP)
        if not self.note or room < len(GAP):
            return state
        note = Content(one_line(self.note))
        return Content.assemble(state, GAP, note.truncate(room, ellipsis=True).stylize(Tone.QUIET.value))


class SideRule(Still, Widget):
    """The line between a pane and the one left of it."""

    DEFAULT_CSS = "SideRule { width: 1; border-left: solid $panel; background: $background; }"


class TopRule(Still, Widget):
    """The line between a pane and the one above it."""

    DEFAULT_CSS = "TopRule { height: 1; border-top: solid $panel; background: $background; }"


class PaneTab(Struct, frozen=True):
    """One conversation of the row."""

    title: str
    glyph: Glyph


class PaneTabs(Still, Widget):
    """The panes by title where there is room for one alone; a click chooses."""

    DEFAULT_CSS = """
    PaneTabs { height: 1; padding: 0 1; background: $background; }
    """
    tabs: reactive[tuple[PaneTab, ...]] = reactive(())
    chosen: reactive[int] = reactive(0)

    def __init__(self, *, plain: bool = False) -> None:
        super().__init__()
        self._plain = plain

    def render(self) -> Content:
        """Draw number, state and title of each; the visible one is highlighted."""
        return Content("").join(self._cells())

    def at(self, x: int) -> int | None:
        """The pane whose title is at a column of the row."""
        end = 1
        for place, cell in enumerate(self._cells()):
            end += cell.cell_length
            if x < end:
                return place
        return None

    def _cells(self) -> Sequence[Content]:
        tabs = self.tabs
        if not tabs:
            return ()
        width = max(self.size.width // len(tabs), 1)
        cells: list[Content] = []
        for place, tab in enumerate(tabs):
            chosen = place == self.chosen
            cell = Content.assemble(
                (f"{place + 1} ", Tone.QUIET.value),
                (f"{tab.glyph.mark(self._plain)} ", tab.glyph.tone.value),
                (clean_line(tab.title) or "New conversation", f"bold {Tone.YOU.value}" if chosen else Tone.QUIET.value),
            )
            cells.append(cell.truncate(width - len(GAP), ellipsis=True, pad=True) + GAP)
        return cells
