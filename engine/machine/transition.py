"""What one step gives, and the few moves that several families share."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from engine.machine import texts
from engine.machine.effects import (
    Compact,
    DrainInbox,
    Effect,
    ExecTool,
    FinishRun,
    MarkToolCall,
    RequestLlm,
    RunStatus,
    SaveMessage,
    SaveNotice,
    SaveToolResult,
)
from engine.machine.messages import (
    LastMessage,
    NewMessage,
    Origin,
    Role,
    TextBlock,
    ToolResult,
    ToolResultBlock,
    ToolStatus,
)
from engine.machine.states import (
    AwaitingLlm,
    CompactingContext,
    Idle,
    Requesting,
    Run,
    State,
    ToolExecuting,
    ToolOrigin,
    ToolRound,
)


class Step(Struct, frozen=True):
    """The state after an event, and what is to be done: saves first, then acts, in this order."""

    state: State
    effects: tuple[Effect, ...] = ()


def opens_turn(last: LastMessage) -> bool:
    """Whether the next message begins a turn (SPEC UNI-06, T-TURN)."""
    return last in {LastMessage.NONE, LastMessage.ANSWER}


def request(gen: int, run: Run) -> Step:
    """Ask the model for the run's current iteration, with the inbox drained first (SPEC UNI-05)."""
    ask = RequestLlm(gen, run.id, run.iteration, run.max_iterations)
    return Step(AwaitingLlm(gen, run, Requesting()), (DrainInbox(), ask))


def compact_first(gen: int, run: Run) -> Step:
    """Summarize older messages before the next call; once in a run (SPEC CLAW-30)."""
    run = replace(run, compacted=True, compact_due=False)
    return Step(AwaitingLlm(gen, run, CompactingContext()), (Compact(gen, manual=False),))


def next_iteration(gen: int, run: Run, saves: tuple[Effect, ...]) -> Step:
    """Ask again after a tool round, unless the run has used up its model calls."""
    if run.iteration >= run.max_iterations:
        limit = FinishRun(
            run.id, RunStatus.FAILURE, run.iteration, texts.iteration_limit(run.iteration), "iteration_limit", True
        )
        return Step(Idle(gen), (*saves, SaveNotice(texts.iteration_limit(run.iteration)), limit))
    run = run.next_iteration()
    after = compact_first(gen, run) if run.compact_due and not run.compacted else request(gen, run)
    return Step(after.state, (*saves, *after.effects))


def start_current(gen: int, run: Run, round_: ToolRound, saves: tuple[Effect, ...], *, approved: bool = False) -> Step:
    """Start the round's current call; it is on record as running before it does (at most once)."""
    mark = MarkToolCall(round_.current.id, ToolStatus.RUNNING)
    return Step(ToolExecuting(gen, run, round_), (*saves, mark, ExecTool(gen, round_.current, approved)))


def results_message(message_id: str, results: tuple[ToolResult, ...]) -> SaveMessage:
    """The one user message that answers every call of a round, in request order (SPEC UNI-16)."""
    blocks = tuple(
        ToolResultBlock(result.call_id, (TextBlock(result.text), *result.images), result.is_error) for result in results
    )
    return SaveMessage(NewMessage(message_id, Role.USER, Origin.TOOL, blocks))


def close_round(
    round_: ToolRound, message_id: str, current: ToolResult, skipped: str
) -> tuple[SaveToolResult | SaveMessage, ...]:
    """End a round early: real results stay, `current` is given, the waiting calls read `skipped`."""
    rest = tuple(ToolResult(call.id, skipped, ToolStatus.SKIPPED) for call in round_.queue)
    fresh = (current, *rest)
    saves = tuple(SaveToolResult(result) for result in fresh)
    if round_.origin is ToolOrigin.USER:
        return saves
    return (*saves, results_message(message_id, round_.results + fresh))
