"""Rules for a sub-agent's own run: it ends by handing in, and it always ends (SPEC STM-09)."""

from __future__ import annotations

from typing import Any, assert_never

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from engine.machine import agent_texts, texts
from engine.machine.effects import (
    AskStopHooks,
    FinishRun,
    Refuse,
    RunStatus,
    Save,
    SaveMessage,
    SaveToolCalls,
    SaveToolResult,
)
from engine.machine.events import AgentBegun, AgentDropped, AgentEvent, AgentRecalled, LlmReplied, StopDecided
from engine.machine.messages import Block, NewMessage, Origin, Role, TextBlock, ToolCall, ToolResult, ToolStatus
from engine.machine.states import AgentRun, AwaitingLlm, Completed, Ending, Failed, Idle, Run, State
from engine.machine.transition import Step, fail_agent, next_iteration, read_inbox, results_message

SUBMIT_RESULT = "submit_result"
SUBMIT_ERROR = "submit_error"
FIELDS = {SUBMIT_RESULT: "result", SUBMIT_ERROR: "error"}
"""The submission tools and the one argument of each."""


class Submission(Struct, frozen=True):
    """Final result of a sub-agent; `text` is empty when its call was invalid."""

    tool: str
    text: str


def submission_of(call: ToolCall) -> Submission | None:
    """The submission a call is, None where it calls another tool."""
    if call.name not in FIELDS:
        return None
    try:
        arguments = msgspec.json.decode(call.input_json.encode("utf-8", "replace"), type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError):
        arguments = {}
    value = arguments.get(FIELDS[call.name])
    return Submission(call.name, value.strip() if isinstance(value, str) else "")


def handle_submission(
    state: AwaitingLlm, event: LlmReplied, saved: SaveMessage, calls: tuple[ToolCall, ...]
) -> Step | None:
    """Handle a submission, or report its mistake; None where the calls are ordinary work.

    `saved` is the reply that makes the calls.
    """
    found = [submission for call in calls if (submission := submission_of(call))]
    if not found and not state.run.in_grace:
        return None
    first = found[0] if found else Submission(SUBMIT_RESULT, "")
    accepted = len(calls) == len(found) == 1 and bool(first.text)
    if accepted:
        text = agent_texts.SUBMITTED
    elif len(calls) > 1 or not found:
        text = agent_texts.ONLY_TOOL
    else:
        text = agent_texts.bad_submission(first.tool, FIELDS[first.tool])
    saves = (
        saved,
        SaveToolCalls(event.message_id, calls),
        *_answer_calls(event.answer_id, calls, text, error=not accepted),
    )
    if accepted:
        run, gen = state.run, state.gen + 1
        if first.tool == SUBMIT_ERROR:
            return fail_agent(gen, run, "reported", first.text, saves)
        if event.asks_hooks and not run.in_grace:
            return Step(AwaitingLlm(gen, run, Ending(first.text)), (*saves, AskStopHooks(gen, first.text)))
        finish = FinishRun(run.id, RunStatus.SUCCESS, run.iteration)
        return Step(Completed(gen, first.text), (*saves, finish))
    if state.run.in_grace:
        return fail_agent(state.gen + 1, state.run, "turn_limit", agent_texts.TURN_LIMIT, saves)
    return next_iteration(state.gen + 1, state.run, saves)


def handle_reply_without_call(state: AwaitingLlm, event: LlmReplied, saves: tuple[Save, ...], said: str) -> Step:
    """A reply without a call: the first is answered by a nudge, the second is a failure."""
    run, gen = state.run, state.gen + 1
    agent = run.agent or AgentRun()
    if agent.in_grace:
        return fail_agent(gen, run, "turn_limit", agent_texts.TURN_LIMIT, saves, said)
    if agent.nudged:
        return fail_agent(gen, run, "no_submission", agent_texts.NO_SUBMISSION, saves, said)
    nudge = NewMessage(event.answer_id, Role.USER, Origin.SUBAGENT, (TextBlock(agent_texts.NUDGE),))
    nudged = replace(run, agent=replace(agent, nudged=True))
    return next_iteration(gen, nudged, (*saves, SaveMessage(nudge)))


def step(state: State, event: AgentEvent) -> Step:
    """Begin, drop or recall a sub-agent (SPEC UNI-25)."""
    gen = state.gen + 1
    match event:
        case AgentBegun(run_id, max_iterations, results):
            if not isinstance(state, Idle):
                return Step(state)
            saves = (SaveMessage(results),) if results is not None else ()
            return read_inbox(gen, Run(run_id, max_iterations, agent=AgentRun()), saves)
        case AgentDropped(kind, error):
            return Step(Failed(gen, kind, error)) if isinstance(state, Idle) else Step(state)
        case AgentRecalled():
            ended = isinstance(state, Completed | Failed)
            return Step(Idle(gen)) if ended else Step(state, (Refuse(texts.BUSY),))
        case _:
            assert_never(event)


def words_of(blocks: tuple[Block, ...]) -> str:
    """The text of a reply."""
    return "\n\n".join(block.text for block in blocks if isinstance(block, TextBlock) and block.text.strip())


def end_decided(state: AwaitingLlm, event: StopDecided, result: str, told: tuple[Save, ...]) -> Step:
    """End with the result that was handed in, or go on with the words of a hook while model calls are left."""
    run, gen = state.run, state.gen + 1
    if event.message is not None and run.iteration < run.max_iterations:
        return next_iteration(gen, run, (*told, SaveMessage(event.message)))
    finish = FinishRun(run.id, RunStatus.SUCCESS, run.iteration)
    return Step(Completed(gen, result), (*told, finish))


def _answer_calls(message_id: str, calls: tuple[ToolCall, ...], text: str, *, error: bool) -> tuple[Save, ...]:
    status = ToolStatus.ERROR if error else ToolStatus.SUCCESS
    results = tuple(ToolResult(call.id, text, status) for call in calls)
    return (*(SaveToolResult(result) for result in results), results_message(message_id, results))
