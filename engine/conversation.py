"""One open conversation: its interface for a screen or a script, and its subscriptions."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from engine.executor.approving import answer_note, denials_of, keep_rule
from engine.executor.asking import count, explain_cap
from engine.executor.call_questions import ServerQuestions, take_answer
from engine.executor.context_manager import ContextManager
from engine.executor.effect_runner import BackgroundJobs, EffectRunner
from engine.executor.equipment import own_tool_names
from engine.executor.event_hooks import end_session, stop_idle_timer
from engine.executor.expanding import stop_expanding
from engine.executor.loop import CLOSED, MoveLoop
from engine.executor.message_queue import MessageQueue
from engine.executor.model_limits import SpendingCaps
from engine.executor.question_answers import (
    Reconsidering,
    answer_left_open,
    build_answer_event,
    keeps_question,
    read_left_open,
    run_as,
)
from engine.executor.question_answers import check_answers as why_not_answered
from engine.executor.requests import Accepted, ApprovalAnswer, ApprovalChoice, Receipt, Refused, RunCaps
from engine.executor.routing import RoutingControl
from engine.executor.session import MessageRange, Session
from engine.executor.side_questions import SideQuestions
from engine.executor.todo_lists import TodoEdits, build_plan_event, check_plan_answer
from engine.executor.tool_call import UserTerminal
from engine.executor.user_requests import AgentMailbox, ask, run_shell, send
from engine.executor.window import window_of
from engine.machine.events import ApprovalAnswered, RetryAsked, Verdict
from engine.machine.messages import TextBlock
from engine.machine.states import Idle, State, StopCause, is_busy
from engine.permissions.unreadable import build_closed_test
from engine.ports import ConversationChanges, Provider, ProviderError, StorageError
from engine.records import Attachment, ConversationRecord
from engine.updates import ConversationChanged, Listener, Question, Snapshot
from tools.clean import reveal_name
from tools.contract import ImageRejected

DENIED_IMAGE: Final = "{name} is closed by a rule that denies reading it; /permissions rules shows the rules."


class Conversation:
    """A conversation that is open here."""

    def __init__(self, session: Session, runner: EffectRunner) -> None:
        self.id = session.record.id
        self._session = session
        self._runner = runner
        self.loop = MoveLoop(session, runner)
        """Loop that makes its moves and alone assigns its state."""
        self.between_moves = self.loop.between_moves
        """Lock held during a move, and during other changes of the same data."""
        self._task: asyncio.Task[None] | None = None
        self.context = ContextManager(session, self.between_moves)
        """Contents of its window, and actions on them."""
        self.queue = MessageQueue(session, self.loop)
        self.agents = AgentMailbox(session)
        """Messages to it as a sub-agent, or about its own sub-agents."""
        self.jobs = BackgroundJobs(session, runner)
        """Background commands, and moving running ones there."""
        self.side = SideQuestions(session, self.change_with_calls)
        """Questions beside it."""
        self.routing = RoutingControl(session)
        """Model or agents that answer a message, while that can be overruled."""
        self.todos = TodoEdits(session, self.between_moves)
        """The todo list, and the user's changes of it."""
        self.server_questions = ServerQuestions(session)
        """Questions of MCP servers to the user."""
        self.reconsidering = Reconsidering(session)
        """Component that decides its open question again once its limits have changed."""
        self.terminal = UserTerminal(session)
        """Terminal of the user's own shell lines."""
        self.hooks = session.hooks
        """Hooks that a message waits for."""
        self.tool_names = partial(own_tool_names, session)
        """Names of Phoenix's own tools that its model is offered now."""
        self.rules = session.grants.rules
        """Rules that allow calls without a question, and their times; `engine.rules` changes them."""

    async def load(self) -> None:
        """Read the kind of the newest message, then serve the inbox."""
        session = self._session
        session.moves.state_since = session.ports.clock.monotonic()
        await session.read_last()
        await read_left_open(session)
        await self.queue.load()
        if not self.read_only:
            self.jobs.follow()
            self._task = asyncio.get_running_loop().create_task(self.loop.run())

    @property
    def read_only(self) -> str:
        """Reason why it is read-only here: another process owns it; empty once that has released it."""
        return self._session.read_only

    @property
    def record(self) -> ConversationRecord:
        """Stored facts of the conversation."""
        return self._session.record

    @property
    def state(self) -> State:
        """The machine's state."""
        return self._session.state

    @property
    def question(self) -> Question | None:
        """The approval that is open now, or questions that a restart left open."""
        return self._session.questions.open

    async def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Send `listener` a snapshot, then every update; the result ends it."""
        session = self._session
        async with self.between_moves:
            history = await session.read_history(session.settings.snapshot_messages)
            snapshot = Snapshot(
                conversation=session.record,
                state=session.state,
                state_since=session.moves.state_since,
                messages=history.messages,
                tool_calls=history.tool_calls,
                live_text="".join(session.publisher.text),
                live_thinking="".join(session.publisher.thinking),
                question=session.questions.open,
                resumable=session.resumable,
                read_only=self.read_only,
                run_started=session.run.started if is_busy(session.state) else 0.0,
                running=self._runner.running(),
                queue=self.queue.waiting,
                queue_held=self.queue.held,
                agents=session.equipment.sub_agents.views(self.id) if session.equipment.sub_agents is not None else (),
                results=session.equipment.sub_agents.results(self.id)
                if session.equipment.sub_agents is not None
                else 0,
                route=self.routing.card,
            )
            listener(snapshot)
            remove = session.publisher.watch(listener)

        def leave() -> None:
            remove()
            if not session.publisher.has_watchers and not is_busy(session.state):
                session.window.forget()

        return leave

    async def history(self, before_seq: int, limit: int) -> MessageRange:
        """Read up to `limit` messages before a seq, ascending, with their tool calls."""
        return await self._session.read_history(limit, before_seq - 1)

    async def say(
        self,
        text: str,
        image_ids: Sequence[str] = (),
        caps: RunCaps | None = None,
        attached: Sequence[TextBlock] = (),
    ) -> Receipt:
        """Send a message, `attached` behind its words; it is stored before anything else happens, or refused with the
        reason.
        """
        return await send(self._session, text, image_ids, caps, attached=attached)

    async def interrupt_and_say(self, text: str, image_ids: Sequence[str] = (), caps: RunCaps | None = None) -> Receipt:
        """Cancel the current run, then send (SPEC BED-002)."""
        held = self.queue.held
        if why := self.read_only or self._session.settings.memory_gauge.refusal():
            return Refused(why)
        if why := await explain_cap(self._session):
            return Refused(why, is_cap=True)
        self.cancel()
        await self.wait_idle()
        receipt = await self.say(text, image_ids, caps)
        if isinstance(receipt, Accepted) and not held:
            self.queue.release()  # the user steers, and does not stop queued messages
        return receipt

    async def attach(self, data: bytes, path: Path | None = None) -> Attachment:
        """Decode, shrink and store an image for a message to come, read from `path`.

        Raises:
            ImageRejected: the bytes are no usable image, or a rule denies reading the file.
            StorageError: it cannot be stored.
        """
        ports, cwd = self._session.ports, self.record.cwd
        if path is not None and build_closed_test(denials_of(self._session), cwd)(cwd / path):
            raise ImageRejected(DENIED_IMAGE.format(name=reveal_name(path)))
        image = await ports.images.prepare(data)
        return await ports.store.add_attachment(self.id, image, ports.clock.now())

    def cancel(self, by: StopCause = StopCause.USER) -> None:
        """Stop the run: its connection and its processes at once, the rest as the machine decides.

        Where nothing runs, a summary that is being made in the background is stopped (SPEC CLAW-32).
        """
        if self.read_only:
            return
        self._session.background.stop_summary()
        stop_expanding(self._session)
        self.queue.hold()
        self._runner.cancel(by)

    async def answer(self, call_id: str, answer: ApprovalAnswer) -> Receipt:
        """Answer the open question; a rule is kept before the tool starts."""
        question = self._session.questions.open
        if question is not None and question.server:
            return take_answer(self._session, call_id, answer)
        if question is not None and question.request.questions and question.call.id == call_id:
            return await self._answer_questions(question, answer)
        if question is not None and question.request.plan and question.call.id == call_id:
            if refusal := check_plan_answer(answer):
                return Refused(refusal)
            return await ask(self._session, lambda: build_plan_event(self._session, question, answer), answers=True)
        changed = answer.input if question is not None and question.call.id == call_id else None
        if question is not None and changed is not None and (why := await run_as(self._session, question, changed)):
            return Refused(why)
        note = answer_note(question, answer) if question is not None else ""
        if question is not None and answer.choice in {
            ApprovalChoice.CONVERSATION,
            ApprovalChoice.ALWAYS,
            ApprovalChoice.EVERYWHERE,
        }:
            refusal = keep_rule(self._session, answer.choice, answer.rule or question.rule, question)
            if refusal:
                return Refused(refusal)
        verdict = Verdict.DENY if answer.choice is ApprovalChoice.DENY else Verdict.ALLOW
        message_id = self._session.ports.ids.new()
        answered = ApprovalAnswered(call_id, verdict, message_id, answer.reason, note)
        return await ask(self._session, lambda: answered, answers=True)

    async def _answer_questions(self, question: Question, answer: ApprovalAnswer) -> Receipt:
        session = self._session
        if question.left_open:
            return await answer_left_open(session, question, answer)
        if why := why_not_answered(session, question, answer):
            return Refused(why)
        return await ask(session, lambda: build_answer_event(session, question, answer), answers=True)

    async def retry(self, caps: RunCaps | None = None) -> Receipt:
        """Resume an interrupted turn, or try again after an error."""
        session, last = self._session, self._session.run.caps
        caps = replace(caps or RunCaps(), rules=last.rules, model=last.model, effort=last.effort)
        if why := session.settings.memory_gauge.refusal():
            return Refused(why)
        if why := await explain_cap(session):
            return Refused(why, is_cap=True)
        run_id = session.ports.ids.new()
        limit = caps.max_turns or session.settings.max_iterations
        return await ask(session, lambda: RetryAsked(session.window.last, run_id, limit), caps=caps)

    async def shell(self, command: str, send_to_model: bool) -> Receipt:
        """Run a command of the user in the conversation's directory."""
        return await run_shell(self._session, command, send_to_model)

    async def change(self, changes: ConversationChanges) -> None:
        """Change draft, title, model, mode and the like.

        Raises:
            StorageError: it cannot be stored, or another process owns the conversation.
        """
        if self.read_only:
            raise StorageError(self.read_only)
        session = self._session
        now = session.ports.clock.now()
        await session.ports.store.change(self.id, changes, now)
        session.set_record(changes.apply(session.record, now))
        if changes.draft is not None and session.model_use.spending is not None:  # typing paused: Enter may be next
            session.background.start(self._prepare_caps(session.model_use.spending))
        if changes.permission_mode is not None or changes.sandbox is not None:
            self.reconsidering.soon()
            if session.equipment.sub_agents is not None:
                session.equipment.sub_agents.reconsider(self.id)
        if session.equipment.sub_agents is not None and (changes.archived or changes.deleted):
            session.equipment.sub_agents.stop_all(self.id)  # their results are not awaited
        if changes.model:
            session.change_record(context_window=window_of(session, changes.model))
        session.publisher.publish(ConversationChanged(session.record))

    async def change_with_calls(self, changes: ConversationChanges) -> None:
        """Store `changes` with the ended calls, between two moves, so that neither undoes the sums of the other.

        Raises:
            StorageError: it cannot be stored; the calls wait for the next time.
        """
        session = self._session
        async with self.between_moves:
            calls = await session.model_use.calls.take(session.ports.providers.price)
            try:
                await self.change(replace(changes, calls=calls))
            except StorageError:
                session.model_use.calls.give_back(calls)
                raise
            count(session, calls)

    def warm(self) -> None:
        """Open a connection ahead, and sum what was spent where a cap needs it: the user has begun to type."""
        if self._session.model_use.spending is not None:
            self._session.background.start(self._prepare_caps(self._session.model_use.spending))
        try:
            provider, _ = self._session.ports.providers.resolve(self.record.model)
        except ProviderError:
            return  # reported when a message is sent
        self._session.background.start(self._warm_provider(provider))

    async def _warm_provider(self, provider: Provider) -> None:
        await provider.warm()
        self._session.change_record(context_window=window_of(self._session, self.record.model))

    async def _prepare_caps(self, spending: SpendingCaps) -> None:
        with suppress(StorageError):  # reported when a message is sent
            await spending.prepare(self.record.cwd)

    async def wait_idle(self) -> State:
        """Wait until nothing runs; returns the state then."""
        return await self.loop.wait_idle()

    @property
    def in_use(self) -> bool:
        """True while something of it would be missed if it were closed now and opened again from the store."""
        session, queue = self._session, self.queue
        goes_on = session.moves.inbox.waiting or self.loop.moving or session.background.is_running or self.side.asked
        sends = queue.waiting and not queue.held
        works = any(job.running for job in self.jobs.all()) or session.questions.of_servers
        kept = self.rules or session.moves.broken or not isinstance(self.state, Idle)
        return bool(goes_on or sends or works or kept)

    async def close(self, *, rests: bool = False, by: StopCause = StopCause.USER) -> None:
        """Stop the run, end its jobs, forget the subscribers, release ownership.

        One that `rests` keeps what its ended jobs printed and its temporary folder: it may be opened again.
        """
        session = self._session
        if self._task is None:
            return
        self.reconsidering.stop()
        busy = is_busy(self.state) and not keeps_question(session)
        if busy:
            self.cancel(by)
        if busy or session.record.agent is not None:  # a sub-agent may be about to be dropped
            with suppress(TimeoutError):
                async with asyncio.timeout(session.settings.close_grace):
                    await self.wait_idle()
        await self._runner.close()
        if session.ports.hooks:
            stop_idle_timer(session)
            await end_session(session, session.hooks.end_reason)
        await self.queue.close()
        self._task.cancel()
        await asyncio.wait((self._task,))
        session.moves.inbox.refuse_all(CLOSED)
        session.window.forget()
        await session.background.finish()
        if session.model_use.calls.waiting and not session.read_only:
            with suppress(StorageError):  # the conversation closes in any case
                await self.change_with_calls(ConversationChanges())
        if rests:
            await self.jobs.leave()
        else:
            await self.jobs.end()
        with suppress(StorageError):  # whoever opens it next sees that its owner is gone
            await session.ports.store.release(self.id)
