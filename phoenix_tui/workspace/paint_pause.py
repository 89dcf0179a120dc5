"""Stops painting while requests from before the start was complete are sent."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from phoenix_tui.modals.base import PhoenixScreen

MOST: Final = 0.5
"""Seconds without a new frame, at the most."""
UNTIL_SENT: Final = 0.03
"""Seconds in which a message that was taken becomes a request."""


class PaintPause:
    """Pauses drawing once, behind the first frame: the frames between would delay the request by 60 ms."""

    def __init__(self, screen: PhoenixScreen[None]) -> None:
        self._screen = screen
        self._batch: ExitStack | None = None

    def begin(self) -> None:
        """Draw nothing until `end`."""
        if self._batch is None:
            self._batch = ExitStack()
            self._batch.enter_context(self._screen.app.batch_update())
            self._screen.set_timer(MOST, self.end)

    def in_one(self) -> Callable[[], None]:
        """Draw the following changes as one frame, until the returned function is called: a frame for each of many keys
        would delay loading by 100 ms.
        """
        batch = ExitStack()
        batch.enter_context(self._screen.app.batch_update())

        def over() -> None:
            batch.close()
            self._screen.app.screen.check_idle()

        self._screen.set_timer(MOST, over)
        return over

    def end_soon(self) -> None:
        """Draw again as soon as the request is out."""
        if self._batch is not None:
            self._screen.set_timer(UNTIL_SENT, self.end)

    def end(self) -> None:
        """Draw again, now."""
        if self._batch is not None:
            self._batch.close()
            self._screen.app.screen.check_idle()
