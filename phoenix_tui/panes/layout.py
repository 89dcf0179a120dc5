"""Places of panes: side by side while each is wide enough, else in rows, else one behind tabs."""

from __future__ import annotations

from itertools import pairwise
from typing import Final, Protocol

from msgspec import Struct
from textual.geometry import NULL_OFFSET, NULL_SPACING, Region, Size
from textual.layout import ArrangeResult, Layout, WidgetPlacement
from textual.layouts.vertical import VerticalLayout
from textual.widget import Widget

from phoenix_tui.widgets.dock import Dock

LEAST_WIDTH: Final = 60
"""Columns of a pane, its rule included: the least for one conversation (docs/decisions/looks.md)."""
LEAST_HEIGHT: Final = 12
"""Rows of a pane: title, seven of text, rule, composer, and a question of two rows at the least."""
FOOT_ROWS: Final = 2
"""Rule and state; the dock of the pane in focus begins with as many, so that nothing jumps."""


class PaneWidgets(Struct, frozen=True):
    """The widgets of one pane, in their order."""

    title: Widget
    body: tuple[Widget, ...]
    """Widgets that may fill it; hidden ones take no space."""
    foot: Widget
    side: Widget
    """The rule at its left, where another pane is there."""
    top: Widget
    """The rule above it, likewise."""


class Arranged(Protocol):
    """State of the panes that the layout needs."""

    @property
    def stands(self) -> tuple[PaneWidgets, ...]:
        """One for each pane."""
        ...

    @property
    def focus(self) -> int:
        """Index of the pane with the dock."""
        ...

    @property
    def tabs(self) -> Widget:
        """The row of titles for where there is room for one pane alone."""
        ...


def regions(count: int, size: Size) -> list[Region] | None:
    """A region for each of `count` panes; None where only one of them has room."""
    columns = min(count, size.width // LEAST_WIDTH) or 1
    rows = -(-count // columns)
    columns = -(-count // rows)
    if count == 1 or size.height // rows < LEAST_HEIGHT:
        return None
    found: list[Region] = []
    for row in range(rows):
        in_row = min(columns, count - row * columns)
        top, bottom = row * size.height // rows, (row + 1) * size.height // rows
        edges = [place * size.width // in_row for place in range(in_row + 1)]
        found += [Region(left, top, right - left, bottom - top) for left, right in pairwise(edges)]
    return found


class PaneLayout(Layout):
    """Arranges the widgets of all panes, which are children of one container, around a single dock."""

    name = "panes"

    def __init__(self, panes: Arranged, dock: Dock) -> None:
        self._panes = panes
        self._dock = dock
        self._column = VerticalLayout()

    def arrange(self, parent: Widget, children: list[Widget], size: Size, greedy: bool = True) -> ArrangeResult:
        """Place the displayed widgets; a pane without room has no place at all and is not painted."""
        parent.pre_layout(self)
        shown, panes = set(children), self._panes
        found = regions(len(panes.stands), size)
        if found is None:
            tabs = _placed(panes.tabs, Region(0, 0, size.width, 1))
            stand = panes.stands[panes.focus]
            return [tabs, *self._pane(parent, stand, Region(0, 1, size.width, size.height - 1), shown, focused=True)]
        placements: list[WidgetPlacement] = []
        for place, (stand, region) in enumerate(zip(panes.stands, found, strict=True)):
            x, y, width, height = region
            if x:
                placements.append(_placed(stand.side, Region(x, y, 1, height)))
                region = Region(x + 1, y, width - 1, height)
            if y:
                placements.append(_placed(stand.top, Region(region.x, y, region.width, 1)))
                region = Region(region.x, y + 1, region.width, height - 1)
            placements += self._pane(parent, stand, region, shown, focused=place == panes.focus)
        return placements

    def _pane(
        self, parent: Widget, stand: PaneWidgets, region: Region, shown: set[Widget], *, focused: bool
    ) -> list[WidgetPlacement]:
        """Title, body, and dock or foot."""
        x, y, width, height = region
        if focused:
            self._dock.make_room(height + 1)  # a screen has a status line too
            docked = self._column.arrange(parent, [self._dock], Size(width, height - 1))[0].region.height
        else:
            docked = FOOT_ROWS
        low = max(height - docked, 1)
        bottom = self._dock if focused else stand.foot
        placements = [
            _placed(stand.title, Region(x, y, width, 1)),
            _placed(bottom, Region(x, y + low, width, max(height - low, 1))),
        ]
        body = Region(x, y + 1, width, max(low - 1, 0))
        return placements + [_placed(widget, body) for widget in stand.body if widget in shown and body]


def _placed(widget: Widget, region: Region) -> WidgetPlacement:
    return WidgetPlacement(region, NULL_OFFSET, NULL_SPACING, widget)
