"""Rules for results of the model: replies, failures, retries, compaction and routing."""

from __future__ import annotations

from typing import assert_never

from msgspec.structs import replace

from engine.machine import agent_rules, agent_texts, broken, texts
from engine.machine.effects import (
    AfterRun,
    AskStopHooks,
    Compact,
    Effect,
    FinishRun,
    Notice,
    RequestLlm,
    RunStatus,
    Save,
    SaveCompaction,
    SaveContext,
    SaveMessage,
    SaveNotice,
    SaveRoute,
    SaveToolCalls,
    ScheduleRetry,
)
from engine.machine.events import CompactionEnded, LlmFailed, LlmReplied, RetryDue, RouteDecided, StopDecided
from engine.machine.messages import (
    Block,
    LastMessage,
    NewMessage,
    Origin,
    Role,
    StopReason,
    ToolCall,
    ToolUseBlock,
)
from engine.machine.states import (
    CONTINUATIONS,
    RETRIES,
    AwaitingLlm,
    Compacting,
    CompactingContext,
    Ending,
    Errored,
    Idle,
    Requesting,
    RetryWait,
    Routing,
    State,
    ToolRound,
)
from engine.machine.transition import (
    Step,
    compact_first,
    fail_agent,
    next_iteration,
    request,
    save_draft,
    start_current,
)
from engine.machine.views import CompactionFacts

LONGEST_WAIT = 60.0
"""Seconds; a larger Retry-After is not waited for in full (SPEC DEC-10)."""

HOOK_STOPPED = "hook_stopped"
"""Kind of a failure by which hooks end a run between its tools and the next request."""

DECLINES = {
    StopReason.REFUSAL: ("refusal", texts.DECLINED),
    StopReason.CONTENT_FILTER: ("content_filter", texts.FILTERED),
}
"""Replies that end as a failure whatever they say: the code of the run's end, and the sentence for it."""

ReplyEvent = LlmReplied | LlmFailed | RetryDue | CompactionEnded | RouteDecided | StopDecided


def step(state: State, event: ReplyEvent) -> Step:
    """Route one answer of a model call; a late one changes nothing."""
    if isinstance(state, Compacting) and isinstance(event, CompactionEnded):
        return Step(Idle(state.gen + 1), _end_compaction(event))
    if not isinstance(state, AwaitingLlm):
        return Step(state)
    match event, state.phase:
        case LlmReplied(), Requesting():
            after = _handle_reply(state, event)
            return Step(after.state, (*after.effects, *_save_usage(event)))
        case LlmFailed(), Requesting():
            return _handle_failure(state, event)
        case RetryDue(), RetryWait():
            return _again(state, state.partial)
        case CompactionEnded(), CompactingContext():
            return _handle_compaction(state, event)
        case RouteDecided(), Routing():
            return _handle_route(state, event)
        case StopDecided(), Ending():
            return _stop_decided(state, event, state.phase)
        case ((LlmReplied() | LlmFailed() | RetryDue() | CompactionEnded() | RouteDecided() | StopDecided()), _):
            return Step(state)
        case _:
            assert_never(event)


def _handle_compaction(state: AwaitingLlm, event: CompactionEnded) -> Step:
    """Continue with the call that waited: a failure changes nothing but is shown (SPEC CLAW-30)."""
    told: tuple[Effect, ...]
    if isinstance(event.outcome, CompactionFacts):
        told = (SaveCompaction(event.outcome), Notice(event.outcome.problem))
        state = replace(state, run=replace(state.run, compaction_failed=True))
    else:
        told = save_draft(event.outcome)
    if state.partial:
        onward = _again(state, state.partial)
        return Step(onward.state, (*told, *onward.effects))
    asked = AwaitingLlm(state.gen + 1, state.run, Requesting(), broken=state.broken)
    return Step(asked, (*told, *request(state.gen + 1, state.run).effects))


def _again(state: AwaitingLlm, partial: tuple[Block, ...], truncated_call: bool = False) -> Step:
    gen = state.gen + 1
    after = replace(state, gen=gen, phase=Requesting(), partial=partial)
    run = state.run
    ask = RequestLlm(
        gen, run.id, run.iteration, run.max_iterations, state.attempt, partial, truncated_call, run.in_grace
    )
    return Step(after, (ask,))


def _handle_reply(state: AwaitingLlm, event: LlmReplied) -> Step:
    tokens = event.context_tokens if event.pruned is None else event.pruned.tokens
    left = event.compact_above - tokens
    due = event.compact_above > 0 and left <= 0
    state = replace(
        state,
        run=replace(state.run, compact_due=due, room=max(left, 0) if event.compact_above > 0 else 0, overflowed=False),
    )
    written = broken.merge(state.partial, event.blocks)
    answer = written if event.answer is None else event.answer
    if event.stop in DECLINES:
        blocks = tuple(block for block in answer if not isinstance(block, ToolUseBlock))
        run, gen, (code, text) = state.run, state.gen + 1, DECLINES[event.stop]
        saves = (_assistant(event, blocks),) if broken.has_content(blocks) else ()
        if run.agent is not None:
            return fail_agent(gen, run, code, text, saves, agent_rules.words_of(blocks))
        return Step(
            Idle(gen), (*saves, SaveNotice(text), FinishRun(run.id, RunStatus.FAILURE, run.iteration, text, code))
        )
    calls = tuple(ToolCall(b.id, b.name, b.input_json) for b in answer if isinstance(b, ToolUseBlock))
    if calls:
        return _use_tools(state, event, answer, calls)
    if event.truncated_call or event.stop in {StopReason.MAX_TOKENS, StopReason.PAUSE_TURN}:
        return _continue(state, event, answer, written)
    return _end(state, event, answer)


def _use_tools(state: AwaitingLlm, event: LlmReplied, answer: tuple[Block, ...], calls: tuple[ToolCall, ...]) -> Step:
    saved = _assistant(event, answer)
    if state.run.agent is not None and (handed_in := agent_rules.handle_submission(state, event, saved, calls)):
        return handed_in
    first, *rest = calls
    saves = (saved, SaveToolCalls(event.message_id, calls))
    round_ = ToolRound(event.message_id, first, tuple(rest))
    return start_current(state.gen + 1, state.run, round_, saves)


def _continue(state: AwaitingLlm, event: LlmReplied, answer: tuple[Block, ...], partial: tuple[Block, ...]) -> Step:
    """Ask for the rest of `partial`, the reply exactly as written so far; at a limit `answer` is stored."""
    run = state.run
    if state.continuations >= CONTINUATIONS or run.iteration >= run.max_iterations:
        if run.agent is not None:
            return _end(state, event, answer)
        limited = state.continuations < CONTINUATIONS
        text = texts.iteration_limit(run.iteration) if limited else texts.OUTPUT_LIMIT
        code = "iteration_limit" if limited else "output_limit"
        saves: tuple[Save, ...] = (_assistant(event, answer),) if broken.has_content(answer) else ()
        finish = FinishRun(run.id, RunStatus.FAILURE, run.iteration, text, code, recoverable=True)
        return Step(Idle(state.gen + 1), (*saves, SaveNotice(text), finish))
    onward = replace(state, run=run.next_iteration(), continuations=state.continuations + 1, attempt=0, broken=None)
    return _again(onward, partial, event.truncated_call)


def _end(state: AwaitingLlm, event: LlmReplied, blocks: tuple[Block, ...]) -> Step:
    run = state.run
    if run.agent is not None:
        saved = (_assistant(event, blocks),) if broken.has_content(blocks) else ()
        return agent_rules.handle_reply_without_call(state, event, saved, agent_rules.words_of(blocks))
    done = Idle(state.gen + 1)
    finish = FinishRun(run.id, RunStatus.SUCCESS, run.iteration)
    said = (_assistant(event, blocks),) if broken.has_content(blocks) else ()
    if event.asks_hooks and (said or event.last in {LastMessage.TOOL_RESULT, LastMessage.CUT}):
        ending = AwaitingLlm(state.gen + 1, run, Ending())
        return Step(ending, (*said, AskStopHooks(ending.gen, agent_rules.words_of(blocks))))
    if said:
        return Step(done, (*said, finish, AfterRun(run.id)))
    if event.last in {LastMessage.TOOL_RESULT, LastMessage.CUT}:
        return Step(done, (finish, AfterRun(run.id)))  # nothing further after its tools, or the text it had written
    empty = LlmFailed(event.gen, "empty", texts.EMPTY_REPLY, retryable=True, message_id=event.message_id)
    return _handle_failure(state, empty)


def _stop_decided(state: AwaitingLlm, event: StopDecided, ending: Ending) -> Step:
    """End the run, or go on with the words of a hook; the limit of model calls holds."""
    run, told = state.run, (SaveNotice(event.note),) if event.note else ()
    if run.agent is not None:
        return agent_rules.end_decided(state, event, ending.result, told)
    if event.message is not None:
        return next_iteration(state.gen + 1, run, (*told, SaveMessage(event.message)))
    finish = FinishRun(run.id, RunStatus.SUCCESS, run.iteration)
    return Step(Idle(state.gen + 1), (*told, finish, AfterRun(run.id)))


def _handle_failure(state: AwaitingLlm, event: LlmFailed) -> Step:
    run = state.run
    gen = state.gen + 1
    state = replace(state, broken=broken.longer(state.broken, event.written, event.message, event.message_id))
    if event.context_overflow and not run.overflowed:
        run = replace(run, overflowed=True)
        after = replace(state, gen=gen, phase=CompactingContext(), run=run, attempt=0)
        return Step(after, (Compact(gen, manual=False, full=True),))
    if event.retryable and state.attempt < RETRIES:
        seconds = min(max(2.0**state.attempt, event.retry_after), LONGEST_WAIT)
        waiting = replace(state, gen=gen, phase=RetryWait(seconds, event.message), attempt=state.attempt + 1)
        return Step(waiting, (ScheduleRetry(gen, seconds, state.attempt + 1, event.message),))
    saves = broken.after_failure(state, event)
    if run.agent is not None:
        text = agent_texts.NO_CONTEXT if event.context_overflow else event.message
        return fail_agent(gen, run, event.kind, text, saves, agent_rules.words_of(broken.blocks_of(state)))
    text = event.message
    if event.kind == HOOK_STOPPED:
        finish = FinishRun(run.id, RunStatus.FAILURE, run.iteration, text, event.kind, recoverable=True)
        return Step(Idle(gen), (*saves, SaveNotice(text), finish))
    if event.context_overflow:
        text = texts.overflow(event.message)
    elif event.retryable:
        text = texts.retries_spent(event.message)
    finish = FinishRun(run.id, RunStatus.FAILURE, run.iteration, text, event.kind, event.retryable)
    return Step(Errored(gen, event.kind, text, event.retryable, run.id, event.status), (*saves, finish))


def _handle_route(state: AwaitingLlm, event: RouteDecided) -> Step:
    run, gen = state.run, state.gen + 1
    told: tuple[Save, ...] = (SaveRoute(run.id, event.strategy, event.decision_json),)
    if event.note:
        told = (*told, SaveNotice(event.note))
    if event.spawn is None:
        onward = compact_first(gen, run) if run.compact_due else request(gen, run)
        return Step(onward.state, (*told, *onward.effects))
    call = event.spawn
    blocks = (ToolUseBlock(call.id, call.name, call.input_json),)
    message = NewMessage(event.message_id, Role.ASSISTANT, Origin.SUBAGENT, blocks)
    saves = (*told, SaveMessage(message), SaveToolCalls(message.id, (call,)))
    return start_current(gen, run, ToolRound(message.id, call), saves, approved=event.approved)


def _save_usage(event: LlmReplied) -> tuple[Save, ...]:
    context = SaveContext(event.context_tokens, event.estimated, event.usage)
    return (context,) if event.pruned is None else (context, *save_draft(event.pruned))


def _end_compaction(event: CompactionEnded) -> tuple[Save, ...]:
    """End of a compaction that the user asked for: a failure leaves a row too."""
    if isinstance(event.outcome, CompactionFacts):
        return SaveNotice(event.outcome.problem), SaveCompaction(event.outcome)
    return save_draft(event.outcome)


def _assistant(event: LlmReplied, blocks: tuple[Block, ...]) -> SaveMessage:
    message = NewMessage(event.message_id, Role.ASSISTANT, Origin.LLM, blocks, silent=event.silent)
    return SaveMessage(
        message, usage=event.usage, model=event.model, duration_ms=event.duration_ms, cost_usd=event.cost_usd
    )
