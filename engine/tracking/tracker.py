"""Task tracking of open conversations (SPEC ACX-03 to -05): passes over messages, boards for front ends."""

from __future__ import annotations

import asyncio
import logging
from bisect import insort
from collections import deque
from collections.abc import Coroutine, Generator, Iterable, Mapping
from contextlib import aclosing, contextmanager, suppress
from typing import TYPE_CHECKING, Final

from msgspec import Struct, field
from msgspec.structs import replace

from engine.conversation import Conversation
from engine.executor.asking import BUDGET, THROTTLED, background_model, small_model
from engine.executor.engine_settings import EngineSettings
from engine.executor.requests import EngineError
from engine.executor.session import Ports, Session
from engine.machine.messages import Role, ToolResultBlock, ToolUseBlock
from engine.ports import ConversationChanges, OwnedElsewhere, ProviderError, StorageError
from engine.ports.task_store import MessageTracking, TaskRefused
from engine.records.tracked_tasks import TaskBoardView, TaskPage, TaskStatus, TrackedTask, TrackingStatus
from engine.tracking.task_agent import TaskAgent
from engine.updates import ConversationChanged, MessageSaved, TasksChanged, Update

if TYPE_CHECKING:
    from engine.store.task_store import TaskStore


FULL: Final = 16
"""Waiting messages that are processed at once, rounds of tools left aside (SPEC DEC-26)."""
OVERFLOW: Final = 16
"""Further messages that one pass takes along; the others come in a pass of their own."""
MOST: Final = FULL + OVERFLOW
"""Messages of a pass."""
IDLE: Final = 8.0
"""Seconds without another message after which fewer are processed."""
AGAIN: Final = 1.0
"""Seconds after which a pass that could not begin is tried again."""


class TrackingBuffer(Struct, eq=False):
    """Waiting messages of one conversation, and the pass under way; times are monotonic seconds."""

    idle: float = IDLE
    waiting: list[int] = field(default_factory=list[int])
    """Seqs, ascending."""
    rounds: set[int] = field(default_factory=set[int])
    """Waiting messages of rounds of tools, which belong to the answer that they lead to and do not fill a pass."""
    busy: bool = False
    """True during a pass: two of one conversation never overlap."""
    _due_at: float = 0.0
    _not_before: float = 0.0

    def note_stored(self, seq: int, now: float, *, of_round: bool = False) -> None:
        """Note a stored message; the wait for silence begins again."""
        if seq not in self.waiting[-MOST:]:
            insort(self.waiting, seq)
        if of_round:
            self.rounds.add(seq)
        self._due_at = now + self.idle

    def restore(self, seqs: Iterable[int], now: float) -> None:
        """Take the messages that wait in the store as the waiting ones."""
        self.waiting = sorted(seqs)
        self.rounds.intersection_update(self.waiting)
        self._due_at = now + self.idle

    def wait(self, now: float) -> float | None:
        """Seconds until a pass is due; 0 when it is, None where nothing waits."""
        if not self.waiting:
            return None
        due_at = now if len(self.waiting) - len(self.rounds) >= FULL else self._due_at
        return max(due_at - now, self._not_before - now, 0.0)

    def begin(self, now: float) -> bool:
        """True when a pass begins now; while another one runs, the next try is a second later."""
        if self.busy:
            self._not_before = now + AGAIN
            return False
        self.busy = True
        return True

    def take_out(self, seqs: Iterable[int], now: float) -> None:
        """Take messages out; where some are left behind a whole pass, the next one follows at once."""
        taken = frozenset(seqs)
        self.waiting = [seq for seq in self.waiting if seq not in taken]
        self.rounds -= taken
        if len(taken) >= MOST:
            self._due_at = now

    def note_end(self) -> None:
        """Note the end of a pass, however it ended."""
        self.busy = False

    def postpone(self, seconds: float, now: float) -> None:
        """Begin no pass for a while."""
        self._not_before = now + seconds


log = logging.getLogger(__name__)

TIME_LIMIT: Final = 120.0
"""Seconds of a pass."""
TRIES: Final = 60
"""Times that a flush waits a second for another pass (SPEC ACX-03)."""
LATER: Final = 30.0
"""Seconds until a pass is tried again while its model is throttled, or memory is short."""
DAY: Final = 86_400.0
SETTING: Final = "task_tracking_tokens"
TIGHT: Final = "Task tracking waits: the model is close to its rate limit."
BUSY: Final = "Another pass is still under way; try again in a minute."
OFF: Final = "Task tracking is off for this conversation; switch it on first."
SLOW: Final = f"The task agent took longer than {TIME_LIMIT:.0f} s."
STOPPED: Final = "A pass of the task agent was stopped."
BROKEN: Final = "Task tracking failed inside; the log has the details."


class TaskTracker:
    """Follows one conversation of the user; only the process that owns it processes its messages."""

    def __init__(self, conversation: Conversation, session: Session, store: TaskStore) -> None:
        self._conversation = conversation
        self._session = session
        self._store = store
        self._agent = TaskAgent(conversation, session, store)
        self._buffer = TrackingBuffer(session.settings.track_after)
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None
        self._looking: asyncio.Task[None] | None = None
        self._interrupted = MessageTracking.FAILED
        """Progress of the messages of a pass that is cancelled."""
        self._status = TrackingStatus()
        self._closed = False
        self.problem = ""
        """Reason of this process why messages wait or failed; empty without one, or where only the store has one."""

    def follow(self, update: Update) -> None:
        """Count stored messages; look again when the conversation was changed."""
        match update:
            case MessageSaved(message) if message.role is not Role.SYSTEM and self.enabled:
                of_round = any(isinstance(block, ToolUseBlock | ToolResultBlock) for block in message.blocks)
                self._buffer.note_stored(message.seq, self._now(), of_round=of_round)
                self._status = replace(self._status, pending=self._status.pending + 1)
                asyncio.get_running_loop().call_soon(self._publish)
                self._schedule()
            case ConversationChanged():
                self.look()
                looks = self._looking is not None and not self._looking.done()
                if self._session.read_only and not self._closed and not looks:
                    self._looking = asyncio.get_running_loop().create_task(self._catch_up())
            case _:
                pass

    def look(self) -> None:
        """Switch to what settings, model and the user's choice say now; begins with the messages that wait."""
        before, self._session.background.tracking = self._session.background.tracking, self._choose_tracking()
        if self._session.background.tracking is before or self._closed:
            return
        if not self.enabled:
            self._stop(MessageTracking.DISABLED)
            self._buffer.restore((), self._now())
        self._looking = asyncio.get_running_loop().create_task(self._catch_up())

    @property
    def enabled(self) -> bool:
        """True while new messages are tracked."""
        return self._session.background.tracking is MessageTracking.PENDING

    @property
    def under_way(self) -> bool:
        """True during a pass."""
        return self._task is not None and not self._task.done()

    async def take_earlier(self) -> None:
        """Let messages wait that were stored while tracking was off. Raises StorageError."""
        if self._looking is not None:
            await asyncio.wait((self._looking,))
        conversation_id = self._session.record.id
        if self.enabled and (await self._store.status(conversation_id)).disabled:
            await self._settle_earlier(MessageTracking.DISABLED)
            self._buffer.restore(await self._store.pending(conversation_id), self._now())
            self._schedule()

    async def _settle_earlier(self, of: MessageTracking) -> None:
        now = self._session.ports.clock.now()
        await self._store.settle(self._session.record.id, MessageTracking.PENDING, now, of=of)

    async def flush(self, *, earlier: bool = True) -> None:
        """Process waiting messages now; `earlier` also those that failed or were stored while tracking was off.

        Raises:
            EngineError: tracking is off, or another pass does not end.
            StorageError: the messages cannot be read.
        """
        self.look()  # a conversation that was just taken over has not said so yet
        if not self.enabled:
            raise EngineError(OFF)
        for _ in range(TRIES):
            if self._buffer.begin(self._now()):
                break
            if self._task is not None and not self._task.done():
                await asyncio.wait((self._task,), timeout=AGAIN)
            else:
                await asyncio.sleep(AGAIN)
        else:
            raise EngineError(BUSY)
        self._begin(self._all(earlier=earlier))
        if self._task is not None:
            await asyncio.wait((self._task,))

    async def tell(self) -> TrackingStatus:
        """Tell viewers the present status, and return it. Raises StorageError."""
        status = await self._store.status(self._session.record.id)
        self._status = replace(status, enabled=self.enabled, problem=self.problem or status.problem)
        self._publish()
        return self._status

    async def close(self) -> None:
        """End within the grace time of a conversation; the messages of a pass wait again."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        self._stop(MessageTracking.PENDING)
        ending = {task for task in (self._task, self._looking) if task is not None}
        if self._looking is not None:
            self._looking.cancel()
        if ending:
            await asyncio.wait(ending, timeout=self._session.settings.close_grace)

    def _choose_tracking(self) -> MessageTracking:
        session, settings = self._session, self._session.settings
        on = session.record.tracking
        if on is None:
            is_small = bool(small_model(session)) and not self._is_local()
            on = settings.task_tracking and (settings.track_always or is_small)
        return MessageTracking.PENDING if on and not session.read_only else MessageTracking.DISABLED

    def _is_local(self) -> bool:
        """True for a model on this machine, which is slow enough (SPEC DEC-23), or rules in place of one."""
        try:
            provider, name = self._session.ports.providers.resolve(self._model)
        except ProviderError:
            return False  # a pass reports it
        described = provider.describe(name)
        return described.local or not described.summarizes

    @property
    def _model(self) -> str:
        return background_model(self._session)

    def _now(self) -> float:
        return self._session.ports.clock.monotonic()

    def _publish(self) -> None:
        self._session.publisher.publish(TasksChanged(self._session.record.id, self._status))

    async def _catch_up(self) -> None:
        """Take over what waits in the store, or leave it out while tracking is off."""
        conversation_id = self._session.record.id
        try:
            if self.enabled:
                self._buffer.restore(await self._store.pending(conversation_id), self._now())
            elif not self._session.read_only:
                now = self._session.ports.clock.now()
                await self._store.settle(conversation_id, MessageTracking.DISABLED, now, of=MessageTracking.PENDING)
            await self.tell()
        except StorageError as error:
            log.info("messages of %s are not tracked: %s", conversation_id, error)
        self._schedule()

    def _schedule(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        wait = self._buffer.wait(self._now())
        if wait is not None and self.enabled and not self._closed:
            self._timer = asyncio.get_running_loop().call_later(wait, self._fire)

    def _fire(self) -> None:
        if self._buffer.begin(self._now()):
            self._begin(self._one())
        else:
            self._schedule()

    def _begin(self, work: Coroutine[None, None, None]) -> None:
        """Run passes as a task; the buffer is busy until it has ended, however it ends."""
        self._interrupted = MessageTracking.FAILED
        self._task = asyncio.get_running_loop().create_task(work)
        self._task.add_done_callback(self._end_pass)

    def _end_pass(self, task: asyncio.Task[None]) -> None:
        self._buffer.note_end()
        self._schedule()
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("a pass of %s failed", self._session.record.id, exc_info=error)

    def _stop(self, to: MessageTracking) -> None:
        """Cancel the pass under way; its messages get the progress `to`."""
        self._interrupted = to
        if self._task is not None:
            self._task.cancel()

    async def _one(self) -> None:
        await self._pass()

    async def _all(self, *, earlier: bool) -> None:
        """Process everything that waits, pass by pass, until one fails."""
        conversation_id = self._session.record.id
        if earlier:
            await self._settle_earlier(MessageTracking.FAILED)
        if earlier and (await self._store.status(conversation_id)).disabled:
            await self._settle_earlier(MessageTracking.DISABLED)
        self._buffer.restore(await self._store.pending(conversation_id), self._now())
        while self._buffer.waiting and await self._pass():
            pass

    async def _pass(self) -> bool:
        """One pass; True when its messages are recorded."""
        if self._waits():
            self._buffer.postpone(LATER, self._now())
            await self.tell()
            return False
        try:
            await self._record()
        except asyncio.CancelledError:
            await self._settle_failure(
                self._interrupted, STOPPED if self._interrupted is MessageTracking.FAILED else ""
            )
            raise
        except (ProviderError, StorageError, TaskRefused, TimeoutError) as error:
            throttled = isinstance(error, ProviderError) and error.kind in THROTTLED
            await self._settle_failure(
                MessageTracking.PENDING if throttled else MessageTracking.FAILED,
                SLOW if isinstance(error, TimeoutError) else str(error),
            )
            if throttled:
                self._buffer.restore(await self._store.pending(self._session.record.id), self._now())
                self._buffer.postpone(LATER, self._now())
            return False
        except BaseException:
            await self._settle_failure(MessageTracking.FAILED, BROKEN)
            raise
        return True

    async def _record(self) -> None:
        before = tuple(self._buffer.waiting)
        taken = await self._store.take(self._session.record.id, MOST, self._session.ports.clock.now())
        # What the buffer knew of and the store did not give was processed otherwise, and waits no more.
        gone = before if len(taken.messages) < MOST else ()
        self._buffer.take_out((*gone, *taken.seqs), self._now())
        self.problem = ""
        await self.tell()
        if not taken.messages:
            return
        await self._check_budget()
        async with asyncio.timeout(TIME_LIMIT), aclosing(self._agent.record(self._model, taken)) as replies:
            async for _ in replies:
                await self.tell()

    async def _settle_failure(self, to: MessageTracking, problem: str) -> None:
        """Settle the messages of a pass that did not end well; where the store fails, the next pass or start does."""
        self.problem = problem
        log.info("a pass of %s ended early: %s", self._session.record.id, problem or "cancelled")
        with suppress(StorageError):
            await self._agent.settle(to, problem)
            await self.tell()

    def _waits(self) -> bool:
        """True while no pass may begin: the model is throttled, or memory is short."""
        session = self._session
        if refusal := session.settings.memory_gauge.refusal():
            self.problem = refusal
            return True
        try:
            provider, name = session.ports.providers.resolve(self._model)
        except ProviderError:
            return False  # the pass reports it
        tight = session.model_use.governor.is_tight(f"{provider.name}/{name}", self._now())
        self.problem = TIGHT if tight else self.problem
        return tight

    async def _check_budget(self) -> None:
        """Check the tokens of the last day. Raises ProviderError."""
        session, most = self._session, self._session.settings.track_tokens
        if not most:
            return
        since = session.ports.clock.now() - DAY
        if await self._store.sum_tokens(session.record.id, since) >= most:
            text = f"Task tracking of this conversation has used its {most:,} tokens of one day (setting {SETTING})."
            raise ProviderError(text, kind=BUDGET, retryable=False)


NO_STORE: Final = "Nothing keeps a task board here."
NOT_OPEN: Final = "Open this conversation first; only its owner processes its messages."
NOTHING_REMOVED: Final = "There is nothing to undo: no task of this conversation was deleted since Phoenix began."
MOST_REMOVED: Final = 50
"""Removals of a conversation that can be undone."""


class TaskBoards:
    """Task boards of all conversations; a conversation need not be open except for `flush`.

    Each change of a board that is open here is published as `engine.updates.TasksChanged`.
    """

    def __init__(
        self,
        ports: Ports,
        settings: EngineSettings,
        opened: Mapping[str, Conversation],
        trackers: Mapping[str, TaskTracker],
    ) -> None:
        self._ports = ports
        self._settings = settings
        self._opened = opened
        self._trackers = trackers
        self._removed: dict[str, deque[TrackedTask]] = {}
        """Tasks that the user removed in this process, the last one at the end, by conversation."""

    async def board(self, conversation_id: str) -> TaskBoardView:
        """The whole board with the messages of each task; an empty one for an unknown conversation."""
        found = await self._store.board(conversation_id)
        return replace(found, status=await self._complete_status(conversation_id, found.status))

    async def page(
        self, conversation_id: str, cursor: str = "", limit: int = 20, *, newest_first: bool = False
    ) -> TaskPage:
        """Tasks by time of creation without their messages, 1 to 200 a page; `cursor` is that of the page before."""
        with _sentences():
            return await self._store.page(conversation_id, cursor, limit, newest_first=newest_first)

    async def edit(
        self, conversation_id: str, task_id: str, status: TaskStatus | None = None, description: str | None = None
    ) -> TrackedTask:
        """Change status or text of a task for the user; None leaves it as it is."""
        with _sentences():
            now = self._ports.clock.now()
            task = await self._store.edit(conversation_id, task_id, status, description, now)
        await self._publish_status(conversation_id)
        return task

    async def remove(self, conversation_id: str, task_id: str) -> None:
        """Remove a task; its messages stay, without one, and the tasks behind it move up."""
        with _sentences():
            removed = await self._store.remove(conversation_id, task_id, self._ports.clock.now())
        if not removed.is_planning:
            self._removed.setdefault(conversation_id, deque(maxlen=MOST_REMOVED)).append(removed)
        await self._publish_status(conversation_id)

    async def put_back(self, conversation_id: str) -> TrackedTask:
        """Put the task back that was removed last in this process, with its place, texts and messages."""
        removed = self._removed.get(conversation_id)
        if not removed:
            raise EngineError(NOTHING_REMOVED)
        last = removed.pop()  # now, so that two calls at once put two back
        try:
            with _sentences():
                task = await self._store.put_back(conversation_id, last, self._ports.clock.now())
        except BaseException:
            removed.append(last)
            raise
        await self._publish_status(conversation_id)
        return task

    async def flush(self, conversation_id: str, *, earlier: bool = True) -> TrackingStatus:
        """Process waiting messages of an open conversation now; waits up to a minute for another pass.

        `earlier` takes those that failed or were stored while tracking was off too.
        """
        tracker = self._trackers.get(conversation_id)
        if tracker is None or self._opened[conversation_id].read_only:
            raise EngineError(NOT_OPEN)
        await tracker.flush(earlier=earlier)
        return await self._publish_status(conversation_id)

    async def set_tracking(self, conversation_id: str, on: bool) -> TrackingStatus:
        """Switch tracking of one conversation on or off, whatever the setting says.

        Off leaves waiting messages out; on takes those of an open conversation that were left out until now.
        """
        changes = ConversationChanges(tracking=on)
        conversation = self._opened.get(conversation_id)
        with _sentences():
            if conversation is not None:
                await conversation.change(changes)
            else:
                await self._ports.store.change(conversation_id, changes, self._ports.clock.now())
        if on and (tracker := self._trackers.get(conversation_id)) is not None:
            await tracker.take_earlier()
        return await self._publish_status(conversation_id)

    async def find_untasked(self, conversation_id: str) -> tuple[int, ...]:
        """Seqs of the messages that belong to no task, ascending; notices are left out."""
        return await self._store.read_untasked(conversation_id)

    @property
    def _store(self) -> TaskStore:
        if self._ports.tasks is None:
            raise EngineError(NO_STORE)
        return self._ports.tasks

    async def _publish_status(self, conversation_id: str) -> TrackingStatus:
        """Tell viewers of an open conversation, and return its status."""
        if (tracker := self._trackers.get(conversation_id)) is not None:
            return await tracker.tell()
        return await self._complete_status(conversation_id, await self._store.status(conversation_id))

    async def _complete_status(self, conversation_id: str, status: TrackingStatus) -> TrackingStatus:
        """The status with what only an open conversation knows, else with the effect of the setting."""
        if (tracker := self._trackers.get(conversation_id)) is not None:
            return replace(status, enabled=tracker.enabled, problem=tracker.problem or status.problem)
        chosen = await self._store.read_choice(conversation_id)
        return replace(status, enabled=self._settings.task_tracking if chosen is None else chosen)


@contextmanager
def _sentences() -> Generator[None]:
    """Turn refusals of the store into the error that front ends know."""
    try:
        yield
    except TaskRefused as error:
        raise EngineError(str(error)) from error
    except OwnedElsewhere as owner:
        raise EngineError(f"Process {owner.pid} has this conversation open; change its tasks there.") from owner
