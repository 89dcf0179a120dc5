"""Rules for Esc: cancel outranks everything, and every call still gets its answer (SPEC BED-005, STM-06)."""

from __future__ import annotations

from typing import assert_never

from msgspec.structs import replace

from engine.machine import agent_rules, broken, texts
from engine.machine.effects import (
    AbortLlm,
    CancelAgents,
    CancelTimer,
    KillTool,
    SaveNotice,
    StartCancelDeadline,
)
from engine.machine.events import CancelDeadlinePassed, StragglersEnded, ToolAborted, UserCancelled
from engine.machine.states import (
    AwaitingApproval,
    AwaitingLlm,
    AwaitingSubagents,
    Cancelling,
    Compacting,
    Completed,
    Errored,
    Failed,
    Idle,
    State,
    StopCause,
    ToolExecuting,
    ToolOrigin,
)
from engine.machine.transition import Step, end_run, stop_line, stop_round

CANCEL_DEADLINE = 0.1
"""Seconds until the conversation is idle whatever a process does (SPEC BED-005)."""
LAST_WORDS = 0.5
"""The same where Phoenix ends: no key waits, and results of tools and sub-agents that come meanwhile are kept."""

StopEvent = UserCancelled | ToolAborted | CancelDeadlinePassed | StragglersEnded


def step(state: State, event: StopEvent) -> Step:
    """Route Esc and its consequences."""
    match event:
        case UserCancelled():
            return _cancel(state, event)
        case ToolAborted():
            if isinstance(state, Cancelling) and not state.agents and event.call_id == state.round.current.id:
                ended = texts.name_ended(event.ended_processes, event.named)
                note = texts.describe_stop(state.elapsed, state.by, event.ended_processes, event.survivors, ended)
                return _end_round(state, event, note, event.job)
            return Step(state)
        case CancelDeadlinePassed():
            if isinstance(state, Cancelling):
                return _end_round(state, event, texts.describe_stop(state.elapsed, state.by))
            return Step(state)
        case StragglersEnded(ended, survivors):
            told: tuple[SaveNotice, ...] = (
                (SaveNotice(texts.stragglers(ended, survivors)),) if ended or survivors else ()
            )
            return Step(state, told)
        case _:
            assert_never(event)


def _end_round(state: Cancelling, event: ToolAborted | CancelDeadlinePassed, note: str, job: str = "") -> Step:
    """The round is over; a line of the user keeps its output, which says in its last line what the row would."""
    if event.output is not None and not job and state.round.origin is ToolOrigin.USER:
        return stop_line(state.gen + 1, state, event.message_id, event.output)
    return stop_round(state.gen + 1, state, event.message_id, note, by=state.by, job=job, output=event.output)


def _cancel(state: State, event: UserCancelled) -> Step:
    gen = state.gen + 1
    match state:
        case Idle() | Completed() | Failed() | Cancelling():
            return Step(state)
        case Errored():
            return Step(Idle(gen))
        case Compacting():
            return Step(Idle(gen), (AbortLlm(),))
        case AwaitingLlm():
            return _stop_model(broken.with_text_of(state, event), event)
        case AwaitingApproval():
            note = texts.describe_stop(event.elapsed, event.by)
            return stop_round(gen, state, event.message_id, note, by=event.by)
        case ToolExecuting():
            stop = KillTool(gen, state.round.current.id)
            return Step(_stopping(gen, state, event), (stop, _deadline(gen, event)))
        case AwaitingSubagents():
            after = replace(_stopping(gen, state, event), agents=state.agents, outcomes=state.outcomes)
            return Step(after, (CancelAgents(state.pending), _deadline(gen, event)))
        case _:
            assert_never(state)


def _deadline(gen: int, event: UserCancelled) -> StartCancelDeadline:
    return StartCancelDeadline(gen, LAST_WORDS if event.by is StopCause.ENDING else CANCEL_DEADLINE)


def _stopping(gen: int, state: ToolExecuting | AwaitingSubagents, event: UserCancelled) -> Cancelling:
    late, outside = event.by is StopCause.TIME_LIMIT, event.by is StopCause.OUTSIDE
    ending = event.by is StopCause.ENDING
    return Cancelling(gen, state.run, state.round, event.elapsed, late, outside=outside, ending=ending)


def _stop_model(state: AwaitingLlm, event: UserCancelled) -> Step:
    saves = broken.after_stop(state, event)
    words = agent_rules.words_of(broken.blocks_of(state)) if saves else ""
    row = SaveNotice(texts.describe_stop(event.elapsed, event.by))
    ended = end_run(state.gen + 1, state.run, (*saves, row), by=event.by, partial=words)
    return Step(ended.state, (*ended.effects, AbortLlm(), CancelTimer()))
