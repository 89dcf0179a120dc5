"""Turns the saves of one step into the writes of one transaction."""

from __future__ import annotations

from collections.abc import Callable
from typing import assert_never

from msgspec.structs import replace

from engine.executor.equipment import tools_of
from engine.executor.event_log import MoveFacts, events_of_save, events_of_step
from engine.executor.session import Session
from engine.machine.effects import (
    DrainInbox,
    Effect,
    FinishRun,
    MarkToolCall,
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
    StartRun,
)
from engine.machine.messages import NewMessage, Origin, Role, TextBlock, ToolResult
from engine.machine.states import round_of, run_of
from engine.machine.transition import Step
from engine.ports import (
    AppendMessage,
    DrainInboxRows,
    RecordCall,
    RecordCompaction,
    RecordSpan,
    SetContext,
    SetView,
    Write,
)
from engine.records.model_calls import INPUT_PREVIEW, PREVIEW, ModelCall

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
            writes.append(_tool_span(session, save.result, run_id, elapsed(save.result.call_id)))
    return (*writes, *events_of_step(facts))


def _write(session: Session, save: Save, run_id: str) -> list[Write]:
    new = session.ports.ids.new
    match save:
        case SaveMessage():
            return [_message(save, run_id)]
        case SaveContext() | SaveView() | SaveCompaction():
            return _window(session, save)
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


def _window(session: Session, save: SaveContext | SaveView | SaveCompaction) -> list[Write]:
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


def _message(save: SaveMessage, run_id: str) -> AppendMessage:
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


def _tool_span(session: Session, result: ToolResult, run_id: str, elapsed: float) -> RecordSpan:
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
