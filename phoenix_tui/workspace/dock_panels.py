"""Sub-agents, supervisor and todo list of the conversation in view: their texts in the dock and the status line."""

from __future__ import annotations

from collections.abc import Sequence

from engine.api.conversation import ConversationApi
from engine.api.engine import EngineApi
from engine.machine.states import AwaitingApproval, AwaitingSubagents, State, is_busy
from engine.updates import AgentView, RouteCard
from phoenix_tui.features.agents import asking, at_work, family_of, parent_title, place_of, views_of
from phoenix_tui.text.labels import AgentCounts
from phoenix_tui.widgets.dock import Dock
from phoenix_tui.widgets.notices import Notifier
from tools.displays import TodoList


class AgentsInView:
    """Keeps those that are worth a row: at work, or ended during the work that still continues.

    In a sub-agent's own transcript that is itself.
    """

    def __init__(self, conversation: ConversationApi, engine: EngineApi | None) -> None:
        self._conversation = conversation
        self._engine = engine
        self._views: Sequence[AgentView] = ()
        self._batch: set[str] = set()
        """Ids of those that have a row."""

    @property
    def asking(self) -> list[ConversationApi]:
        """Conversations with an open question, the one that waits longest first."""
        return asking(self._engine, self._conversation.id) if at_work(self._views) else []

    @property
    def parent(self) -> str:
        record = self._conversation.record
        return parent_title(record, self._engine) if record.agent is not None else ""

    @property
    def place(self) -> str:
        return place_of(self._conversation.record, self._engine)

    def take(self, views: Sequence[AgentView]) -> AgentCounts:
        """Keep the newest views; counts for the status line."""
        self._views = views
        working = at_work(views)
        self._batch |= {view.id for view in working}
        asks = sum(isinstance(view.state, AwaitingApproval) for view in working)
        self.follow_state(self._conversation.state)
        return AgentCounts(len(working), asks, self._conversation.record.agent is not None)

    def follow_state(self, state: State) -> None:
        """The conversation itself moved: at rest, with all of them ended, no row is left."""
        if isinstance(state, AwaitingSubagents):
            self._batch |= {agent.id for agent in state.agents}
        elif not is_busy(state) and not at_work(self._views):
            self._batch.clear()

    def show(self, dock: Dock) -> None:
        """Give the dock its rows; the panel is made with the first of them."""
        if dock.agents is None:
            if not self._batch and self._conversation.record.agent is None:
                return
            # After the first frame, with the first sub-agent.
            from phoenix_tui.widgets.agent_panel import AgentPanel  # noqa: PLC0415 - as said

            dock.agents = AgentPanel(plain=dock.plain)
            dock.mount(dock.agents, before=0)
        dock.agents.show(self._current, self._conversation.id if self._conversation.record.agent is not None else "")

    def _current(self) -> Sequence[AgentView]:
        """Views read anew with each tick of the panel: not every change is reported."""
        views = views_of(self._engine, family_of(self._conversation))
        if self._conversation.record.agent is not None:
            return views
        return [view for view in views if view.id in self._batch]


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


def show_todos(dock: Dock, todos: TodoList, state: State) -> None:
    """Show the list; the panel is made with the first one."""
    if dock.todos is None:
        if not todos.items:
            return
        # After the first frame, with the first list.
        from phoenix_tui.widgets.todo_panel import TodoPanel  # noqa: PLC0415 - as said

        dock.todos = TodoPanel()
        dock.mount(dock.todos, before=dock.question if dock.question.is_attached else "#rule")
    dock.todos.show(todos, works=is_busy(state))
