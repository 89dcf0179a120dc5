"""Writes of one move: rows, spans, and the events that follow from the states and effects."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias, assert_never

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from engine.executor.equipment import tools_of
from engine.executor.session import Session
from engine.machine.effects import (
    DrainInbox,
    Effect,
    FinishRun,
    MarkToolCall,
    RunStatus,
    Save,
    SaveCompaction,
    SaveContext,
    SaveMessage,
    SaveNotice,
    SavePlan,
    SaveRoute,
    SaveTodos,
    SaveToolCalls,
    SaveToolResult,
    SaveView,
    ScheduleRetry,
    StartRun,
)
from engine.machine.messages import NewMessage, Origin, Role, TextBlock, ToolResult, ToolStatus, Usage, text_in
from engine.machine.states import (
    RETRIES,
    STATE_NAMES,
    AwaitingApproval,
    AwaitingLlm,
    AwaitingSubagents,
    Cancelling,
    Compacting,
    CompactingContext,
    Completed,
    Errored,
    Failed,
    Idle,
    Phase,
    Routing,
    State,
    ToolExecuting,
    ToolOrigin,
    round_of,
    run_of,
)
from engine.machine.transition import Step
from engine.ports import (
    AppendMessage,
    DrainInboxRows,
    RecordCall,
    RecordCompaction,
    RecordEvent,
    RecordSpan,
    SetContext,
    SetView,
    Write,
)
from engine.records import ConversationRecord
from engine.records import events as payloads
from engine.records.events import EventKind
from engine.records.runs import INPUT_PREVIEW, PREVIEW, ModelCall
from tools.contract import JsonObject

SYSTEM: Final = "system"
"""Agent named by an event that ends a run from outside of it (SPEC SDK-11)."""
LONGEST_DECISION: Final = 4_000
"""Characters of a supervisor's decision that an event carries whole."""
_ENDS: Final = {RunStatus.SUCCESS: EventKind.TASK_COMPLETED, RunStatus.CANCELLED: EventKind.TASK_CANCELLED}
"""Events of the ends of runs; every other end is a failure."""
_PHASES: Final[Mapping[type[Phase], str]] = {Routing: "routing", CompactingContext: "compacting"}
"""Stages of a run that waits for a model; in every other phase it thinks."""
Stage: TypeAlias = tuple[str, int, int]
"""Name, model call of the run, and how many the run may make."""


class MoveFacts(Struct, frozen=True):
    """One move: everything from which its events follow."""

    record: ConversationRecord
    before: State
    after: State
    effects: tuple[Effect, ...]
    run_id: str
    new_id: Callable[[], str]
    tools: tuple[str, ...] = ()
    """Tools of the model."""

    def event(self, kind: EventKind, payload: JsonObject, message_id: str = "") -> RecordEvent:
        """An event of this conversation and run."""
        agent_id = self.record.id if self.record.agent is not None else ""
        return RecordEvent(self.new_id(), kind, payloads.encode_payload(payload), self.run_id, message_id, agent_id)


def events_of_save(facts: MoveFacts, save: Save) -> tuple[RecordEvent, ...]:
    """Events that come right behind a save."""
    match save:
        case StartRun():
            begun = facts.event(EventKind.TASK_STARTED, _describe_start(facts, save), save.trigger_message_id)
            return (begun, *_build_start_event(facts))
        case FinishRun():
            kind, answer = _ENDS.get(save.status, EventKind.TASK_FAILED), _find_answer(facts)
            return (facts.event(kind, _describe_end(facts, save, answer), answer.id if answer is not None else ""),)
        case SaveRoute():
            return (facts.event(EventKind.TASK_PROGRESS, _describe_route(save)),)
        case SaveToolCalls() | MarkToolCall() | SaveToolResult():
            return _build_call_events(facts, save)
        case SaveContext(tokens, estimated, usage):
            return (_build_window_event(facts, tokens, estimated=estimated, usage=usage),)
        case SaveView(draft):
            return (_build_window_event(facts, draft.tokens, estimated=True),)
        case SaveMessage() | SaveNotice() | SaveCompaction() | DrainInbox() | SaveTodos() | SavePlan():
            return ()
        case _:
            assert_never(save)


def events_of_step(facts: MoveFacts) -> tuple[RecordEvent, ...]:
    """Events that end a move: a retry, another stage, another state, the end of a sub-agent."""
    found: list[RecordEvent] = []
    for effect in facts.effects:
        if isinstance(effect, ScheduleRetry):
            retry: JsonObject = {"attempt": effect.attempt, "maxAttempts": RETRIES, "error": effect.cause[:PREVIEW]}
            found.append(facts.event(EventKind.RUN_RETRYING, retry))
    stage = stage_of(facts.after)
    if stage is not None and stage != stage_of(facts.before):
        found.append(facts.event(EventKind.TASK_PROGRESS, _describe_progress(*stage)))
    before, after = STATE_NAMES[type(facts.before)], STATE_NAMES[type(facts.after)]
    if before != after:
        found.append(facts.event(EventKind.STATE_CHANGED, payloads.state_changed(before, after)))
    return (*found, *_build_stop_event(facts))


def stage_of(state: State) -> Stage | None:
    """The stage of a run; None between runs and while one is being stopped. A wait for a retry is still thinking."""
    match state:
        case AwaitingLlm(run=run, phase=phase):
            return _PHASES.get(type(phase), "thinking"), run.iteration, run.max_iterations
        case ToolExecuting(run=run) | AwaitingApproval(run=run) | AwaitingSubagents(run=run):
            return "tool_exec", run.iteration, run.max_iterations
        case Compacting():
            return "compacting", 0, 0
        case Idle() | Cancelling() | Errored() | Completed() | Failed():
            return None
        case _:
            assert_never(state)


def _describe_progress(stage: str, iteration: int, most: int) -> JsonObject:
    """Progress of a run; its length is unknown, so there is no percentage."""
    where = f", model call {iteration} of at most {most}" if iteration else ""
    words = {"thinking": "Thinking", "tool_exec": "Running tools", "compacting": "Summarizing older messages"}
    return {
        "message": f"{words.get(stage, 'Choosing who answers')}{where}",
        "percentage": None,
        "stage": stage,
        "iteration": iteration,
    }


def _describe_start(facts: MoveFacts, starting: StartRun) -> JsonObject:
    """The start of a run; without a prompt of its own the store looks for the newest one."""
    saved = [effect.message for effect in facts.effects if isinstance(effect, SaveMessage)]
    prompt = next((text_in(message.blocks) for message in saved if message.id == starting.trigger_message_id), "")
    record, round_ = facts.record, round_of(facts.after)
    if round_ is not None and round_.origin is ToolOrigin.USER:
        prompt = f"!{round_.command}"
    return {
        "prompt": prompt[:PREVIEW],
        "tools": list(facts.tools),
        "agentId": record.id if record.agent is not None else "",
        "agentName": record.profile,
        "model": record.model,
    }


def _describe_end(facts: MoveFacts, finishing: FinishRun, answer: NewMessage | None) -> JsonObject:
    """The end of a run; the store adds duration, usage, cost and files, which are sums over its calls."""
    if finishing.status is RunStatus.SUCCESS:
        said = text_in(answer.blocks, "\n\n") if answer is not None else ""
        result = facts.after.result if isinstance(facts.after, Completed) else said
        return {"result": result[:PREVIEW], "status": finishing.status.value}
    if finishing.status is RunStatus.CANCELLED:
        return {"agentId": SYSTEM, "status": finishing.status.value}
    code, status = finishing.error_code, finishing.status.value
    return payloads.build_failed(finishing.error, code, status, recoverable=finishing.recoverable)


def _find_answer(facts: MoveFacts) -> NewMessage | None:
    """The reply that ends a run."""
    saved = [effect.message for effect in facts.effects if isinstance(effect, SaveMessage)]
    return next((message for message in reversed(saved) if message.role is Role.ASSISTANT), None)


def _describe_route(save: SaveRoute) -> JsonObject:
    """A supervisor's decision (SPEC SDK-09); a very long one only by its strategy."""
    whole = len(save.decision_json) <= LONGEST_DECISION
    decision: JsonObject | None = msgspec.json.decode(save.decision_json, type=dict[str, Any]) if whole else None
    return {
        "message": f"The supervisor chose: {save.strategy.value}",
        "percentage": None,
        "stage": "routing",
        "strategy": save.strategy.value,
        "decision": decision,
    }


def _build_call_events(
    facts: MoveFacts, save: SaveToolCalls | MarkToolCall | SaveToolResult
) -> tuple[RecordEvent, ...]:
    match save:
        case SaveToolCalls(message_id, calls):
            asked = [
                facts.event(
                    EventKind.TASK_TOOL_CALL,
                    {"tool": call.name, "input": payloads.build_input(call.input_json), "toolUseId": call.id},
                    message_id,
                )
                for call in calls
            ]
            return (*_build_reply_event(facts, message_id), *asked)
        case MarkToolCall(call_id, status):
            if status is not ToolStatus.RUNNING:
                return ()
            name, message_id = _find_call(facts, call_id)
            return (facts.event(EventKind.TASK_TOOL_START, {"tool": name, "toolUseId": call_id}, message_id),)
        case SaveToolResult(result):
            name, message_id = _find_call(facts, result.call_id)
            ended = payloads.tool_result(name, result.call_id, result.text, success=not result.is_error)
            return (facts.event(EventKind.TASK_TOOL_RESULT, ended, message_id),)
        case _:
            assert_never(save)


def _build_reply_event(facts: MoveFacts, message_id: str) -> tuple[RecordEvent, ...]:
    """Text that comes with calls."""
    saved = [effect.message for effect in facts.effects if isinstance(effect, SaveMessage)]
    said = [text_in(one.blocks, "\n\n") for one in saved if one.id == message_id and one.role is Role.ASSISTANT]
    text = "\n\n".join(said)
    if not text.strip():
        return ()
    return (facts.event(EventKind.BLOCK_REPLY, {"content": text[:PREVIEW]}, message_id),)


def _find_call(facts: MoveFacts, call_id: str) -> tuple[str, str]:
    """Tool and message of a call: of this move, or of a round before or after it."""
    rounds = [found for found in (round_of(facts.before), round_of(facts.after)) if found is not None]
    calls = [(call, round_.message_id) for round_ in rounds for call in (round_.current, *round_.queue)]
    saved = [effect for effect in facts.effects if isinstance(effect, SaveToolCalls)]
    calls += [(call, effect.message_id) for effect in saved for call in effect.calls]
    return next(((call.name, message_id) for call, message_id in calls if call.id == call_id), ("", ""))


def _build_window_event(facts: MoveFacts, tokens: int, *, estimated: bool, usage: Usage | None = None) -> RecordEvent:
    payload: JsonObject = {"tokens": tokens, "window": facts.record.context_window, "estimated": estimated}
    if usage is not None:
        payload |= {"usage": payloads.usage(usage)}
    return facts.event(EventKind.CONTEXT_USAGE, payload)


def _build_start_event(facts: MoveFacts) -> tuple[RecordEvent, ...]:
    record = facts.record
    if record.agent is None:
        return ()
    payload = payloads.agent_start(record.id, record.agent, record.profile, facts.run_id)
    return (_build_parent_event(facts, EventKind.TASK_SUBAGENT_START, payload, record.agent.parent_id),)


def _build_stop_event(facts: MoveFacts) -> tuple[RecordEvent, ...]:
    """The end of a sub-agent, also of one that never began."""
    record, after = facts.record, facts.after
    if record.agent is None or not isinstance(after, Completed | Failed):
        return ()
    if isinstance(facts.before, Completed | Failed):
        return ()
    payload = payloads.agent_stop(record.id, record.agent, record.profile, facts.run_id, after)
    return (_build_parent_event(facts, EventKind.TASK_SUBAGENT_STOP, payload, record.agent.parent_id),)


def _build_parent_event(facts: MoveFacts, kind: EventKind, payload: JsonObject, parent_id: str) -> RecordEvent:
    """An event in the stream of the parent's conversation."""
    text = payloads.encode_payload(payload)
    return RecordEvent(facts.new_id(), kind, text, facts.run_id, agent_id=facts.record.id, conversation_id=parent_id)


INBOX_ROWS = 32
"""Ids kept ready for inbox rows of one drain; more rows wait for the next one."""
SUPERVISOR = "supervisor"
"""Author of the call that carries out a decision (SPEC STM-02)."""


def saves_of(effects: tuple[Effect, ...]) -> tuple[Save, ...]:
    """The effects that belong into the transaction."""
    return tuple(effect for effect in effects if isinstance(effect, Save))


def writes_of(
    session: Session,
    after: Step,
    saves: tuple[Save, ...],
    run_id: str,
    elapsed: Callable[[str], float],
    calls: tuple[ModelCall, ...],
) -> tuple[Write, ...]:
    """The writes of one move, in order: the model calls that ended first, so that the end of a run sums them up.

    `saves` are those of the step, and those that the executor added. `elapsed` gives the seconds a tool call has run.
    """
    saved = {save.message.id for save in saves if isinstance(save, SaveMessage)}
    tools = tuple(tools_of(session))
    facts = MoveFacts(session.record, session.state, after.state, after.effects, run_id, session.ports.ids.new, tools)
    writes: list[Write] = [
        RecordCall(call if call.message_id in saved else replace(call, message_id="")) for call in calls
    ]
    for save in saves:
        writes += _write(session, save, run_id)
        writes += events_of_save(facts, save)
        if isinstance(save, SaveToolResult):
            writes.append(_build_span(session, save.result, run_id, elapsed(save.result.call_id)))
    return (*writes, *events_of_step(facts))


def _write(session: Session, save: Save, run_id: str) -> list[Write]:
    new = session.ports.ids.new
    match save:
        case SaveMessage():
            return [_build_message_write(save, run_id)]
        case SaveContext() | SaveView() | SaveCompaction():
            return _build_window_writes(session, save)
        case SaveNotice(text):
            row = NewMessage(new(), Role.SYSTEM, Origin.NOTICE, (TextBlock(text),))
            return [AppendMessage(row, run_id)]
        case DrainInbox(new_turn):
            return [DrainInboxRows(run_id, tuple(new() for _ in range(INBOX_ROWS)), new_turn)]
        case StartRun() | SaveRoute() | FinishRun() | SaveToolCalls() | MarkToolCall() | SaveToolResult():
            return [save]
        case SaveTodos() | SavePlan():
            return [save]
        case _:
            assert_never(save)


def _build_window_writes(session: Session, save: SaveContext | SaveView | SaveCompaction) -> list[Write]:
    size = session.record.context_window
    match save:
        case SaveContext(tokens, estimated, usage):
            return [SetContext(tokens, size, estimated, usage)]
        case SaveView(draft):
            return [SetView(draft.view), SetContext(draft.tokens, size, estimated=True)]
        case SaveCompaction(facts):
            return [RecordCompaction(session.ports.ids.new(), facts)]
        case _:
            assert_never(save)


def _build_message_write(save: SaveMessage, run_id: str) -> AppendMessage:
    message = save.message
    by_supervisor = message.role is Role.ASSISTANT and message.origin is Origin.SUBAGENT
    return AppendMessage(
        message,
        run_id,
        save.new_turn,
        save.usage,
        save.model,
        save.duration_ms,
        cost_usd=save.cost_usd,
        agent_id=SUPERVISOR if by_supervisor else "",
    )


def _build_span(session: Session, result: ToolResult, run_id: str, elapsed: float) -> RecordSpan:
    """The span of a settled call; a call that never ran has a duration of 0."""
    preview = result.text[:PREVIEW]
    round_ = round_of(session.state)
    calls = (round_.current, *round_.queue) if round_ else ()
    call = next((call for call in calls if call.id == result.call_id), None)
    return RecordSpan(
        id=session.ports.ids.new(),
        run_id=run_id,
        tool_use_id=result.call_id,
        name=call.name if call is not None else "",
        iteration=run.iteration if (run := run_of(session.state)) else 1,
        status=result.status.value,
        duration_ms=round(elapsed * 1000),
        error=preview if result.is_error else "",
        output_preview=preview,
        input_preview=call.input_json[:INPUT_PREVIEW] if call is not None and session.settings.trace_verbose else "",
    )
