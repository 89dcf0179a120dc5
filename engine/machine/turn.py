"""Rules for requests of the user: messages, retries, shell commands, compaction; and inbox wake-ups."""

from __future__ import annotations

from typing import assert_never

from msgspec.structs import replace

from engine.machine import texts
from engine.machine.effects import (
    Compact,
    Refuse,
    RouteRequest,
    SaveMessage,
    SaveToolCalls,
    StartRun,
)
from engine.machine.events import CompactAsked, InboxArrived, OlderSummarized, RetryAsked, UserMessage, UserShell
from engine.machine.messages import UNANSWERED, NewMessage, Origin, Role, ToolUseBlock
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
    Routing,
    Run,
    State,
    ToolExecuting,
    ToolOrigin,
    ToolRound,
)
from engine.machine.transition import Step, compact_first, opens_turn, read_inbox, request, save_draft, start_current

TurnEvent = UserMessage | RetryAsked | CompactAsked | UserShell | InboxArrived | OlderSummarized


def step(state: State, event: TurnEvent) -> Step:
    """Route one request of the user, or one arrival in the inbox."""
    match event:
        case InboxArrived():
            return _inbox(state, event)
        case OlderSummarized(draft):
            if draft is None or not isinstance(state, Idle | Errored):
                return Step(state)
            return Step(state, save_draft(draft))
        case UserMessage() | RetryAsked() | CompactAsked() | UserShell():
            refusal = why_refused(state)
            if refusal:
                return Step(state, (Refuse(refusal),))
    match event:
        case UserMessage():
            return _message(state, event)
        case RetryAsked():
            return _retry(state, event)
        case CompactAsked():
            gen = state.gen + 1
            return Step(Compacting(gen), (Compact(gen, manual=True, focus=event.focus, before=event.before),))
        case UserShell():
            return _shell(state.gen + 1, event)
        case _:
            assert_never(event)


def why_refused(state: State) -> str:
    """The reason a request of the user cannot be taken now; empty when it can."""
    match state:
        case Idle() | Errored():
            return ""
        case AwaitingApproval():
            return texts.waiting_for_approval(state.round.current.name)
        case Cancelling():
            return texts.CANCELLING
        case AwaitingLlm() | ToolExecuting() | AwaitingSubagents() | Compacting():
            return texts.BUSY
        case Completed() | Failed():
            return texts.READ_ONLY
        case _:
            assert_never(state)


def _message(state: State, event: UserMessage) -> Step:
    gen, run = state.gen + 1, Run(event.run_id, event.max_iterations)
    saves = (SaveMessage(event.message, opens_turn(event.last)), StartRun(run.id, event.message.id))
    if event.supervisor:
        run = replace(run, compact_due=event.compact_due)
        return Step(AwaitingLlm(gen, run, Routing()), (*saves, RouteRequest(gen, run.id)))
    asked = compact_first(gen, run) if event.compact_due else request(gen, run)
    return Step(asked.state, (*saves, *asked.effects))


def _retry(state: State, event: RetryAsked) -> Step:
    if event.last not in UNANSWERED and not isinstance(state, Errored):
        return Step(state, (Refuse(texts.NOTHING_TO_RETRY),))
    run = Run(event.run_id, event.max_iterations)
    asked = request(state.gen + 1, run)
    return Step(asked.state, (StartRun(run.id), *asked.effects))


def _shell(gen: int, event: UserShell) -> Step:
    call = event.call
    row = NewMessage(event.message_id, Role.SYSTEM, Origin.NOTICE, (ToolUseBlock(call.id, call.name, call.input_json),))
    round_ = ToolRound(
        event.message_id,
        call,
        origin=ToolOrigin.USER,
        send_to_model=event.send_to_model,
        opens_turn=opens_turn(event.last),
        command=event.command,
    )
    saves = (SaveMessage(row), SaveToolCalls(row.id, (call,)), StartRun(event.run_id))
    return start_current(gen, Run(event.run_id, max_iterations=1), round_, saves)


def _inbox(state: State, event: InboxArrived) -> Step:
    if not (isinstance(state, Idle) and event.wakes):
        return Step(state)  # it stays in the inbox: drained before the next request, or shown as a count
    run = Run(event.run_id, event.max_iterations)
    return read_inbox(state.gen + 1, run, new_turn=opens_turn(event.last))
