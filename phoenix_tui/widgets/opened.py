"""The message of a widget in which something opened that Esc closes first."""

from __future__ import annotations

from textual.message import Message


class Opened(Message, namespace="dock"):
    """Posted when something opened, or closed again: Esc has another action now."""

    def __init__(self, esc_hint: str) -> None:
        super().__init__()
        # Textual ends the way up at the sender's parent, and takes for the sender whose handler runs: the dock, where a
        # question ends while the dock passes on its answer. The screen would not hear of it.
        self._sender = None
        self.esc_hint = esc_hint
        """Action of Esc; empty when nothing is open any more."""
