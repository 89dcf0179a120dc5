"""The supervisor's decision of the conversation on the screen: what the dock and the status line say of it."""

from __future__ import annotations

from collections.abc import Callable

from engine.api.conversation import ConversationApi
from engine.routes import RouteCard
from phoenix_tui.widgets.dock import Dock
from phoenix_tui.widgets.notices import Notify


class RouteInView:
    """Keeps the open decision of one conversation."""

    def __init__(self, conversation: ConversationApi, tell: Notify, details: Callable[..., None]) -> None:
        self._conversation = conversation
        self._tell = tell
        self._moment = details
        self._card: RouteCard | None = None

    def take(self, card: RouteCard | None) -> None:
        """The decision that is open now."""
        self._card = card
        self._moment(planned=len(card.route.agents) if card else 0, starts_at=card.starts_at if card else 0.0)

    def _count(self, agents: int) -> None:
        """So many are left of the decision's."""
        self._moment(planned=agents)

    def show(self, dock: Dock) -> None:
        """Give the dock its card; the panel is made with the first of them."""
        if dock.route is None:
            if self._card is None:
                return
            # Behind the first frame, with the first decision.
            from phoenix_tui.widgets.route_panel import RoutePanel  # noqa: PLC0415 - as said

            dock.route = RoutePanel(plain=dock.plain)
            dock.mount(dock.route, before=0)
        dock.route.show(self._card, self._conversation, self._tell)
        if self._card is not None:
            dock.route.changed = self._count
            self._count(dock.route.left)
        dock.listen_to_route()
