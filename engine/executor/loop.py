"""The one task that owns a conversation's state: take an event, step, commit, publish, act (docs/overview.md)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from itertools import takewhile

from msgspec import Struct, field
from msgspec.structs import replace

from engine.executor.asking import OF_RUNS, count
from engine.executor.call_questions import end_question
from engine.executor.effect_runner import FAILED_INSIDE, EffectRunner
from engine.executor.event_hooks import start_idle_timer, tell_agent_ended
from engine.executor.question_answers import ends_question
from engine.executor.requests import UNWANTED, Accepted, InboxEntry, Refused
from engine.executor.session import Session
from engine.executor.todo_lists import take_plan, with_finished_list
from engine.executor.writes import saves_of, writes_of
from engine.machine.effects import (
    AbortLlm,
    Act,
    Effect,
    FinishRun,
    Refuse,
    RequestLlm,
    Save,
    SaveCompaction,
    SaveContext,
    SavePlan,
    SaveTodos,
    SaveToolResult,
    SaveView,
    StartRun,
)
from engine.machine.messages import Role
from engine.machine.states import (
    AwaitingLlm,
    AwaitingSubagents,
    Completed,
    Errored,
    Failed,
    Idle,
    State,
    is_busy,
    run_of,
)
from engine.machine.step import step
from engine.machine.transition import Step
from engine.ports import Committed, DatabaseBusy, LimitRun, Move, StorageError, Write
from engine.records import COMMAND_TITLE, ConversationRecord, StoredMessage, TitleBy
from engine.records.runs import ModelCall
from engine.updates import (
    ConversationChanged,
    LiveTextDropped,
    MessageSaved,
    RunEnded,
    StateChanged,
    ToolEnded,
)

CLOSED = "the conversation was closed"
log = logging.getLogger(__name__)


class MoveLoop(Struct, eq=False):
    """Runs the moves of one conversation, one at a time."""

    session: Session
    runner: EffectRunner
    between_moves: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Lock held during a move: a snapshot read under it contains no half move."""
    moving: bool = False
    settled: asyncio.Event = field(default_factory=asyncio.Event)
    """Set after every move; waiters look at the state again."""

    async def run(self) -> None:
        """Serve the inbox until cancelled."""
        while True:
            entry = await self.session.moves.inbox.take()
            self.moving = True
            try:
                async with self.between_moves:
                    await self._move(entry)
            except Exception as error:
                log.exception("a move failed")
                self._report_storage_failure(entry, self.session.state, f"{FAILED_INSIDE}: {type(error).__name__}.")
            finally:  # the conversation may close during a move: the sender must not wait
                entry.settle(Refused(CLOSED))
            self.moving = False
            self.settled.set()

    async def _move(self, entry: InboxEntry) -> None:
        session = self.session
        if session.moves.broken and not await self._mend(entry):
            return
        if entry.wanted is not None and not await self._is_wanted(entry.wanted):
            entry.settle(UNWANTED)
            return
        before, event = session.state, entry.build()
        after = step(before, event)
        refusal = next((e for e in after.effects if isinstance(e, Refuse)), None)
        if refusal is not None:
            entry.settle(Refused(refusal.reason))
            return
        if after.state == before and not after.effects and not entry.writes and not session.model_use.calls.waiting:
            log.debug("%s changes nothing in %s", type(event).__name__, type(before).__name__)
            entry.settle(Accepted(entry.message_id))
            return
        try:
            committed, calls = await self._commit(entry, before, after)
        except StorageError as error:
            self._report_storage_failure(entry, after.state, str(error), is_busy=isinstance(error, DatabaseBusy))
            return
        if any(isinstance(effect, StartRun) for effect in after.effects):
            self.runner.run_started(entry.caps)
        acts = [effect for effect in after.effects if not isinstance(effect, Save | Refuse)]
        only_asks = all(isinstance(act, RequestLlm) for act in acts)
        if only_asks:  # it publishes nothing, so the request may leave before the work that the updates cause
            self._start(acts)
        self._tell(before, after, committed, calls)
        if not only_asks:
            self._start(acts)
        entry.settle(Accepted(entry.message_id))

    async def wait_idle(self) -> State:
        """Wait until nothing runs; gives the state then."""
        while is_busy(self.session.state) or self.session.moves.inbox.waiting or self.moving:
            self.settled.clear()
            await self.settled.wait()
        return self.session.state

    def enter(self, state: State) -> None:
        """Assign the state of the conversation: one that is stored, or the error that it could not be."""
        self.session.state = state

    def _start(self, acts: Iterable[Act]) -> None:
        for act in acts:
            self.runner.start(act)

    async def _commit(self, entry: InboxEntry, before: State, after: Step) -> tuple[Committed, tuple[ModelCall, ...]]:
        session = self.session
        run = run_of(after.state) or run_of(before)
        if _is_aborted(after.effects):
            session.model_use.calls.cancel(OF_RUNS, session.ports.clock.monotonic())
        calls = await session.model_use.calls.take(session.ports.providers.price)
        saves = with_finished_list(session.record, saves_of(after.effects))
        writes = writes_of(session, after, saves, run.id if run else "", self.runner.measure_elapsed, calls)
        now = session.ports.clock.now()
        steered = (
            session.moves.steering.writes(saves, run.id)
            if session.moves.steering is not None and run is not None
            else ()
        )
        limits: tuple[Write, ...] = ()
        if session.record.agent is None:  # the limit of a sub-agent is stored with it
            limits = tuple(LimitRun(save.run_id, entry.caps.timeout) for save in saves if isinstance(save, StartRun))
        writes += steered + limits + entry.writes
        move = Move(session.record.id, after.state, writes, now, session.background.tracking)
        try:
            committed = await session.ports.store.commit(move)
        except StorageError:
            session.model_use.calls.give_back(calls)
            raise
        session.change_record(updated_at=now, message_count=session.record.message_count + len(committed.messages))
        self.enter(after.state)
        session.remember(committed.messages)
        if steered and session.moves.steering is not None:
            session.moves.steering.note_stored(steered, committed.messages)
        for save in saves:
            self._update_record(save)
        if committed.messages and _may_be_named(session.record):
            await self._read_title()
        return committed, calls

    def _update_record(self, save: Save) -> None:
        """Update the record in memory from a stored effect."""
        session = self.session
        match save:
            case SaveContext(tokens, estimated, usage):
                session.change_record(context_tokens=tokens, context_estimated=estimated, last_usage=usage)
            case SaveView(draft):
                session.set_view(draft.view, draft.tokens)
                session.window.forget()
            case SaveCompaction(facts):
                session.change_record(compacted_at=facts.message_count)
            case FinishRun(status=status):
                session.change_record(last_status=status.value)
            case SaveTodos() | SavePlan():
                take_plan(session, save)
            case _:
                pass  # a row, which no field of the record shows

    async def _read_title(self) -> None:
        """The first human message names the conversation, till then a command; the store has cut it to length."""
        session = self.session
        stored = await session.ports.store.conversation(session.record.id)
        if stored is not None and stored.title != session.record.title:
            session.change_record(title=stored.title)
            session.publisher.publish(ConversationChanged(session.record))

    async def _is_wanted(self, wanted: Callable[[], Awaitable[bool]]) -> bool:
        """True when the event of an entry is still wanted; False when the store fails."""
        try:
            return await wanted()
        except StorageError as error:
            log.warning("what waits in an inbox could not be read: %s", error)
            return False

    async def _mend(self, entry: InboxEntry) -> bool:
        """True when the store works again; if not, the sender receives the error again."""
        try:
            self.enter(await self._read_again())
        except StorageError as error:
            entry.settle(Refused(str(error), is_busy=isinstance(error, DatabaseBusy)))
            return False
        return True

    async def _read_again(self) -> State:
        """Close the parts that the failed run left open, as after a restart (SPEC STM-10); returns the state to enter:
        idle, or failed for a sub-agent.

        Raises:
            StorageError: the store still fails; nothing has changed.
        """
        session, store = self.session, self.session.ports.store
        await store.mend(session.record.id)
        stored = await store.conversation(session.record.id)
        state: State = session.state
        gen = state.gen + 1
        if stored is not None:
            ended = isinstance(stored.state, Completed | Failed)
            state = replace(stored.state, gen=gen) if ended else Idle(gen)
            session.set_record(replace(stored.record, context_window=session.record.context_window))
        session.window.forget()
        await session.read_last()
        session.moves.broken = False
        return state

    def _report_storage_failure(self, entry: InboxEntry, wanted: State, message: str, *, is_busy: bool = False) -> None:
        """Handle a failed transaction: nothing starts, running tools are stopped, the draft returns (SPEC STM-00)."""
        session = self.session
        run = run_of(wanted) or run_of(session.state)
        self.runner.stop_all()
        kind = "busy" if is_busy else "storage"
        failed = Errored(wanted.gen + 1, kind, message, retryable=True, run_id=run.id if run else "")
        self.enter(failed)
        session.moves.broken = True
        entry.settle(Refused(message, is_busy=is_busy))
        session.moves.state_since = session.ports.clock.monotonic()
        session.publisher.publish(LiveTextDropped(cancelled=False))
        if run is not None:
            session.publisher.publish(RunEnded(run.id, "failure", message, kind, run.iteration))
        session.publisher.publish(StateChanged(failed, session.moves.state_since))

    # Updates about a move, in the order of SPEC STM-12.

    def _tell(self, before: State, after: Step, committed: Committed, calls: tuple[ModelCall, ...]) -> None:
        session, publish = self.session, self.session.publisher.publish
        saved = any(message.role is Role.ASSISTANT for message in committed.messages)
        if isinstance(before, AwaitingLlm) and not saved and not isinstance(after.state, AwaitingLlm):
            self.session.publisher.publish(LiveTextDropped(cancelled=_is_aborted(after.effects)))
        self._tell_saved(after.effects, committed.messages)
        count(session, calls)
        if ends_question(before, after.state, session.questions.open):
            end_question(session)
        for effect in after.effects:
            if isinstance(effect, FinishRun):
                self.runner.forget_run()
                self.session.window.rest(is_watched=self.session.publisher.has_watchers)
                if self.session.rewinding is not None:
                    self.session.rewinding.recorder.run_ended(self.session.record)
                ended = RunEnded(effect.run_id, effect.status.value, effect.error, effect.error_code, effect.iterations)
                self.session.publisher.publish(ended)
                if self.session.ports.hooks:
                    self._tell_hooks()
        if after.state != before:
            # One of several sub-agents has ended: the wait for them and its clock continue.
            if not (isinstance(before, AwaitingSubagents) and isinstance(after.state, AwaitingSubagents)):
                session.moves.state_since = session.ports.clock.monotonic()
            publish(StateChanged(after.state, session.moves.state_since, session.resumable))

    def _tell_saved(self, effects: tuple[Effect, ...], messages: Sequence[StoredMessage]) -> None:
        """A reply comes ahead of the results of its own calls: a submission is settled as it is made.

        An answer that is stored behind results, such as a delivered plan, comes behind them.
        """
        publish = self.session.publisher.publish
        first = takewhile(lambda one: one.role is not Role.USER, messages)
        ahead = [one for one in first if one.role is Role.ASSISTANT]
        for message in ahead:
            publish(MessageSaved(message))
        for result in [effect.result for effect in effects if isinstance(effect, SaveToolResult)]:
            publish(
                ToolEnded(result, self.runner.measure_elapsed(result.call_id), self.runner.count_ended(result.call_id))
            )
        for message in messages:
            if message not in ahead:
                publish(MessageSaved(message))

    def _tell_hooks(self) -> None:
        """Tell hooks that a run is over."""
        start_idle_timer(self.session)
        if self.session.record.agent is not None:
            state = self.session.state
            words = state.result if isinstance(state, Completed) else state.partial if isinstance(state, Failed) else ""
            tell_agent_ended(self.session, words)


def _may_be_named(record: ConversationRecord) -> bool:
    """True while its title is still to come: there is none, or only a command."""
    by_command = record.title_by is TitleBy.FIRST_MESSAGE and record.title.startswith(COMMAND_TITLE)
    return by_command or not record.title


def _is_aborted(effects: tuple[Effect, ...]) -> bool:
    """True where the user stops a model call."""
    return any(isinstance(effect, AbortLlm) for effect in effects)
