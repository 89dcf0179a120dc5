"""Views of sub-agents for the screen, and the delivery of their results to their parents."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Mapping
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from engine.conversation import Conversation
from engine.executor.requests import UNWANTED, Receipt
from engine.machine import agent_texts
from engine.machine.states import (
    AgentOutcome,
    AgentStatus,
    AwaitingApproval,
    AwaitingLlm,
    Compacting,
    Errored,
    Idle,
    State,
    run_of,
)
from engine.ports import Clock, StorageError
from engine.records import AgentRow, SpawnMode
from engine.updates import (
    AgentView,
    ApprovalAsked,
    ContextChanged,
    RunEnded,
    StateChanged,
    TextArrived,
    ThinkingArrived,
    ToolEnded,
    ToolProgressed,
    ToolStarted,
    Update,
)
from tools.call_titles import call_title
from tools.wording import one_line

if TYPE_CHECKING:
    from engine.store.agents import AgentStore


LONGEST_ACTIVITY: Final = 200
"""Characters of an activity."""


class AgentBoard:
    """Views by parent, kept true by the updates of the sub-agents' conversations."""

    def __init__(self, clock: Clock, opened: Mapping[str, Conversation]) -> None:
        self._now = clock.now
        self._opened = opened
        self._views: dict[str, dict[str, AgentView]] = {}
        self._results: dict[str, int] = {}

    def views(self, parent_id: str) -> tuple[AgentView, ...]:
        """Oldest first."""
        return tuple(self._views.get(parent_id, {}).values())

    def put(self, parent_id: str, view: AgentView) -> None:
        """Add a view, or replace it."""
        self._views.setdefault(parent_id, {})[view.id] = view
        self._publish(parent_id)

    def results(self, parent_id: str) -> int:
        """Number of results that its model has not read yet."""
        return self._results.get(parent_id, 0)

    def count(self, parent_id: str, results: int) -> None:
        """Set the number of unread results."""
        if results != self.results(parent_id):
            self._results[parent_id] = results
            self._publish(parent_id)

    def forget(self, parent_id: str) -> None:
        """Forget a conversation without viewers."""
        self._views.pop(parent_id, None)
        self._results.pop(parent_id, None)

    def get(self, parent_id: str, agent_id: str) -> AgentView | None:
        """One of them."""
        return self._views.get(parent_id, {}).get(agent_id)

    def is_background(self, parent_id: str, agent_id: str) -> None:
        """Mark it as a background agent: its parent waits no longer, and receives a message about its end."""
        view = self.get(parent_id, agent_id)
        if view is not None:
            self.put(parent_id, replace(view, background=True))

    def follow(self, parent_id: str, agent_id: str, update: Update) -> None:
        """Update the view by an update of the sub-agent's conversation."""
        view = self.get(parent_id, agent_id)
        if view is None:
            return
        match update:
            case TextArrived() | ThinkingArrived() | ToolProgressed():
                writing = view.writing or isinstance(update, TextArrived)
                self._views[parent_id][agent_id] = replace(view, last_output=self._now(), writing=writing)
                return  # too frequent to report: the screen reads the time when it draws
            case StateChanged(state=state):
                view, run = self._without_asking(view, state), run_of(state)
                waits = isinstance(state, Idle)  # before its first run, or after a resume
                began = isinstance(view.state, Idle) or view.outcome is not None
                view = replace(
                    view,
                    state=state,
                    waits=waits,
                    writing=False,
                    last_output=self._now() if isinstance(state, AwaitingLlm) else view.last_output,
                    turn=run.iteration if run is not None else 0 if waits else view.turn,
                    started=self._now() if run is not None and began else view.started,
                    outcome=None if run is not None or waits else view.outcome,
                    ended=0.0 if run is not None or waits else view.ended,
                )
            case ToolStarted(call, request):
                words = call_title(call.name, call.input_json, request.summary if request else "")
                view = replace(view, activity=one_line(words, LONGEST_ACTIVITY), last_output=self._now())
            case ToolEnded():
                view = replace(view, activity="", last_output=self._now())
            case ContextChanged(used=used, cost_usd=cost):
                view = replace(view, tokens=used, cost_usd=cost)
            case ApprovalAsked(question):
                # The conversation has the question itself.
                view = replace(view, asked=view.asked or self._now()) if question is not None else view
            case _:
                return
        self.put(parent_id, view)

    def _publish(self, parent_id: str) -> None:
        """Send the views of its sub-agents to a parent that is open."""
        parent = self._opened.get(parent_id)
        if parent is not None:
            parent.agents.tell(self.views(parent_id), self.results(parent_id))

    def _without_asking(self, view: AgentView, state: State) -> AgentView:
        """The time that the user took for an answer is not counted as the agent's (its deadline waited too)."""
        if view.asked and not isinstance(state, AwaitingApproval):
            return replace(view, started=view.started + self._now() - view.asked, asked=0.0)
        return view


def view_of(row: AgentRow) -> AgentView:
    """A row of the database as the screen shows it."""
    return AgentView(
        id=row.id,
        task=row.facts.task,
        profile=row.profile,
        model=row.model,
        background=row.facts.mode is SpawnMode.BACKGROUND,
        state=row.state,
        waits=isinstance(row.state, Idle),
        activity="",
        turn=row.iterations,
        max_turns=row.facts.max_turns,
        started=row.started_at,
        ended=row.ended_at,
        timeout=row.facts.timeout,
        tokens=row.totals.tokens,
        cost_usd=row.totals.cost_usd,
        last_output=row.ended_at or row.started_at,
        outcome=row.outcome,
        call_id=row.facts.call_id,
    )


log = logging.getLogger(__name__)

SUCCESS = "success"


class AgentResults:
    """Reads outcomes from the store, and wakes parents at rest for them (SPEC UNI-24)."""

    def __init__(self, store: AgentStore, opened: Mapping[str, Conversation], board: AgentBoard, clock: Clock) -> None:
        self._store = store
        self._opened = opened
        self._board = board
        self._clock = clock
        self._compacting: set[str] = set()
        """Parents whose user asked for a summary."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._told = asyncio.Event()

    @property
    def under_way(self) -> bool:
        """True while results are undelivered."""
        return bool(self._tasks)

    async def one_more(self) -> None:
        """Wait for the next delivery."""
        self._told.clear()
        await self._told.wait()

    async def quiet(self) -> None:
        """Wait until everything is delivered."""
        while self._tasks:
            await asyncio.wait(self._tasks - {asyncio.current_task()})

    def start(self, work: Coroutine[None, None, None]) -> None:
        """Do this in the background; a failure goes to the log."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._forget_task)

    async def outcome(self, agent_id: str, state: State) -> AgentOutcome:
        """Outcome in the store; a store that fails makes it a failure, never a parent that waits."""
        try:
            row = await self._store.row(agent_id)
        except StorageError as error:
            return AgentOutcome(agent_id, AgentStatus.FAILURE, reason=str(error))
        if row is not None and row.outcome is not None:
            return row.outcome
        reason = state.message if isinstance(state, Errored) else agent_texts.INTERRUPTED
        return AgentOutcome(agent_id, AgentStatus.FAILURE, reason=reason)

    def wake(self, parent: Conversation) -> None:
        """Let an idle parent read its new results; a busy one reads them before its next request (SPEC UNI-24)."""
        if self._opened.get(parent.id) is parent and isinstance(parent.state, Idle):
            parent.agents.begin_turn()

    def follow_parent(self, parent: Conversation, update: Update) -> None:
        """Wake a parent for results that waited for the end of its run, or of a summary that its user asked for."""
        match update:
            case RunEnded(status=status):
                if status == SUCCESS:
                    self._wake_for_background(parent)
                self.start(self.recount(parent))
            case StateChanged(state=Compacting()):
                self._compacting.add(parent.id)
            case StateChanged(state=Idle()) if parent.id in self._compacting:
                self._compacting.discard(parent.id)
                self._wake_for_background(parent)
            case _:
                pass  # no other state is idle

    def parent_stopped(self, parent_id: str) -> None:
        """Keep new results waiting, since the user stopped the parent."""
        self._compacting.discard(parent_id)

    async def hear(self, parent: Conversation, outcome: AgentOutcome, receipt: Receipt) -> None:
        """Deliver later a result that came just as its parent was stopped, too late for its call."""
        if receipt == UNWANTED and outcome.status is AgentStatus.SUCCESS:
            await self._store.leave(outcome.agent_id, self._clock.now())
            await self.recount(parent)

    async def recount(self, parent: Conversation) -> None:
        """Count the results that it has not read yet."""
        if self._opened.get(parent.id) is not parent:
            return
        try:
            self._board.count(parent.id, await self._store.waiting(parent.id))
        except StorageError as error:
            log.warning("the results that wait could not be counted: %s", error)

    def _wake_for_background(self, parent: Conversation) -> None:
        if any(view.background for view in self._board.views(parent.id)):
            self.wake(parent)

    def _forget_task(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._told.set()
        error = None if task.cancelled() else task.exception()
        if error is not None:
            log.error("a sub-agent's end could not be told", exc_info=error)
