"""Rules for a tool round: results and sub-agents."""

from __future__ import annotations

from typing import assert_never

from msgspec.structs import replace

from engine.machine import agent_texts, texts
from engine.machine.effects import (
    FinishRun,
    RunStatus,
    Save,
    SaveNotice,
    SaveTodos,
    SaveToolResult,
)
from engine.machine.events import AgentFinished, AgentsStarted, ToolFinished
from engine.machine.messages import ToolResult, ToolStatus
from engine.machine.states import (
    AwaitingSubagents,
    Cancelling,
    Idle,
    Run,
    State,
    ToolExecuting,
    ToolOrigin,
    ToolRound,
)
from engine.machine.transition import (
    Step,
    close_round,
    fail_agent,
    next_iteration,
    results_message,
    shell_told,
    start_current,
    stop_round,
)

ToolEvent = ToolFinished | AgentsStarted | AgentFinished


def step(state: State, event: ToolEvent) -> Step:
    """Route one event of a tool round; an event of another call changes nothing."""
    match event:
        case ToolFinished():
            if isinstance(state, ToolExecuting) and state.round.current.id == event.result.call_id:
                after = _end_call(state, event)
                return after if event.todos is None else Step(after.state, (SaveTodos(event.todos), *after.effects))
            return Step(state)
        case AgentsStarted():
            if isinstance(state, ToolExecuting) and state.round.current.id == event.call_id and event.agents:
                waiting = AwaitingSubagents(state.gen + 1, state.run, state.round, event.agents)
                return Step(waiting)
            return Step(state)
        case AgentFinished():
            return _agent(state, event)
        case _:
            assert_never(event)


def settle(gen: int, run: Run, round_: ToolRound, result: ToolResult, message_id: str, note: str = "") -> Step:
    """Take the current call's result: start the next call, or give all results to the model."""
    results = (*round_.results, result)
    saved = _save_result(result, note)
    if round_.origin is ToolOrigin.USER:
        told = shell_told(round_, message_id, result.text)
        return Step(Idle(gen), (*_save_result(result, note), *told, FinishRun(run.id, RunStatus.SUCCESS, 0)))
    if round_.queue:
        following, *rest = round_.queue
        onward = replace(round_, current=following, queue=tuple(rest), results=results)
        return start_current(gen, run, onward, saved)
    return next_iteration(gen, run, (*saved, results_message(message_id, results)))


def _end_call(state: ToolExecuting, event: ToolFinished) -> Step:
    if not event.stop_run:
        return settle(state.gen + 1, state.run, state.round, event.result, event.message_id, event.note)
    noted = _save_note(event.note)
    by_hook = bool(event.stop_reason)
    code, text = (event.stop_code, event.stop_reason) if by_hook else ("loop", texts.LOOP)
    skipped = texts.SKIPPED_HOOK if by_hook else texts.SKIPPED_LOOP
    saves = (*noted, *close_round(state.round, event.message_id, event.result, skipped))
    run = state.run
    if run.agent is not None:
        return fail_agent(state.gen + 1, run, code, text, saves)
    finish = FinishRun(run.id, RunStatus.FAILURE, run.iteration, text, code, recoverable=True)
    return Step(Idle(state.gen + 1), (*saves, SaveNotice(text), finish))


def _save_result(result: ToolResult, note: str) -> tuple[Save, ...]:
    return (SaveToolResult(result), *_save_note(note))


def _save_note(note: str) -> tuple[Save, ...]:
    return (SaveNotice(note),) if note else ()


def _agent(state: State, event: AgentFinished) -> Step:
    """One sub-agent has ended; with the last one the call has its result."""
    outcome = event.outcome
    if not isinstance(state, AwaitingSubagents | Cancelling) or outcome.agent_id not in state.pending:
        return Step(state)
    onward = replace(state, outcomes=(*state.outcomes, outcome))
    if onward.pending:
        return Step(onward)
    if isinstance(onward, Cancelling):
        note = texts.describe_stop(onward.elapsed, onward.by)
        return stop_round(onward.gen + 1, onward, event.message_id, note, by=onward.by)
    text = agent_texts.aggregate(onward.agents, onward.outcomes)
    ends = agent_texts.ends(onward.agents, onward.outcomes)
    result = ToolResult(onward.round.current.id, text, ToolStatus.SUCCESS, agents=ends)
    return settle(onward.gen + 1, onward.run, onward.round, result, event.message_id)
