"""The machine's one door: `step(state, event)`; it only drops late answers and routes to a family of rules."""

from __future__ import annotations

from typing import assert_never

from engine.machine import agent_rules, asking, reply, stopping, tooling, turn
from engine.machine.events import (
    AgentBegun,
    AgentDropped,
    AgentFinished,
    AgentRecalled,
    AgentsStarted,
    ApprovalAnswered,
    ApprovalLapsed,
    ApprovalNeeded,
    CancelDeadlinePassed,
    CompactAsked,
    CompactionEnded,
    Event,
    ExecutorEvent,
    InboxArrived,
    LlmFailed,
    LlmReplied,
    OlderSummarized,
    RetryAsked,
    RetryDue,
    RouteDecided,
    StopDecided,
    StragglersEnded,
    ToolAborted,
    ToolFinished,
    UserCancelled,
    UserMessage,
    UserShell,
)
from engine.machine.states import State
from engine.machine.transition import Step


def step(state: State, event: Event) -> Step:
    """Decide what `event` changes: total over all states and events, never raises.

    An answer of the executor whose generation is not the state's is late and changes nothing (SPEC STM-00).
    """
    if isinstance(event, ExecutorEvent) and event.gen != state.gen:
        return Step(state)
    match event:
        case UserMessage() | RetryAsked() | CompactAsked() | UserShell() | InboxArrived() | OlderSummarized():
            return turn.step(state, event)
        case LlmReplied() | LlmFailed() | RetryDue() | CompactionEnded() | RouteDecided() | StopDecided():
            return reply.step(state, event)
        case ToolFinished() | AgentsStarted() | AgentFinished():
            return tooling.step(state, event)
        case ApprovalNeeded() | ApprovalAnswered() | ApprovalLapsed():
            return asking.step(state, event)
        case UserCancelled() | ToolAborted() | CancelDeadlinePassed() | StragglersEnded():
            return stopping.step(state, event)
        case AgentBegun() | AgentDropped() | AgentRecalled():
            return agent_rules.step(state, event)
        case _:
            assert_never(event)
