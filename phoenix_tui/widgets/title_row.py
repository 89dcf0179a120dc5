"""The row above a conversation: title, folder, needs of others, and the wide context meter."""

from __future__ import annotations

from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace
from rich.cells import cell_len, set_cell_size
from textual.content import Content
from textual.reactive import reactive

from phoenix_tui.keys.active_keys import hint, short_key
from phoenix_tui.text.labels import ASKING, UNREAD, Glyph, Tone
from phoenix_tui.widgets.context_meter import ContextUse, wide_meter
from phoenix_tui.widgets.meter_click import MeterRow
from phoenix_tui.widgets.still import Still
from tools.clean import clean_line

WIDE: Final = 80
"""Columns from which the bar of the meter is shown."""
LIST_FROM: Final = 100
"""Columns of the screen from which the list stays in view."""
SHORTEST_TITLE: Final = 8
SHORTEST_FOLDER: Final = 8
"""Cells of a folder below which it is left out."""
LONGEST_BRANCH: Final = 24
SPELLED_FROM: Final = 72
"""Columns from which the key of the list names its target."""
SHORTEST_PARENT: Final = 8
"""Cells of its parent's title below which a sub-agent names none."""
LEAST_GAP: Final = 2
"""Blank cells behind the title."""


class Heading(Struct, frozen=True):
    """Values of the row. `others_*` count conversations that are not the visible one."""

    title: str = ""
    folder: str = ""
    branch: str = ""
    """Checked-out branch."""
    parent: str = ""
    """Title of the conversation whose sub-agent it is; gives way to its own."""
    place: str = ""
    """Number of the sub-agent and their count; never cut before the title."""
    context: ContextUse = field(default_factory=ContextUse)
    others_asking: int = 0
    others_unread: int = 0
    glyph: Glyph | None = None
    """State of the conversation, when several are on the screen."""
    aside: bool = False
    """True when another one has the focus."""
    tabbed: bool = False
    """True when a row of tabs above shows state and title."""

    def at(self, folder: str) -> Heading:
        """The same in a folder, without the branch of another one."""
        return replace(self, folder=folder, branch=self.branch if folder == self.folder else "")


class TitleRow(Still, MeterRow):
    """One row; the folder goes first where there is no room."""

    DEFAULT_CSS = """
    TitleRow { height: 1; width: 1fr; padding: 0 1; background: $background; }
    """
    heading: reactive[Heading] = reactive(Heading)
    """Set by the screen."""

    def __init__(self, *, plain: bool = False) -> None:
        super().__init__()
        self._plain = plain

    def render(self) -> Content:
        """Title and folder at the left, needs and meter at the right."""
        heading, width = self.heading, self.size.width
        right = self._right(width)
        title = Content.assemble(
            (f"{heading.glyph.mark(self._plain)} ", heading.glyph.tone.value) if heading.glyph else "",
            (clean_line(heading.title) or "New conversation", Tone.QUIET.value if heading.aside else "bold"),
        )
        gap = LEAST_GAP - right.plain.startswith(" ") if right.cell_length else 0
        room = max(width - right.cell_length - gap, SHORTEST_TITLE)
        place = _place(heading, room - (0 if heading.tabbed else title.cell_length))
        folder = _where(heading, room - place.cell_length - (0 if heading.tabbed else title.cell_length))
        left = Content.assemble(title, place, folder)
        if heading.tabbed:
            left = (place + folder if place else folder[2:])[1:].truncate(room, ellipsis=True)
        elif left.cell_length > room:
            short = title.truncate(max(room - place.cell_length, SHORTEST_TITLE), ellipsis=True)
            left = Content.assemble(short, place).truncate(room, ellipsis=True)
        return Content.assemble(left, " " * max(width - left.cell_length - right.cell_length, 1), right)

    def meter(self) -> str:
        """The wide form."""
        return wide_meter(self.heading.context, self._plain)

    def _right(self, width: int) -> Content:
        heading = self.heading
        if heading.aside:
            return Content("")
        parts: list[tuple[str, str]] = []
        list_hidden = self.screen.size.width < LIST_FROM
        if heading.others_asking and list_hidden:
            parts.append((f"{ASKING.mark(self._plain)}{heading.others_asking} ", ASKING.tone.value))
        if heading.others_unread and list_hidden:
            parts.append((f"{UNREAD.mark(self._plain)}{heading.others_unread} ", UNREAD.tone.value))
        if list_hidden:
            opens = hint(("list", "list")) if width >= SPELLED_FROM and not heading.parent else short_key("list")
            parts.append((f" {opens}", Tone.QUIET.value))
        elif width >= WIDE and (meter := wide_meter(heading.context, self._plain)):
            parts.append((meter, heading.context.tone.value))
        return Content.assemble(*parts)


def _where(heading: Heading, room: int) -> Content:
    """Folder and branch; of a folder too long for `room` its end, as long as some of it is left."""
    if not heading.folder:
        return Content("")
    branch = Content(clean_line(heading.branch)).truncate(LONGEST_BRANCH, ellipsis=True).plain
    behind = f" ({branch})" if branch else ""
    folder, before = clean_line(heading.folder), " · "
    most = room - cell_len(before + behind)
    if SHORTEST_FOLDER <= most < cell_len(folder):
        folder = f"…{set_cell_size(folder[::-1], most - 1)[::-1]}"
    return Content.styled(f"{before}{folder}{behind}", Tone.QUIET.value)


def _place(heading: Heading, room: int) -> Content:
    """Parent of the sub-agent, cut to `room` cells, and its number among them."""
    if not heading.parent:
        return Content("")
    which = f" {heading.place}" if heading.place else ""
    parent = Content(clean_line(heading.parent))
    left = room - Content(f" (sub-agent of ){which}").cell_length
    fits = left >= min(parent.cell_length, SHORTEST_PARENT)
    whose = f" of {parent.truncate(left, ellipsis=True).plain}" if fits else ""
    return Content.styled(f" (sub-agent{whose}){which}", Tone.QUIET.value)
