"""The message of a widget in which something opened that Esc closes first."""

from __future__ import annotations

from textual.message import Message


class Opened(Message, namespace="dock"):
    """Posted when something opened, or closed again: Esc has another action now."""

    def __init__(self, esc_hint: str) -> None:
        super().__init__()
        self.esc_hint = esc_hint
        """Action of Esc; empty when nothing is open any more."""
