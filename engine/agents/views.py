"""Activity of every sub-agent, as rows for the screen."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec.structs import replace

from engine.conversation import Conversation
from engine.machine.states import AwaitingApproval, AwaitingLlm, Idle, State, run_of
from engine.ports import Clock
from engine.records import AgentRow, SpawnMode
from engine.updates import (
    AgentView,
    ApprovalAsked,
    ContextChanged,
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
        self._changed(parent_id)

    def results(self, parent_id: str) -> int:
        """Number of results that its model has not read yet."""
        return self._results.get(parent_id, 0)

    def count(self, parent_id: str, results: int) -> None:
        """Set the number of unread results."""
        if results != self.results(parent_id):
            self._results[parent_id] = results
            self._changed(parent_id)

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

    def _changed(self, parent_id: str) -> None:
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
