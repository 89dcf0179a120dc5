"""Parts of an open conversation besides its state and record: questions and the facts that they showed, window,
background work, hooks, calls of models.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable
from pathlib import Path
from typing import Any, Final, TypeAlias

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from engine.context.assemble import GrowingView
from engine.context.estimate import blocks_tokens, rough_tokens
from engine.executor.requests import Review
from engine.machine.messages import LastMessage, Usage
from engine.permissions.policy import Limits
from engine.ports import ModelRequest
from engine.ports.task_store import MessageTracking
from engine.records import StoredMessage
from engine.records.runs import INPUT_PREVIEW, CallPurpose, CallStatus, ModelCall
from engine.updates import Question, RouteOffer
from tools.clean import reveal_name
from tools.contract import Enforcement, ProgramFact, SandboxMode, ToolRequest
from tools.mcp_form import FormAnswer, ServerForm


class AskedCall(Struct, frozen=True):
    """The facts that a question showed."""

    call_id: str
    request: ToolRequest
    limits: Limits
    times: int = 1


def differences(asked: AskedCall, request: ToolRequest, limits: Limits) -> str:
    """Differences between a request and its question, in words; empty without any."""
    before, shown = asked.request, asked.limits
    checks = (
        ("the command", before.command != request.command),
        (f"it now leads to {', '.join(map(str, request.paths))}", before.paths != request.paths),
        (f"it would reach {', '.join(request.hosts) or 'any host'}", _hosts(before) != _hosts(request)),
        ("the change it makes", before.preview != request.preview or before.summary != request.summary),
        (_programs(before.programs, request.programs), before.programs != request.programs),
        ("the access it needs", (before.access, before.mode) != (request.access, request.mode)),
        (f"the mode is {limits.mode.value}", shown.mode is not limits.mode),
        (f"the sandbox is {limits.sandbox.value}", _sandbox(shown) != _sandbox(limits)),
    )
    return ", ".join(words for words, differs in checks if differs)


def _programs(before: tuple[ProgramFact, ...], now: tuple[ProgramFact, ...]) -> str:
    """The first program that is another one than was shown."""
    shown = {fact.name: fact for fact in before}
    for fact in now:
        known = shown.pop(fact.name, None)
        if known is None or known.path != fact.path:
            return f"{reveal_name(fact.name)} is now {reveal_name(fact.path)}"
        if known.stamp != fact.stamp:
            return f"the program {reveal_name(fact.path)} is another file"
    return f"{reveal_name(next(iter(shown), 'a program'))} is no longer found"


def _hosts(request: ToolRequest) -> tuple[tuple[str, ...], bool]:
    return request.hosts, request.any_host


def _sandbox(limits: Limits) -> tuple[SandboxMode, bool, bool, Enforcement, tuple[str, ...] | None]:
    return limits.sandbox, limits.required, limits.network, limits.enforcement, limits.hosts


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


PriceOf: TypeAlias = Callable[[str, Usage], float | None]
"""US dollars by model reference and usage; None where unknown."""
CACHE_SECONDS: Final = 300.0
"""Seconds for which Anthropic keeps the beginning of a prompt."""
UNPRICED: Final = -1.0
"""Marker for the cost of a call whose price was not looked up yet."""


class OpenCall(Struct, eq=False):
    """A running call, and the usage its server reported so far."""

    id: str
    purpose: CallPurpose
    reference: str
    """PROVIDER/MODEL of the request."""
    started_at: float
    """Wall clock."""
    begun: float
    """Monotonic."""
    run_id: str = ""
    iteration: int = 0
    attempt: int = 0
    usage: Usage = Usage()
    """Usage that the server has reported so far."""
    cost_usd: float | None = None
    """Cost that the server has reported so far; None: the price list decides."""
    streamed: bool = False
    """True once anything has come back: a request that is refused costs nothing."""
    ended: bool = False
    message_id: str = ""
    """Id of the message that it may become."""
    written: list[str] = field(default_factory=list[str])
    """The text so far, in pieces."""
    request: ModelRequest | None = None
    """The request, for the record; None unless verbose (SPEC CLAW-81)."""


class CachedInput(Struct, frozen=True):
    """The part of the newest prompt that its provider keeps in its cache."""

    reference: str = ""
    tokens: int = 0
    at: float = 0.0
    """Monotonic."""


class CallLog(Struct, eq=False):
    """Ends every call once; keeps ended calls until a transaction has taken them."""

    under_way: dict[str, OpenCall] = field(default_factory=dict[str, OpenCall])
    _ended: list[tuple[str, ModelCall]] = field(default_factory=list[tuple[str, ModelCall]])
    """Reference and call."""
    _requests: dict[str, ModelRequest] = field(default_factory=dict[str, ModelRequest])
    """Requests of ended calls that are to be recorded, by call."""
    _cached: CachedInput = CachedInput()

    def begin(self, call: OpenCall) -> OpenCall:
        """Note a call that is about to be made."""
        self.under_way[call.id] = call
        return call

    def end(
        self, call: OpenCall, status: CallStatus, now: float, change: Callable[[ModelCall], ModelCall] = lambda one: one
    ) -> None:
        """Record the end of a call, unless it has ended; `now` is monotonic, `change` adds facts of the caller."""
        self.under_way.pop(call.id, None)
        if call.ended:
            return
        call.ended = True
        provider, _, model = call.reference.partition("/")
        plain = ModelCall(
            id=call.id,
            purpose=call.purpose,
            status=status,
            provider=provider,
            model=model or provider,
            usage=call.usage,
            estimated=status is CallStatus.CANCELLED or call.streamed,
            cost_usd=UNPRICED if call.cost_usd is None else call.cost_usd,
            run_id=call.run_id,
            iteration=call.iteration,
            attempt=call.attempt,
            message_id=call.message_id,
            started_at=call.started_at,
            duration_ms=max(0, round((now - call.begun) * 1000)),
        )
        self._ended.append((call.reference, change(plain)))
        if call.request is not None:
            self._requests[call.id] = call.request

    def cancel(self, purposes: Iterable[CallPurpose], now: float) -> None:
        """End the running calls for these purposes: their answers are not needed any more."""
        wanted = frozenset(purposes)
        for call in [one for one in self.under_way.values() if one.purpose in wanted]:
            self.end(call, CallStatus.CANCELLED, now)

    def note_reply(self, reference: str, usage: Usage, now: float) -> None:
        """Remember the cached part of the conversation's own prompt."""
        self._cached = CachedInput(reference, usage.cache_read_tokens + usage.cache_creation_tokens, now)

    def estimate_cached(self, reference: str, now: float) -> int:
        """Input tokens of the next prompt that its provider may still have in its cache."""
        kept = self._cached
        return kept.tokens if kept.reference == reference and now < kept.at + CACHE_SECONDS else 0

    @property
    def written(self) -> str:
        """Text of the current reply so far; empty where none is."""
        calls = [call for call in self.under_way.values() if call.purpose is CallPurpose.REPLY]
        return "".join(piece for call in calls for piece in call.written)

    @property
    def waiting(self) -> bool:
        """True while finished calls are unstored."""
        return bool(self._ended)

    async def take(self, price: PriceOf) -> tuple[ModelCall, ...]:
        """Take the finished calls, with their prices; the caller stores them, or gives them back."""
        waiting = self._ended
        for place, (reference, call) in enumerate(waiting):  # including calls that end meanwhile
            priced = await _price_call(reference, call, price)
            if (request := self._requests.get(call.id)) is not None:
                priced = replace(priced, input_preview=await asyncio.to_thread(encode_request, request))
            waiting[place] = (reference, priced)
            self._requests.pop(call.id, None)
        # Only when all have a price: a cancelled caller leaves the calls to the next one.
        taken, self._ended = self._ended, []
        return tuple([call for _, call in taken])

    def give_back(self, calls: Iterable[ModelCall]) -> None:
        """Return calls that could not be stored: the next transaction takes them."""
        self._ended = [(f"{call.provider}/{call.model}", call) for call in calls] + self._ended


def encode_request(request: ModelRequest) -> str:
    """The request as JSON without the bytes of its images, cut."""
    whole = msgspec.json.encode(replace(request, images={}))
    return whole[: 4 * INPUT_PREVIEW].decode("utf-8", "ignore")[:INPUT_PREVIEW]


async def _price_call(reference: str, call: ModelCall, price: PriceOf) -> ModelCall:
    if call.cost_usd != UNPRICED:
        return call
    if call.usage == Usage():
        return replace(call, cost_usd=0.0)
    return replace(call, cost_usd=await asyncio.to_thread(price, reference, call.usage))
