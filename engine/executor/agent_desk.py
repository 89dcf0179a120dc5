"""What a conversation is told of sub-agents: its own first task, or how those it spawned have ended."""

from __future__ import annotations

from collections.abc import Callable

from engine.executor.inbox import Entry, Priority
from engine.executor.requests import RunCaps
from engine.executor.session import Session
from engine.machine import agent_texts
from engine.machine.events import AgentDropped, AgentFinished, InboxArrived, UserMessage
from engine.machine.messages import NewMessage, Origin, Role, TextBlock
from engine.machine.states import AgentOutcome
from engine.updates import AgentsChanged, AgentView


class AgentDesk:
    """Puts the events of sub-agents into the inbox of one conversation."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def begin(self, prompt: str, max_turns: int, timeout: float, stopped: Callable[[], bool]) -> None:
        """This one is a sub-agent, and here is what it has to do, unless it was stopped before it began."""
        session, new_id = self._session, self._session.ports.ids.new
        message = NewMessage(new_id(), Role.USER, Origin.SUBAGENT, (TextBlock(prompt),))
        run_id = new_id()

        def begun() -> UserMessage | AgentDropped:
            if stopped():
                return AgentDropped("cancelled", agent_texts.CANCELLED)
            return UserMessage(message, session.last, run_id, max_turns, for_agent=True)

        session.inbox.put(Priority.USER, Entry(begun, caps=RunCaps(timeout=timeout)))

    def drop(self, kind: str, error: str) -> None:
        """This one is a sub-agent that will not start."""
        self._session.post(lambda: AgentDropped(kind, error))

    def ended(self, outcome: AgentOutcome) -> None:
        """A sub-agent that this one waits for has ended."""
        session, message_id = self._session, self._session.ports.ids.new()
        session.post(lambda: AgentFinished(session.state.gen, outcome, message_id))

    def arrived(self) -> None:
        """Something stands in its inbox."""
        session, run_id = self._session, self._session.ports.ids.new()
        wakes = not session.record.archived and not session.record.deleted
        session.post(lambda: InboxArrived(wakes, run_id, session.settings.max_iterations))

    def tell(self, views: tuple[AgentView, ...], results: int) -> None:
        """Tell subscribers how its sub-agents stand, and how many ends its model has not read yet."""
        self._session.publisher.publish(AgentsChanged(views, results))

    def belong_to(self, parent: AgentDesk) -> None:
        """This one is a sub-agent of that one: what the user allows there is allowed here, and it asks in its name."""
        above = parent._session
        self._session.rules = above.rules
        self._session.parent_title = lambda: above.record.title
