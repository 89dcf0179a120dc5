"""Result of one step, and the steps that several event families share."""

from __future__ import annotations

from typing import Final, assert_never

from msgspec import Struct
from msgspec.structs import replace

from engine.machine import agent_texts, texts
from engine.machine.effects import (
    Compact,
    DrainInbox,
    Effect,
    ExecTool,
    FinishRun,
    MarkToolCall,
    RequestLlm,
    RunStatus,
    Save,
    SaveCompaction,
    SaveMessage,
    SaveNotice,
    SaveToolResult,
    SaveView,
    StartRun,
)
from engine.machine.events import StoppedOutput
from engine.machine.messages import (
    LastMessage,
    NewMessage,
    Origin,
    Role,
    TextBlock,
    ToolResult,
    ToolResultBlock,
    ToolStatus,
    text_in,
)
from engine.machine.states import (
    AwaitingApproval,
    AwaitingLlm,
    Cancelling,
    CompactingContext,
    Failed,
    Idle,
    Requesting,
    Run,
    State,
    StopCause,
    ToolExecuting,
    ToolOrigin,
    ToolRound,
)
from engine.machine.views import CHARACTERS_PER_TOKEN, CompactionDraft

_AGENT_ENDS: Final = {
    StopCause.TIME_LIMIT: ("timeout", RunStatus.TIMEOUT, agent_texts.TIMED_OUT),
    StopCause.ENDING: ("interrupted", RunStatus.INTERRUPTED, agent_texts.INTERRUPTED),
}
"""Kind, status and error of a stopped sub-agent; it is cancelled for every other cause."""


class Step(Struct, frozen=True):
    """The state after an event, and its effects: saves first, then acts, in this order."""

    state: State
    effects: tuple[Effect, ...] = ()


def opens_turn(last: LastMessage) -> bool:
    """True if the next message begins a turn (SPEC UNI-06, T-TURN)."""
    return last in {LastMessage.NONE, LastMessage.ANSWER}


def request(gen: int, run: Run) -> Step:
    """Ask the model for the run's current iteration, with the inbox drained first (SPEC UNI-05)."""
    ask = RequestLlm(gen, run.id, run.iteration, run.max_iterations, only_submit=run.in_grace)
    return Step(AwaitingLlm(gen, run, Requesting()), (DrainInbox(), ask))


def read_inbox(gen: int, run: Run, saves: tuple[Save, ...] = (), *, new_turn: bool = True) -> Step:
    """Begin a run with the messages of the inbox; `saves` come behind it."""
    ask = RequestLlm(gen, run.id, run.iteration, run.max_iterations)
    return Step(AwaitingLlm(gen, run, Requesting()), (DrainInbox(new_turn=new_turn), *saves, StartRun(run.id), ask))


def save_draft(draft: CompactionDraft) -> tuple[Save, ...]:
    """The row about a compaction, its view, and its record."""
    return SaveNotice(draft.note), SaveView(draft), SaveCompaction(draft.facts)


def compact_first(gen: int, run: Run) -> Step:
    """Summarize older messages before the next call."""
    run = replace(run, compact_due=False)
    return Step(AwaitingLlm(gen, run, CompactingContext()), (Compact(gen, manual=False),))


def next_iteration(gen: int, run: Run, saves: tuple[Effect, ...]) -> Step:
    """Ask again after a tool round, unless the run has used up its model calls.

    Older messages are summarized first when the reply has filled the window, or its tool results will: as often as
    that helps, for a run may need many times the window (SPEC CLAW-30).
    """
    if run.iteration >= run.max_iterations:
        if run.agent is None:
            text = texts.iteration_limit(run.iteration)
            limit = FinishRun(run.id, RunStatus.FAILURE, run.iteration, text, "iteration_limit", recoverable=True)
            return Step(Idle(gen), (*saves, SaveNotice(text), limit))
        if run.in_grace:
            return fail_agent(gen, run, "turn_limit", agent_texts.TURN_LIMIT, saves, "")
        asked = request(gen, replace(run.next_iteration(), agent=replace(run.agent, in_grace=True)))
        return Step(asked.state, (*saves, *asked.effects))
    run = run.next_iteration()
    due = run.compact_due or 0 < run.room <= _result_tokens(saves)
    after = compact_first(gen, run) if due and not run.compaction_failed else request(gen, run)
    return Step(after.state, (*saves, *after.effects))


def _result_tokens(saves: tuple[Effect, ...]) -> int:
    """Estimated tokens of the results that the next call adds."""
    messages = [save.message for save in saves if isinstance(save, SaveMessage) and save.message.role is Role.USER]
    contents = [
        block.content if isinstance(block, ToolResultBlock) else (block,)
        for message in messages
        for block in message.blocks
    ]
    return sum(len(text_in(content)) for content in contents) // CHARACTERS_PER_TOKEN


def fail_agent(gen: int, run: Run, kind: str, error: str, saves: tuple[Effect, ...] = (), partial: str = "") -> Step:
    """End a sub-agent without a result; `partial` is its text so far."""
    finish = FinishRun(run.id, RunStatus.FAILURE, run.iteration, error, kind)
    return Step(Failed(gen, kind, error, partial), (*saves, finish))


def end_run(gen: int, run: Run, saves: tuple[Effect, ...], *, by: StopCause, partial: str = "") -> Step:
    """End a run that was stopped."""
    if run.agent is not None:
        kind, status, error = _AGENT_ENDS.get(by, ("cancelled", RunStatus.CANCELLED, agent_texts.CANCELLED))
        finish = FinishRun(run.id, status, run.iteration, error, kind)
        return Step(Failed(gen, kind, error, partial), (*saves, finish))
    match by:
        case StopCause.USER:
            finish = FinishRun(run.id, RunStatus.CANCELLED, run.iteration)
        case StopCause.OUTSIDE:
            finish = FinishRun(run.id, RunStatus.CANCELLED, run.iteration, texts.STOPPED_OUTSIDE)
        case StopCause.TIME_LIMIT:
            finish = FinishRun(run.id, RunStatus.FAILURE, run.iteration, texts.TIME_LIMIT, "timeout", recoverable=True)
        case StopCause.ENDING:
            status = RunStatus.INTERRUPTED
            finish = FinishRun(run.id, status, run.iteration, texts.CUT_OFF, status.value, recoverable=True)
        case _:
            assert_never(by)
    return Step(Idle(gen), (*saves, finish))


def stop_round(
    gen: int,
    state: Cancelling | AwaitingApproval,
    message_id: str,
    note: str,
    *,
    by: StopCause,
    job: str = "",
    output: StoppedOutput | None = None,
) -> Step:
    """End a stopped round: finished work stays, a spawn call keeps the results of its sub-agents.

    The model reads nothing of the stopped call (SPEC DEC-24); the screen shows the output of its command.
    """
    text, status = texts.describe_cancelled(job), ToolStatus.CANCELLED
    why, skipped, left = agent_texts.CANCELLED, texts.SKIPPED, ToolStatus.SKIPPED
    if by is StopCause.ENDING:
        text = skipped = texts.INTERRUPTED
        status = left = ToolStatus.INTERRUPTED
        why = agent_texts.INTERRUPTED
    round_, current = state.round, ToolResult(state.round.current.id, text, status)
    if output is not None:
        current = replace(current, display_json=output.display_json, truncated=output.truncated)
    if isinstance(state, Cancelling) and state.agents:
        found = agent_texts.aggregate(state.agents, state.outcomes, why)
        ends = agent_texts.ends(state.agents, state.outcomes, why)
        current = replace(current, text=f"{text}\n\n{found}", agents=ends)
    saves = close_round(round_, message_id, current, skipped, left)
    return end_run(gen, state.run, (*saves, SaveNotice(note)), by=by)


def stop_line(gen: int, state: Cancelling, message_id: str, output: StoppedOutput) -> Step:
    """End a stopped line of the user: its output stays, also for the model where it was to read it."""
    round_ = state.round
    status = ToolStatus.INTERRUPTED if state.by is StopCause.ENDING else ToolStatus.CANCELLED
    current = ToolResult(round_.current.id, output.text, status, (), output.display_json, output.truncated)
    noted = (SaveNotice(output.note),) if output.note else ()
    saves: tuple[Save, ...] = (SaveToolResult(current), *noted, *shell_told(round_, message_id, output.text))
    return end_run(gen, state.run, saves, by=state.by)


def shell_told(round_: ToolRound, message_id: str, output: str) -> tuple[SaveMessage, ...]:
    """The message with which the model reads a line of the user; none where it shall not."""
    if not round_.send_to_model:
        return ()
    told = TextBlock(texts.shell_ran(round_.command, output))
    return (SaveMessage(NewMessage(message_id, Role.USER, Origin.NOTICE, (told,)), round_.opens_turn),)


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
    round_: ToolRound, message_id: str, current: ToolResult, skipped: str, status: ToolStatus = ToolStatus.SKIPPED
) -> tuple[SaveToolResult | SaveMessage, ...]:
    """End a round early: real results stay, `current` is given, the waiting calls read `skipped`."""
    rest = tuple(ToolResult(call.id, skipped, status) for call in round_.queue)
    fresh = (current, *rest)
    saves = tuple(SaveToolResult(result) for result in fresh)
    if round_.origin is ToolOrigin.USER:
        return saves
    return (*saves, results_message(message_id, round_.results + fresh))
