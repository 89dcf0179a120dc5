"""Widgets that keep their rows until something is dirty, without a clock at rest (docs/decisions/textual.md)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from textual.containers import Horizontal, Vertical
from textual.geometry import Region
from textual.strip import Strip
from textual.timer import Timer

if TYPE_CHECKING:
    from textual.widget import Widget
    from textual.widget import Widget as _Base
else:
    # Textual inherits CSS and component classes along the first Widget base alone, so this must not be one:
    # `class Composer(Still, TextArea)` stays a TextArea in every style sheet.
    _Base = object


class Still(_Base):
    """Answers every paint with the very rows of the last one while nothing changed.

    On each partial update the compositor asks every widget under the dirty region for all its rows; unchanged
    strips keep their rendered text, so this makes a key echo cost one widget instead of all.
    """

    _painted: tuple[Region, list[Strip]] | None = None

    def _set_dirty(self, *regions: Region) -> None:
        self._painted = None
        super()._set_dirty(*regions)

    def notify_style_update(self) -> None:
        """Forget the rows: colours may differ."""
        self._painted = None
        super().notify_style_update()

    def render_lines(self, crop: Region) -> list[Strip]:
        """The rows within `crop`, from the last paint where nothing is dirty."""
        if self._painted is None or self._painted[0] != crop:
            self._painted = (crop, super().render_lines(crop))
        return self._painted[1]


class StillRow(Still, Horizontal):
    """A row of widgets: every paint asks it for its own blank rows too, seen or not."""


class StillColumn(Still, Vertical):
    """A column of widgets, as above."""


class Ticker:
    """The clock of a widget; it runs only while there is something to count."""

    def __init__(self, widget: Widget, seconds: float, tick: Callable[[], None]) -> None:
        self._widget = widget
        self._seconds = seconds
        self._tick = tick
        self._timer: Timer | None = None

    @property
    def runs(self) -> bool:
        """True while it ticks."""
        return self._timer is not None

    def run(self, wanted: bool) -> None:
        """Begin to tick, continue, or stop."""
        if wanted and self._timer is None:
            self._timer = self._widget.set_interval(self._seconds, self._tick)
        elif not wanted and self._timer is not None:
            self._timer.stop()
            self._timer = None
