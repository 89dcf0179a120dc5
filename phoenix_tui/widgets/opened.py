"""The message of a widget in which something opened that Esc closes first."""

from __future__ import annotations

from textual.message import Message


class Opened(Message, namespace="dock"):
    """Something opened, or closed again: Esc means something else now."""

    def __init__(self, way_out: str) -> None:
        super().__init__()
        self.way_out = way_out
        """What Esc does; empty where nothing is open any more."""
