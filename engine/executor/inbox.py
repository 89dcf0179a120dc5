"""Inbox of one conversation (SPEC STM-00), and the current run besides its state: its facts and its time limit."""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections.abc import Awaitable, Callable
from enum import IntEnum
from pathlib import Path
from typing import Final

from msgspec import Struct, field

from engine.executor.loop_guard import LoopGuard
from engine.executor.requests import Receipt, Refused, RunCaps
from engine.machine.events import Event
from engine.permissions.rules import Rule
from engine.ports import Write
from engine.ports.extensions import PromptFile
from engine.run_options import Effort
from tools.displays import TodoList

UNWANTED: Final = Refused("nobody waits for this any more")
"""The answer to an entry that was not wanted when its turn came."""


class Priority(IntEnum):
    """Order of service."""

    CANCEL = 0
    USER = 1
    OUTCOME = 2


class InboxEntry(Struct, eq=False):
    """An event to come: built when its turn comes, so that the facts in it are those of that moment."""

    build: Callable[[], Event]
    message_id: str = ""
    caps: RunCaps = field(default_factory=RunCaps)
    receipt: asyncio.Future[Receipt] | None = None
    writes: tuple[Write, ...] = ()
    """Writes for the same transaction, if the machine accepts the event, even one without other changes."""
    wanted: Callable[[], Awaitable[bool]] | None = None
    """Condition evaluated when its turn comes, while no other move can be made; None: always wanted. May raise
    StorageError.
    """

    def settle(self, receipt: Receipt) -> None:
        """Complete the receipt, if the sender still waits."""
        if self.receipt is not None and not self.receipt.done():
            self.receipt.set_result(receipt)


class Inbox(Struct, eq=False):
    """A priority queue; within a priority, first come, first served."""

    _heap: list[tuple[Priority, int, InboxEntry]] = field(default_factory=list[tuple[Priority, int, InboxEntry]])
    _order: itertools.count[int] = field(default_factory=itertools.count)
    _arrived: asyncio.Event = field(default_factory=asyncio.Event)
    _closed: str = ""

    def put(self, priority: Priority, entry: InboxEntry) -> None:
        """Add one; never waits. Once it is closed, the entry is refused."""
        if self._closed:
            entry.settle(Refused(self._closed))
            return
        heapq.heappush(self._heap, (priority, next(self._order), entry))
        self._arrived.set()

    @property
    def waiting(self) -> bool:
        """True while an entry waits."""
        return bool(self._heap)

    @property
    def stops(self) -> bool:
        """True while a stop of the user is unserved."""
        return bool(self._heap) and self._heap[0][0] is Priority.CANCEL

    async def take(self) -> InboxEntry:
        """The next one by priority."""
        while not self._heap:
            self._arrived.clear()
            await self._arrived.wait()
        return heapq.heappop(self._heap)[2]

    def refuse_all(self, reason: str) -> None:
        """Settle everything that waits, and whatever comes later: the conversation closes."""
        self._closed = reason
        while self._heap:
            heapq.heappop(self._heap)[2].settle(Refused(reason))


class TodoTold(Struct, eq=False):
    """The list as the model of the current run knows it."""

    known: TodoList | None = None
    """List at the newest request; None before the first one."""
    since: int = 0
    """Model call after which the list is this one, or was called to mind."""
    reminders: int = 0
    note: str = ""
    noted: int = 0
    """The newest reminder, and the model call it was given to: a repeated call gets the same."""


class RunFacts(Struct, eq=False):
    """Facts about the current run besides its state."""

    started: float = 0.0
    """Monotonic."""
    caps: RunCaps = field(default_factory=RunCaps)
    cost_usd: float | None = 0.0
    agents_cost_usd: float | None = 0.0
    """Cost of sub-agents, while the run is the newest one."""
    told_of_budget: bool = False
    told_of_caps: bool = False
    samples: int = 0
    """Sampling requests of MCP servers that the user was asked about."""
    loop_guard: LoopGuard = field(default_factory=LoopGuard)
    files_note: str | None = None
    """Note for the model about files that were rewound before it; None until the first request."""
    effort: Effort | None = None
    """Effort of the first request: another one in the middle would make the cached messages worthless."""
    prompt_files: tuple[PromptFile, ...] | None = None
    """AGENTS.md and similar files as the first request found them (SPEC UNI-30)."""
    folder_files: dict[Path, int] = field(default_factory=dict[Path, int])
    """Instruction files of folders that a result of this run has, with the number of stored messages at that time."""
    stop_hooks: int = 0
    """Times that hooks let it go on behind an answer."""
    heard_of_end: bool = False
    """True once they agreed to its end."""
    agent_calls: dict[str, float] = field(default_factory=dict[str, float])
    """Calls that started sub-agents, of whose results hooks have not heard, and when they began (monotonic)."""
    batch: str = ""
    """Message with the results that hooks have heard of last."""
    batch_note: str = ""
    """Text of hooks about these results, for the request that brings them."""
    todos: TodoTold = field(default_factory=TodoTold)
    rules: tuple[Rule, ...] = ()
    """Rules of skills and commands that the user agreed to for this run."""


class TimeLimit(Struct, eq=False):
    """Time limit of the current run, without the time that its user takes for an answer; none between runs."""

    _inbox: Inbox | None = None
    _entry: InboxEntry | None = None
    """Entry for the inbox when the time is up."""
    _timer: asyncio.TimerHandle | None = None
    _left: float | None = None
    """Seconds left while it is paused."""

    def begin(self, seconds: float, inbox: Inbox, entry: InboxEntry) -> None:
        """A run begins that may take so long; 0: any time."""
        self.end()
        self._left, self._inbox, self._entry = seconds or None, inbox, entry
        self.go_on()

    def pause(self) -> None:
        """Pause while the user is asked."""
        if self._timer is not None:
            self._left = max(self._timer.when() - asyncio.get_running_loop().time(), 0.0)
            self._timer.cancel()
            self._timer = None

    def go_on(self) -> None:
        """The answer is there; nothing changes where the time runs, or the run is over."""
        if self._left is not None:
            self._timer = asyncio.get_running_loop().call_later(self._left, self.expire)
            self._left = None

    def expire(self) -> None:
        """Put the entry of the run into its inbox: the time is up."""
        if self._inbox is not None and self._entry is not None:
            self._inbox.put(Priority.OUTCOME, self._entry)

    def end(self) -> None:
        """The run is over."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._left = None

    @property
    def left(self) -> float | None:
        """Seconds left while it is paused; None while it runs, or without a limit."""
        return self._left

    @property
    def runs(self) -> bool:
        """True while its time runs."""
        return self._timer is not None
