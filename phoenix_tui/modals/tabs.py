"""The row of tabs above a sheet of a group, and the way from one sheet to the next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any, Final, cast

from msgspec import Struct, field
from textual import events
from textual.binding import BindingsMap
from textual.content import Content
from textual.widget import Widget

from phoenix_tui.keys.active_keys import hint
from phoenix_tui.keys.keymap import Scope, bindings
from phoenix_tui.modals.base import Sheet
from phoenix_tui.text.labels import Tone

LONGEST_STILL: Final = 0.3
"""Seconds that the screen stays as it was while the next sheet is made."""


class Tabs(Struct, eq=False):
    """The tabs of one group while it is open."""

    titles: Sequence[str]
    place: int
    """Place of the tab that is shown."""
    wanted: int | None = None
    """Place of the tab that is shown next; None while this one is read, and once it was closed."""
    names: Sequence[str] = ()
    """Titles with their figures."""
    rows: int = 0
    """Rows of the highest sheet so far: a lower one is filled up, so that the names stay where they are."""
    _kept: dict[int, Mapping[str, object]] = field(default_factory=dict[int, Mapping[str, object]])
    """State of the sheets that were left, by place."""
    _still: ExitStack = field(default_factory=ExitStack)

    def go_on(self, place: int) -> None:
        """Show this tab."""
        self.place, self.wanted = place, None

    def join(self, sheet: Sheet[Any]) -> None:
        """Show a sheet in this tab: below the row of names, with their keys, as it was left."""
        for name, value in self._kept.get(self.place, {}).items():
            setattr(sheet, name, value)
        sheet.show_tab = partial(self._leave, sheet)
        sheet.add_class("-tabbed")
        sheet.compose_add_child(TabRow(self))
        own = sheet._bindings.key_to_bindings  # noqa: SLF001 - as `PageSheet` binds the keys of its page
        for key, bound in BindingsMap(bindings(Scope.TABS)).key_to_bindings.items():
            own[key] = [*own.get(key, ()), *bound]

    def _leave(self, sheet: Sheet[Any], by: int) -> None:
        """Leave a sheet for the tab so many places on; until that is there nothing is painted."""
        if self.wanted is not None or not sheet.is_current:
            return
        self.wanted = (self.place + by) % len(self.titles)
        self.rows = max(self.rows, sheet.query_one(".sheet").outer_size.height)
        self._kept[self.place] = {name: getattr(sheet, name) for name in sheet.KEPT}
        self._still.enter_context(sheet.app.batch_update())
        sheet.app.set_timer(LONGEST_STILL, self.paint)
        sheet.give_way()

    def paint(self) -> None:
        """Paint again."""
        self._still.close()


class TabRow(Widget):
    """Names of the tabs, the one in use in brackets, and the key to the next; a click shows one."""

    DEFAULT_CSS = """
    TabRow { height: 2; width: 1fr; padding: 0 1; background: $background; border-top: solid $accent; }
    """

    def __init__(self, tabs: Tabs) -> None:
        super().__init__(classes="tabs")
        self.tabs = tabs

    @property
    def _names(self) -> Sequence[str]:
        return [f"[{name}]" if place == self.tabs.place else f" {name} " for place, name in enumerate(self.tabs.names)]

    @property
    def _sheet(self) -> Sheet[Any]:
        return cast("Sheet[Any]", self.screen)

    def on_mount(self) -> None:
        """Fill the sheet up to the height of the one before, and paint once that is laid out."""
        self._sheet.query_one(".sheet").styles.min_height = self.tabs.rows
        self._sheet.call_later(self._begin)

    def _begin(self) -> None:
        self.tabs.paint()
        self._sheet.refresh()

    def render(self) -> Content:
        """Draw as wide as the sheet; on a narrow screen without the first names that leave the one in use no room."""
        place, width, first = self.tabs.place, self._sheet.measure, self._first
        parts = [
            (name, f"bold {Tone.YOU.value}" if at == place else Tone.QUIET.value)
            for at, name in enumerate(self._names[first:], first)
        ]
        row, words = Content.assemble(*parts), f"  {hint(('tab_next', 'next'))}"
        if row.cell_length + len(words) <= width:
            row = Content.assemble(row, (words, Tone.QUIET.value))
        return row.truncate(width, ellipsis=True)

    @property
    def _first(self) -> int:
        """Place of the first name that is shown."""
        names, place, first = self._names, self.tabs.place, 0
        while first < place and Content("".join(names[first : place + 1])).cell_length > self._sheet.measure:
            first += 1
        return first

    def on_click(self, event: events.Click) -> None:
        """Show the tab whose name was clicked."""
        end = 1  # the padding
        for place, name in enumerate(self._names[self._first :], self._first):
            end += Content(name).cell_length
            if event.x < end:
                self._sheet.action_tab(place - self.tabs.place)
                return
