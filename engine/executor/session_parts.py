"""Parts of an open conversation besides its state and record: questions, window, background work, hooks."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Iterable
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from engine.context.assemble import GrowingView
from engine.context.estimate import blocks_tokens, rough_tokens
from engine.executor.requests import Review
from engine.machine.messages import LastMessage
from engine.permissions.asked import AskedCall
from engine.ports.task_store import MessageTracking
from engine.records import StoredMessage
from engine.updates import Question, RouteOffer
from tools.mcp_form import FormAnswer, ServerForm

log = logging.getLogger(__name__)

KEPT_TOKENS = 2_000_000
"""Tokens of messages that may stay in memory between two runs: any window in use, about 16 MB."""
KEPT_SECONDS = 300.0
"""Seconds that rows stay in memory while nothing runs."""


class ServerQuestion(Struct, eq=False):
    """A question of an MCP server, and the user's answer to come."""

    form: ServerForm
    question: Question
    answer: asyncio.Future[FormAnswer]


class Questions(Struct, eq=False):
    """Open questions to the user, what they showed, and answers that hold on."""

    open: Question | None = None
    """The approval that is open."""
    drafted: Question | None = None
    """Question of the current call; open only once the machine waits for the answer."""
    asked: AskedCall | None = None
    """The facts that the newest question showed."""
    of_servers: list[ServerQuestion] = field(default_factory=list[ServerQuestion])
    """Open questions of MCP servers; the first one is shown while no tool asks."""
    offer: RouteOffer | None = None
    """The supervisor's open decision."""
    review: Review | None = None
    """Review of the next requested summary before it takes effect."""
    preapproved: set[tuple[str, ...]] = field(default_factory=set[tuple[str, ...]])
    """Skills and commands, each with its rules, to which the user agreed while the conversation is open."""
    rewritten: dict[str, str] = field(default_factory=dict[str, str])
    """Inputs of calls of this run that a host has changed with its answer, by call."""


class Window(Struct, eq=False):
    """Messages of a conversation in memory, as its next request needs them, and facts about the newest ones."""

    last: LastMessage = LastMessage.NONE
    shell_run: str | None = None
    """The run of the newest command of the user."""
    restores_known: int = -1
    """Number of restores in the log when none was found to report to the model."""
    prune_above: int = 0
    """Tokens from which old tool results are looked at again for pruning."""
    rows: list[StoredMessage] | None = None
    """None: the next request reads them."""
    view: GrowingView = field(default_factory=GrowingView)
    """Cached form of the rows for the model."""
    _counted: tuple[int, int] = (0, 0)
    """Number of rows counted, and their tokens."""
    _timer: asyncio.TimerHandle | None = None

    def add(self, messages: Iterable[StoredMessage]) -> None:
        """Add stored messages; a read may include a commit before its update arrives."""
        if self.rows is not None:
            newest = self.rows[-1].seq if self.rows else 0
            self.rows += [message for message in messages if message.seq > newest]

    def rest(self, *, is_watched: bool) -> None:
        """End a run: rows stay for the next one if it comes soon, there is a viewer, and they fit in a window."""
        self.stop_timer()
        if self.rows is None or not is_watched or self._count_tokens() > KEPT_TOKENS:
            self.forget()
        else:
            self._timer = asyncio.get_running_loop().call_later(KEPT_SECONDS, self.forget)

    def forget(self) -> None:
        """Keep no messages in memory; the next request reads them."""
        self.stop_timer()
        self.rows, self.view, self._counted = None, GrowingView(), (0, 0)

    @property
    def count(self) -> int:
        """Number of messages in memory."""
        return len(self.rows or ())

    def stop_timer(self) -> None:
        """Keep them while a run needs them."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _count_tokens(self) -> int:
        """Tokens of the rows, guessed; those that were counted before are not looked at again."""
        rows = self.rows or []
        counted, tokens = self._counted
        tokens += sum(blocks_tokens(row.blocks, rough_tokens) for row in rows[counted:])
        self._counted = (len(rows), tokens)
        return tokens


class BackgroundWork(Struct, eq=False):
    """Work of a conversation for which no run waits."""

    tracking: MessageTracking = MessageTracking.DISABLED
    """Progress of new messages through task tracking; its tracker sets it."""
    summary: asyncio.Task[None] | None = None
    """The summary of older messages that is being made."""
    expansion: asyncio.Future[Any] | None = None
    """The call of a skill or command whose shell lines run, or of a server's prompt that is being fetched."""
    _tasks: set[asyncio.Task[None]] = field(default_factory=set[asyncio.Task[None]])

    def start(self, work: Coroutine[None, None, None]) -> None:
        """Run a coroutine in the background; a failure goes to the log."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._end)

    @property
    def is_running(self) -> bool:
        """True while any of it runs."""
        return bool(self._tasks)

    @property
    def summarizes(self) -> bool:
        """True while a summary is being made."""
        return self.summary is not None and not self.summary.done()

    def stop_summary(self) -> None:
        """Stop the summary that is being made; nothing is changed."""
        if self.summary is not None:
            self.summary.cancel()

    async def finish(self) -> None:
        """Wait for all of it before the conversation closes."""
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _end(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None:
            log.warning("background work failed: %s", error)


class HookFacts(Struct, eq=False):
    """Hooks that run beside its runs, and what they were told."""

    running: set[asyncio.Task[Any]] = field(default_factory=set[asyncio.Task[Any]])
    """Hooks for which a message waits, and hooks that run on alone."""
    looked: bool = False
    """True once the sources of hooks have looked what is there."""
    asking: bool = False
    """True while a message waits for them."""
    begun: str = ""
    """Source that they were told the session began from; empty before."""
    instructions: set[Path] = field(default_factory=set[Path])
    """Instruction files that they were told of."""
    idle: asyncio.TimerHandle | None = None
    """Timer until they hear that the conversation waits for its user."""
    end_reason: str = "other"
    """Reason of the end of the session, as hooks hear it."""
    compacted: bool = False
    """True once older messages were summarized since they heard of a beginning."""
