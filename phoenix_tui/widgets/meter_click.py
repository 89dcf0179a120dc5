"""A row with the context meter: a click on the meter opens the sheet."""

from __future__ import annotations

from textual import events
from textual.content import Content
from textual.widget import Widget


class MeterRow(Widget):
    """Row that knows which of its words are the meter."""

    def meter(self) -> str:
        """The meter as the row shows it; empty while it does not."""
        return ""

    async def on_click(self, event: events.Click) -> None:
        """Open the context sheet after a click on the meter."""
        row, place = self.render(), event.get_content_offset(self)
        if isinstance(row, Content) and place is not None and covers(row.plain, self.meter(), place.x):
            event.stop()
            await self.run_action("screen.command('context')")


def covers(row: str, part: str, cell: int) -> bool:
    """True when a part of a row covers this cell."""
    ahead, found, _ = row.partition(part) if part else ("", "", "")
    start = Content(ahead).cell_length
    return bool(found) and start <= cell < start + Content(part).cell_length
