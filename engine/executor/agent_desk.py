"""What a conversation is told of sub-agents: its own first task, or how those it spawned have ended."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from engine.executor.inbox import Entry, Priority
from engine.executor.launching import log_launch
from engine.executor.requests import Receipt, RunCaps
from engine.executor.session import Session
from engine.machine import agent_texts
from engine.machine.events import AgentDropped, AgentFinished, Event, InboxArrived, UserMessage
from engine.machine.messages import NewMessage, Origin, Role, TextBlock
from engine.machine.states import AgentOutcome
from engine.updates import AgentsChanged, AgentView


class AgentDesk:
    """Puts the events of sub-agents into the inbox of one conversation."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self.wake_caps: Callable[[], RunCaps | None] = lambda: session.run.caps
        """What a run may use that the end of a sub-agent begins; None: none may begin."""

    @property
    def watched(self) -> bool:
        """Whether somebody looks on."""
        return self._session.publisher.has_watchers

    def begin(
        self, prompt: str, max_turns: int, timeout: float, stopped: Callable[[], bool]
    ) -> asyncio.Future[Receipt]:
        """This one is a sub-agent, and here is what it has to do, unless it was stopped before it began.

        The result is there once it was taken or refused; then it works, or it never will.
        """
        session, new_id = self._session, self._session.ports.ids.new
        message = NewMessage(new_id(), Role.USER, Origin.SUBAGENT, (TextBlock(prompt),))
        run_id = new_id()

        def begun() -> UserMessage | AgentDropped:
            if stopped():
                return AgentDropped("cancelled", agent_texts.CANCELLED)
            log_launch(session.record)
            return UserMessage(message, session.last, run_id, max_turns, for_agent=True)

        return self._put(Priority.USER, begun, RunCaps(timeout=timeout))

    def drop(self, kind: str, error: str) -> asyncio.Future[Receipt]:
        """This one is a sub-agent that will not start; one that its store failed is brought to rest."""
        return self._put(Priority.OUTCOME, lambda: AgentDropped(kind, error), RunCaps())

    def ended(self, outcome: AgentOutcome) -> None:
        """A sub-agent that this one waits for has ended."""
        session, message_id = self._session, self._session.ports.ids.new()
        if session.broken:
            return  # it has ended without them; only its user may set it going again
        session.post(lambda: AgentFinished(session.state.gen, outcome, message_id))

    def arrived(self) -> None:
        """Something stands in its inbox."""
        session, run_id, caps = self._session, self._session.ports.ids.new(), self.wake_caps()
        if caps is None:
            return
        wakes = not session.record.archived and not session.record.deleted
        limit = caps.max_turns or session.settings.max_iterations
        session.inbox.put(Priority.OUTCOME, Entry(lambda: InboxArrived(wakes, run_id, limit), caps=caps))

    def tell(self, views: tuple[AgentView, ...], results: int) -> None:
        """Tell subscribers how its sub-agents stand, and how many ends its model has not read yet."""
        self._session.publisher.publish(AgentsChanged(views, results))

    def belong_to(self, parent: AgentDesk) -> None:
        """This one is a sub-agent of that one: what the user allows there is allowed here, and it asks in its name."""
        self._session.above = parent._session
        self._session.rules = parent._session.rules

    def _put(self, priority: Priority, build: Callable[[], Event], caps: RunCaps) -> asyncio.Future[Receipt]:
        receipt: asyncio.Future[Receipt] = asyncio.get_running_loop().create_future()
        self._session.inbox.put(priority, Entry(build, caps=caps, receipt=receipt))
        return receipt
