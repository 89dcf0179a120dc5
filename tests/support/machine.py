"""Random walks through the machine: any event in any state, invariants checked each step (SPEC I1 to I3, I7)."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from engine.machine.effects import (
    DrainInbox,
    Effect,
    FinishRun,
    MarkToolCall,
    Refuse,
    SaveCompaction,
    SaveContext,
    SaveMessage,
    SaveToolCalls,
    SaveToolResult,
    SaveView,
    StartRun,
)
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
    PlanAnswer,
    RetryAsked,
    RetryDue,
    RouteDecided,
    StopDecided,
    StoppedOutput,
    StragglersEnded,
    ToolAborted,
    ToolFinished,
    UserCancelled,
    UserMessage,
    UserShell,
    Verdict,
)
from engine.machine.messages import (
    Block,
    LastMessage,
    NewMessage,
    Origin,
    Role,
    StopReason,
    TextBlock,
    ThinkingBlock,
    ToolCall,
    ToolResult,
    ToolResultBlock,
    ToolStatus,
    ToolUseBlock,
    Usage,
)
from engine.machine.states import (
    AgentOutcome,
    AgentStatus,
    AgentTask,
    AwaitingLlm,
    AwaitingSubagents,
    Cancelling,
    Compacting,
    CompactingContext,
    Completed,
    Errored,
    Failed,
    Idle,
    Requesting,
    State,
    StopCause,
    is_busy,
    run_of,
)
from engine.machine.step import step
from engine.machine.views import CompactionCause, CompactionDraft, CompactionFacts, CompactionKind, ContextView
from tools.displays import TodoItem, TodoList

AGENTS = tuple(AgentTask(f"a{number}", f"task {number}") for number in (1, 2, 3))
SUBMISSIONS = (
    ("submit_result", '{"result": "found"}'),
    ("submit_result", "{}"),
    ("submit_error", '{"error": "no"}'),
    ("submit_error", "not json"),
)


def compacted(view: ContextView, tokens: int, note: str) -> CompactionDraft:
    """The outcome of a compaction that made this view."""
    facts = CompactionFacts(CompactionCause.FULL, CompactionKind.SUMMARY, 12, start_seq=view.start_seq)
    return CompactionDraft(view, tokens, note, facts)


def nothing_compacted(problem: str) -> CompactionFacts:
    """The outcome of a compaction that changed nothing."""
    return CompactionFacts(CompactionCause.FULL, CompactionKind.NONE, 12, problem=problem)


@dataclass
class Walk:
    """A conversation driven at random; `world` is what a database would hold after every commit."""

    rng: random.Random
    state: State = field(default_factory=lambda: Idle(0))
    for_agent: bool = False
    """True for a sub-agent's conversation."""
    messages: list[NewMessage] = field(default_factory=list)
    open_calls: dict[str, str] = field(default_factory=dict)
    """Calls asked for and not yet settled, with the message that asked."""
    running: set[str] = field(default_factory=set)
    """Runs started and not finished."""
    marked: list[str] = field(default_factory=list)
    settled: set[str] = field(default_factory=set)
    serial: int = 0

    def fresh(self, kind: str) -> str:
        self.serial += 1
        return f"{kind}{self.serial}"

    @property
    def last(self) -> LastMessage:
        for message in reversed(self.messages):
            if message.role is Role.ASSISTANT:
                if message.cut:
                    return LastMessage.CUT
                asks = any(isinstance(block, ToolUseBlock) for block in message.blocks)
                return LastMessage.TOOL_USE if asks else LastMessage.ANSWER
            if message.role is Role.USER:
                answers = any(isinstance(block, ToolResultBlock) for block in message.blocks)
                return LastMessage.TOOL_RESULT if answers else LastMessage.USER
        return LastMessage.NONE

    def take(self, steps: int) -> None:
        for _ in range(steps):
            self.apply(self.event())

    def apply(self, event: Event) -> None:
        before = self.state
        after = step(before, event)
        assert step(before, event) == after, "the same transition twice gives equal results"
        self._check_refusals(before, event, after.state, after.effects)
        _check_facts(before, event, after.effects)
        self.state = after.state
        for effect in after.effects:
            self._commit(effect)
        self._check_invariants()

    def _check_refusals(self, before: State, event: Event, after: State, effects: tuple[object, ...]) -> None:
        refused = any(isinstance(effect, Refuse) for effect in effects)
        if refused:
            assert after == before, "a refusal changes nothing"
            assert len(effects) == 1, "a refusal does nothing else"
        if isinstance(event, UserMessage):
            ended = isinstance(before, Completed | Failed)
            assert refused == (is_busy(before) or ended), "busy refuses, idle takes"
        if isinstance(event, ExecutorEvent) and event.gen != before.gen:
            assert (after, effects) == (before, ()), "a late answer changes nothing"
        if isinstance(event, UserCancelled):
            assert not is_busy(after) or isinstance(after, Cancelling), "Esc ends everything but the last 100 ms"
        if self.for_agent and self.messages and isinstance(after, Idle) and not isinstance(before, Idle):
            assert isinstance(event, AgentRecalled), "a sub-agent comes to rest with an outcome"
        if before != after:
            assert after.gen >= before.gen, "generations only grow"

    def _commit(self, effect: object) -> None:
        match effect:
            case SaveMessage(message):
                self._append(message)
            case SaveToolCalls(message_id, calls):
                self.open_calls.update({call.id: message_id for call in calls})
            case MarkToolCall(call_id, ToolStatus.RUNNING):
                assert call_id in self.open_calls, "only a call on record may start"
                self.marked.append(call_id)
            case SaveToolResult(result):
                assert result.call_id not in self.settled, "a call is settled once"
                self.settled.add(result.call_id)
                del self.open_calls[result.call_id]
            case DrainInbox(new_turn=True) if self.for_agent:
                self._append(NewMessage(self.fresh("m"), Role.USER, Origin.SUBAGENT, (TextBlock("do this"),)))
            case StartRun(run_id):
                assert not self.running, "one running run at most (I3)"
                self.running.add(run_id)
            case FinishRun(run_id):
                self.running.remove(run_id)
            case _:
                pass

    def _append(self, message: NewMessage) -> None:
        if message.role is Role.SYSTEM:
            self.messages.append(message)
            return
        spoken = [m for m in self.messages if m.role is not Role.SYSTEM]
        asked = [b.id for b in spoken[-1].blocks if isinstance(b, ToolUseBlock)] if spoken else []
        answers = [b.tool_use_id for b in message.blocks if isinstance(b, ToolResultBlock)]
        assert answers == asked, "every tool use is answered at once, in request order (I1)"
        assert message.blocks, "no message is empty"
        assert message.id not in {m.id for m in self.messages}, "no message is stored twice"
        self.messages.append(message)

    def _check_invariants(self) -> None:
        state = self.state
        run = run_of(state)
        assert ({run.id} if run else set()) == self.running, "a run is open exactly while the state is busy"
        if not is_busy(state):
            assert not self.open_calls, "no call is left unanswered when a run ends"
        if hasattr(state, "round"):
            waiting = {state.round.current.id, *(call.id for call in state.round.queue)}
            assert waiting == set(self.open_calls), "current and queue are exactly the unanswered calls"
        if isinstance(state, AwaitingSubagents):
            assert len(state.pending) + len(state.outcomes) == 3, "pending and finished agents stay constant (I7)"
            assert state.pending, "with the last outcome the call has its result"
        if run is not None and run.agent is not None:
            assert run.iteration <= run.max_iterations + 1, "one turn of grace at most"
        if self.for_agent and self.messages:
            assert not isinstance(state, Errored), "a sub-agent that began ends with an outcome"

    # Events, half of them fitting the moment, half of them not.

    def event(self) -> Event:
        gen = self.state.gen if self.rng.random() < 0.85 else self.rng.randrange(self.state.gen + 2)
        kind = self.rng.randrange(16)
        if kind < 5:
            return self._user_event(kind)
        if kind < 10:
            return self._reply_event(kind, gen)
        return self._tool_event(kind, gen)

    def _user_event(self, kind: int) -> Event:
        run, text = self.fresh("run"), (TextBlock("hi"),)
        match kind:
            case 0:
                message = NewMessage(self.fresh("m"), Role.USER, Origin.HUMAN, text)
                limit = self.rng.choice((1, 2, 5, 250))
                due = self.rng.random() < 0.2
                if self.for_agent:
                    found = message if self.rng.random() < 0.2 else None
                    return AgentBegun(run, limit, found)
                return UserMessage(message, self.last, run, limit, self.rng.random() < 0.1, due)
            case 1:
                words = self.rng.choice(("", "half a", "half an answer"))
                return UserCancelled(self.fresh("m"), by=self.rng.choice(tuple(StopCause)), written=words)
            case 2:
                about = self.rng.choice((AgentDropped("cancelled", "cancelled"), AgentRecalled(), AgentRecalled()))
                return about if self.for_agent else RetryAsked(self.last, run, 250)
            case 3:
                wakes = not self.for_agent and self.rng.random() < 0.5
                arrived = InboxArrived(wakes, self.last, run, 250)
                return arrived if self.for_agent else self.rng.choice((CompactAsked("tables"), arrived))
            case _:
                if self.for_agent:  # no user types there
                    return UserCancelled(self.fresh("m"))
                call = ToolCall(self.fresh("t"), "bash", "{}")
                return UserShell(self.fresh("m"), call, run, self.rng.random() < 0.5, self.last)

    def _reply_event(self, kind: int, gen: int) -> Event:
        match kind:
            case 5 | 6 | 7:
                return self._reply(gen)
            case 8:
                overflow = self.rng.random() < 0.2
                retryable, words = self.rng.random() < 0.7, self.rng.choice(("", " ", "half a", "half an answer"))
                return LlmFailed(gen, "server", "it broke", retryable, 0.0, overflow, self.fresh("m"), words)
            case _:
                if self.rng.random() < 0.2:
                    return OlderSummarized(self._draft() if self.rng.random() < 0.8 else None)
                spawn = ToolCall(self.fresh("t"), "spawn_agents", "{}") if self.rng.random() < 0.5 else None
                ended = CompactionEnded(gen, self.rng.choice((self._draft(), nothing_compacted("no model"))))
                if self.rng.random() < 0.3:
                    said = NewMessage(self.fresh("m"), Role.USER, Origin.NOTICE, (TextBlock("go on"),))
                    return StopDecided(gen, said if self.rng.random() < 0.5 else None, self.rng.choice(("", "hook")))
                return self.rng.choice((RetryDue(gen), ended, RouteDecided(gen, self.fresh("m"), spawn)))

    def _draft(self) -> CompactionDraft:
        return compacted(ContextView("so far", self.serial), self.rng.randrange(900), "Summarized 9")

    def _plan(self) -> PlanAnswer:
        fresh = self._draft() if self.rng.random() < 0.3 else None
        answer_id, remarks = self.rng.choice(("", self.fresh("m"))), self.rng.choice(("", "", "add tests"))
        return PlanAnswer("do it", mode="ask", remarks=remarks, fresh=fresh, answer_id=answer_id)

    def _reply(self, gen: int) -> LlmReplied:
        blocks: list[Block] = []
        if self.rng.random() < 0.3:
            blocks.append(ThinkingBlock("hm", "sig"))
        if self.rng.random() < 0.7:
            blocks.append(TextBlock(self.rng.choice(("word", " ", ""))))
        blocks += [self._use() for _ in range(self.rng.choice((0, 0, 1, 3)))]
        return LlmReplied(
            gen,
            self.fresh("m"),
            tuple(blocks),
            self.rng.choice(tuple(StopReason)),
            Usage(10, 5),
            "test",
            self.last,
            truncated_call=self.rng.random() < 0.1,
            context_tokens=self.rng.choice((10, 900)),
            estimated=self.rng.random() < 0.5,
            cost_usd=self.rng.choice((None, 0.0, 0.25)),
            compact_above=self.rng.choice((0, 750)),
            answer_id=self.fresh("m"),
            pruned=self._draft() if self.rng.random() < 0.1 else None,
            asks_hooks=not self.for_agent and self.rng.random() < 0.3,
        )

    def _use(self) -> ToolUseBlock:
        name, arguments = "bash", "{}"
        if self.for_agent and self.rng.random() < 0.3:
            name, arguments = self.rng.choice(SUBMISSIONS)
        return ToolUseBlock(self.fresh("t"), name, arguments)

    def _tool_event(self, kind: int, gen: int) -> Event:
        call, message = self._some_call(), self.fresh("m")
        match kind:
            case 10 | 11:
                status = self.rng.choice((ToolStatus.SUCCESS, ToolStatus.ERROR))
                stop = self.rng.random() < 0.1
                todos = TodoList((TodoItem("a"),)) if self.rng.random() < 0.2 else None
                why = self.rng.choice(("", "A hook stopped the run"))
                result = ToolResult(call, "out", status)
                return ToolFinished(gen, result, message, stop_run=stop, todos=todos, stop_reason=why)
            case 12:
                lapsed = ApprovalLapsed(gen, call, self.rng.choice(("", "allowed by mode auto")))
                return lapsed if self.rng.random() < 0.3 else ApprovalNeeded(gen, call, "asks")
            case 13:
                plan = self._plan() if self.rng.random() < 0.4 else None
                told = self.rng.choice(("", '"Which?"="this"')) if plan is None else ""
                return ApprovalAnswered(call, self.rng.choice(tuple(Verdict)), message, "why", "note", plan, told)
            case 14:
                late = StragglersEnded(self.rng.randrange(3))
                output = self.rng.choice((None, StoppedOutput("half", "")))
                aborted = ToolAborted(gen, call, message, job=self.rng.choice(("", "job-1")), output=output)
                return self.rng.choice((aborted, CancelDeadlinePassed(gen, message, output), late))
            case _:
                return self._agent_event(gen, call, message)

    def _agent_event(self, gen: int, call: str, message: str) -> Event:
        pending = self.state.pending if isinstance(self.state, AwaitingSubagents | Cancelling) else ()
        if not pending or self.rng.random() < 0.3:
            return AgentsStarted(gen, call, () if self.for_agent else AGENTS)
        status = self.rng.choice(tuple(AgentStatus))
        return AgentFinished(gen, AgentOutcome(self.rng.choice((*pending, "stranger")), status, "text"), message)

    def _some_call(self) -> str:
        state = self.state
        if hasattr(state, "round") and self.rng.random() < 0.8:
            return state.round.current.id
        return self.rng.choice([*self.open_calls, "unknown"])


def walk(seed: int, steps: int = 50) -> Walk:
    """One seeded walk from a random quiet state."""
    rng = random.Random(seed)
    start = rng.choice(
        (
            Idle(0),
            Idle(3),
            Errored(2, "server", "broke", retryable=True, run_id=""),
            Completed(4, "r"),
            Failed(5, "k", "e"),
        )
        if rng.random() < 0.2
        else (Idle(0),)
    )
    done = Walk(rng, start, for_agent=rng.random() < 0.3)
    done.take(steps)
    return done


def _check_facts(before: State, event: Event, effects: tuple[Effect, ...]) -> None:
    """Check that the facts of a model call are saved as in its event, and only when the machine waited."""
    metered = tuple(effect for effect in effects if isinstance(effect, SaveContext))
    drafted = tuple(effect for effect in effects if isinstance(effect, SaveView))
    phase = before.phase if isinstance(before, AwaitingLlm) else None
    if isinstance(event, LlmReplied) and phase == Requesting() and event.gen == before.gen:
        assert metered == (SaveContext(event.context_tokens, event.estimated, event.usage),)
        assert drafted == (() if event.pruned is None else (SaveView(event.pruned),))
        for effect in effects:
            if isinstance(effect, SaveMessage) and effect.message.id == event.message_id:
                assert (effect.cost_usd, effect.usage) == (event.cost_usd, event.usage)
    else:
        assert metered == (), "only a reply meters the window"
    summarizes = isinstance(before, Compacting) or phase == CompactingContext()
    if isinstance(event, CompactionEnded) and summarizes and event.gen == before.gen:
        assert drafted == ((SaveView(event.outcome),) if isinstance(event.outcome, CompactionDraft) else ())
        facts = event.outcome.facts if isinstance(event.outcome, CompactionDraft) else event.outcome
        assert SaveCompaction(facts) in effects, "every attempt is recorded"
    elif isinstance(event, OlderSummarized):
        rests = isinstance(before, Idle | Errored) and event.draft is not None
        assert bool(drafted) is rests, "a summary in the background changes nothing while a run goes on"
    elif isinstance(event, ApprovalAnswered) and drafted:
        assert event.plan is not None and event.plan.fresh is not None
        assert drafted == (SaveView(event.plan.fresh),), "a plan may clear the view"
    elif not isinstance(event, LlmReplied):
        assert drafted == (), "only a compaction or a pruning changes the view"
