"""The supervisor's decision of the conversation on the screen: its texts in the dock and the status line."""

from __future__ import annotations

from engine.api.conversation import ConversationApi
from engine.updates import RouteCard
from phoenix_tui.widgets.dock import Dock
from phoenix_tui.widgets.notices import Notifier


class RouteInView:
    """Keeps the open decision of one conversation."""

    def __init__(self, conversation: ConversationApi, toasts: Notifier) -> None:
        self._conversation = conversation
        self._toasts = toasts
        self._card: RouteCard | None = None
        self.planned = 0
        """Agents of the open decision that the user has not removed."""

    @property
    def starts_at(self) -> float:
        """Monotonic time at which the decision starts by itself; 0 for never."""
        return self._card.starts_at if self._card is not None else 0.0

    def take(self, card: RouteCard | None) -> None:
        """Keep the decision that is open now, or none."""
        self._card = card
        self.planned = len(card.route.agents) if card is not None else 0

    def show(self, dock: Dock) -> None:
        """Give the dock its card; the panel is made with the first of them."""
        if dock.route is None:
            if self._card is None:
                return
            # After the first frame, with the first decision.
            from phoenix_tui.widgets.route_panel import RoutePanel  # noqa: PLC0415 - as said

            dock.route = RoutePanel(plain=dock.plain)
            dock.mount(dock.route, before=0)
        dock.route.show(self._card, self._conversation, self._toasts)
        if self._card is not None:
            self.planned = dock.route.left
        dock.listen_to_route()
