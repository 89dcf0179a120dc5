"""A row that the context meter stands in: a click on the meter opens it."""

from __future__ import annotations

from textual import events
from textual.content import Content
from textual.widget import Widget


class MeterRow(Widget):
    """Told which words of its row are the meter."""

    def meter(self) -> str:
        """The meter as the row shows it; empty while it does not."""
        return ""

    async def on_click(self, event: events.Click) -> None:
        """What fills the window."""
        row, place = self.render(), event.get_content_offset(self)
        if isinstance(row, Content) and place is not None and covers(row.plain, self.meter(), place.x):
            event.stop()
            await self.run_action("screen.command('context')")


def covers(row: str, part: str, cell: int) -> bool:
    """Whether a part of a row stands at this cell."""
    ahead, found, _ = row.partition(part) if part else ("", "", "")
    start = Content(ahead).cell_length
    return bool(found) and start <= cell < start + Content(part).cell_length
