"""Messages to a conversation about sub-agents: its own first task, or the ends of those it spawned."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from msgspec.structs import replace

from engine.executor.inbox import InboxEntry, Priority
from engine.executor.requests import Receipt, Refused, RunCaps
from engine.executor.session import Session
from engine.executor.user_requests import log_launch
from engine.machine.events import AgentBegun, AgentDropped, AgentFinished, AgentRecalled, InboxArrived
from engine.machine.messages import NewMessage, Origin, Role, TextBlock
from engine.machine.states import AgentOutcome, AwaitingSubagents, Cancelling, Errored, Idle
from engine.ports import Deposit, MakeBackground
from engine.records import AgentFacts
from engine.updates import AgentsChanged, AgentView


class AgentMailbox:
    """Puts the events of sub-agents into the inbox of one conversation."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self.wake_caps: Callable[[], RunCaps | None] = lambda: session.run.caps
        """Limits of a run that the end of a sub-agent begins; None: none may begin."""

    @property
    def watched(self) -> bool:
        """True while it has viewers."""
        return self._session.publisher.has_watchers

    def begin(self, facts: AgentFacts, results: str, why_dropped: Callable[[], str]) -> asyncio.Future[Receipt]:
        """Start the first run of this sub-agent, unless it was stopped before; its inbox has the task.

        `results` are those of the agents before it. The receipt follows once it works, or cannot.
        """
        session, new_id = self._session, self._session.ports.ids.new
        found = NewMessage(new_id(), Role.USER, Origin.SUBAGENT, (TextBlock(results),)) if results else None
        run_id = new_id()

        def begun() -> AgentBegun | AgentDropped:
            if why := why_dropped():
                return AgentDropped(why, why)
            log_launch(session.record, session.state)
            return AgentBegun(run_id, facts.max_turns, found)

        return self._put(Priority.USER, InboxEntry(begun, caps=RunCaps(timeout=facts.timeout)))

    def recall(self, text: str, sender: str) -> asyncio.Future[Receipt]:
        """Resume this finished sub-agent; without a text it reads its waiting messages."""
        told = (Deposit(text, sender),) if text else ()
        return self._put(Priority.USER, InboxEntry(AgentRecalled, writes=(*told, MakeBackground())))

    def drop(self, kind: str, error: str) -> asyncio.Future[Receipt]:
        """End this sub-agent before its start; one that its store failed is brought to rest."""
        return self._put(Priority.OUTCOME, InboxEntry(lambda: AgentDropped(kind, error)))

    def ended(self, outcome: AgentOutcome) -> asyncio.Future[Receipt]:
        """Deliver the end of a sub-agent that this one waits for; the receipt follows once that is stored, or cannot
        be.

        UNWANTED: it waits no longer, and has reported that to its model.
        """
        session, message_id = self._session, self._session.ports.ids.new()

        async def awaited() -> bool:
            state = session.state
            return isinstance(state, AwaitingSubagents | Cancelling) and outcome.agent_id in state.pending

        finished = InboxEntry(lambda: AgentFinished(session.state.gen, outcome, message_id), wanted=awaited)
        if session.broken:  # it has ended without them; only its user may resume it
            return _answered(Refused(session.state.message if isinstance(session.state, Errored) else ""))
        return self._put(Priority.OUTCOME, finished)

    def wait_for_user(self, *, asked: bool) -> None:
        """Pause the time limit while its sub-agents only ask: the user's time is not the run's."""
        if asked:
            self._session.limit.pause()
        else:
            self._session.limit.go_on()

    def arrived(self) -> None:
        """Begin a turn for a new entry of its inbox, if it is idle then and was not stopped since."""
        session, run_id, caps = self._session, self._session.ports.ids.new(), self.wake_caps()
        if caps is None:
            return
        limit = caps.max_turns or session.settings.max_iterations

        def arrived() -> InboxArrived:
            put_away = session.record.archived or session.record.deleted
            return InboxArrived(not put_away, session.last, run_id, limit)

        session.inbox.put(Priority.OUTCOME, InboxEntry(arrived, caps=caps, wanted=self._wakes))

    async def _wakes(self) -> bool:
        store, session = self._session.ports.agents, self._session
        if store is None or not isinstance(session.state, Idle) or not await store.wakes(session.record.id):
            return False
        return not session.inbox.stops  # Esc came during the read: all waiting entries are about to become quiet

    def tell(self, views: tuple[AgentView, ...], results: int) -> None:
        """Send subscribers the views of its sub-agents, and the number of unread results."""
        self._session.publisher.publish(AgentsChanged(views, results))

    def belong_to(self, parent: AgentMailbox) -> None:
        """Make this one a sub-agent of `parent`: it asks in its name and begins with a copy of its rules.

        A copy: what the user allows one of them later holds for that one alone.
        """
        above = parent._session
        self._session.above = above
        folder = str(above.record.cwd)
        self._session.rules.update({replace(one, folder=one.folder or folder): at for one, at in above.rules.items()})

    def _put(self, priority: Priority, entry: InboxEntry) -> asyncio.Future[Receipt]:
        entry.receipt = asyncio.get_running_loop().create_future()
        self._session.inbox.put(priority, entry)
        return entry.receipt


def _answered(receipt: Receipt) -> asyncio.Future[Receipt]:
    """A future that is done."""
    done: asyncio.Future[Receipt] = asyncio.get_running_loop().create_future()
    done.set_result(receipt)
    return done
