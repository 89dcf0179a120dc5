"""Model calls of a conversation: model and effort, budgets, pacing by rate limits, records and diagnostics."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Generator, Iterable
from contextlib import aclosing, asynccontextmanager, contextmanager
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from engine.context.estimate import message_tokens, rough_tokens, tools_tokens
from engine.executor.engine_settings import AUTO
from engine.executor.model_limits import PacedCall, dollars
from engine.executor.session import Session
from engine.executor.session_parts import UNPRICED, OpenCall
from engine.machine.effects import RequestLlm
from engine.machine.messages import Role, TextBlock, Usage, text_in
from engine.machine.states import run_of
from engine.ports import (
    BeforeReply,
    LimitsTold,
    ModelMessage,
    ModelReply,
    ModelRequest,
    Provider,
    ProviderError,
    UsageTold,
)
from engine.ports.models import GrowingValues
from engine.records.runs import PREVIEW, CallPurpose, CallStatus, ModelCall, Totals, total_cost
from engine.run_options import Effort
from engine.updates import CallEnded, Noticed, Paced
from tools.clean import clean_line
from tools.wording import one_line

LEAST_TOLD: Final = 1.0
"""Seconds of a wait before a call from which it is reported."""
LOOK_AGAIN: Final = 1.0
"""Seconds after which a wait is computed again: other calls end, or are stopped."""
THROTTLED: Final = frozenset({"rate_limit", "overloaded"})


class Pacing:
    """One call passing through the governor."""

    def __init__(self, session: Session, call: PacedCall) -> None:
        self._session = session
        self._call = call

    def note_limits(self, limits: LimitsTold) -> None:
        """The head of the answer is there."""
        session = self._session
        session.model_use.governor.note_limits(self._call.model, limits.limits, session.ports.clock.monotonic())

    def note_usage(self, usage: Usage) -> None:
        """The answer is whole."""
        session = self._session
        session.model_use.governor.note_success(self._call.model)
        session.model_use.governor.note_usage(self._call, usage, session.ports.clock.monotonic())


@asynccontextmanager
async def pace_call(
    session: Session,
    provider: Provider,
    request: ModelRequest,
    *,
    cached: int = 0,
    is_retry: bool = False,
    shown: bool = True,
    known: GrowingValues[int] | None = None,
) -> AsyncGenerator[Pacing]:
    """Enter once a call may begin; cancelling ends the wait. A `ProviderError` raised inside counts as its end.

    `cached` tokens of its input may be in the provider's cache. `shown` is True where the run under way waits for it.
    `known` has the tokens of the messages of the request before.
    """
    governor, clock, model = session.model_use.governor, session.ports.clock, f"{provider.name}/{request.model}"
    governor.set_limits(model, provider.describe(request.model).limits)
    call = governor.enter(model, request_tokens(request, known), cached, clock.monotonic(), is_retry=is_retry)
    refused = False
    try:
        await _wait(session, call, shown=shown)
        governor.begin(call, clock.monotonic())
        yield Pacing(session, call)
    except ProviderError as error:
        refused = error.kind in THROTTLED
        governor.note_limits(model, error.limits, clock.monotonic(), by_refusal=True)
        if refused:
            governor.note_throttling(model, error.retry_after, clock.monotonic())
        raise
    finally:
        governor.leave(call, clock.monotonic(), refused=refused)


async def _wait(session: Session, call: PacedCall, *, shown: bool) -> None:
    clock, publish, told_until = session.ports.clock, session.publisher.publish, 0.0
    while (seconds := session.model_use.governor.wait(call, now := clock.monotonic())) > 0:
        if shown and seconds >= LEAST_TOLD and abs(now + seconds - told_until) >= LEAST_TOLD:
            told_until = now + seconds
            publish(Paced(seconds))
        await asyncio.sleep(min(seconds, LOOK_AGAIN))
    if told_until > clock.monotonic():
        publish(Paced(0.0))


def request_tokens(request: ModelRequest, known: GrowingValues[int] | None = None) -> int:
    """Input tokens of a request, guessed from its size."""
    said = sum((known or GrowingValues(message_tokens)).of(request.messages))
    return said + sum(map(rough_tokens, request.system)) + tools_tokens(request.tools)


def note_reply(
    session: Session,
    request: ModelRequest,
    reply: ModelReply,
    duration_ms: int,
    purpose: CallPurpose = CallPurpose.REPLY,
) -> None:
    """Keep a reply."""
    diagnostics = session.settings.diagnostics
    if diagnostics is not None:
        session.background.start(asyncio.to_thread(diagnostics.record_reply, request, reply, duration_ms, purpose))


def note_failure(
    session: Session, request: ModelRequest, error: ProviderError, purpose: CallPurpose = CallPurpose.REPLY
) -> None:
    """Keep a failed request, unless it was refused for its rate."""
    diagnostics = session.settings.diagnostics
    if diagnostics is not None and error.kind not in THROTTLED:
        session.background.start(asyncio.to_thread(diagnostics.record_failure, request, error, purpose))


@contextmanager
def diagnose_call(
    session: Session, request: ModelRequest, purpose: CallPurpose
) -> Generator[Callable[[ModelReply], None]]:
    """Keep the failure of a call inside the block, or the reply that is handed to the result."""
    clock = session.ports.clock
    started = clock.monotonic()

    def note(reply: ModelReply) -> None:
        note_reply(session, request, reply, int((clock.monotonic() - started) * 1000), purpose)

    try:
        yield note
    except ProviderError as error:
        note_failure(session, request, error, purpose)
        raise


BUDGET: Final = "budget"
"""Kind of the failure of a call that a budget forbids."""
UNKNOWN_PRICE = "the price of a model that this run used is unknown"


def count(session: Session, calls: Iterable[ModelCall]) -> None:
    """Count stored model calls, and publish the sums."""
    above = session.equipment.above
    for call in calls:
        if session.model_use.spending is not None:
            session.model_use.spending.calls_ended()
        used = Totals.of(call.usage, call.cost_usd)
        if call.run_id:
            session.run.cost_usd = total_cost(session.run.cost_usd, call.cost_usd)
        session.change_record(totals=session.record.totals.plus(used))
        session.publisher.publish(CallEnded(call))
        session.tell_context()
        if above is not None:
            above.run.agents_cost_usd = total_cost(above.run.agents_cost_usd, call.cost_usd)
            above.change_record(agents_totals=above.record.agents_totals.plus(used))
            above.tell_context()


def check_budget(session: Session) -> None:
    """Check the budgets before a model call: that of the run, sub-agents included, and that of one sub-agent.

    A budget that an unknown price makes impossible to keep is reported once a run.

    Raises:
        ProviderError: it is used up.
    """
    run = (session.equipment.above or session).run
    spent = total_cost(run.cost_usd, run.agents_cost_usd)
    _check(run.caps.max_budget_usd, spent, "this run")
    if run.caps.max_budget_usd and spent is None and not run.told_of_budget:
        run.told_of_budget = True
        text = f"The budget of {dollars(run.caps.max_budget_usd)} cannot be enforced: {UNKNOWN_PRICE}."
        (session.equipment.above or session).publisher.publish(Noticed(text))
    if session.record.agent is not None:
        _check(session.settings.agent_budget_usd, session.run.cost_usd, "a sub-agent")


def _check(limit: float, spent: float | None, whose: str) -> None:
    if limit and spent is not None and spent >= limit:
        text = f"The budget of {dollars(limit)} for {whose} is used up ({dollars(spent)} spent)."
        raise ProviderError(text, kind=BUDGET, retryable=False)


async def explain_cap(session: Session, *, for_first_request: bool = False) -> str:
    """Reason why the caps of a day and of a project allow no model call here; empty when they do.

    Raises:
        StorageError: the sums cannot be read.
    """
    if session.model_use.spending is None:
        return ""
    return await session.model_use.spending.refusal(session.record.cwd, for_first_request=for_first_request)


async def check_caps(session: Session, *, for_first_request: bool = False) -> None:
    """Check those caps before a model call; calls without a known price are reported once a run.

    The first request of a run takes the check of its message.

    Raises:
        ProviderError: one is used up.
        StorageError: the sums cannot be read.
    """
    if session.model_use.spending is None:
        return
    if why := await explain_cap(session, for_first_request=for_first_request):
        raise ProviderError(why, kind=BUDGET, retryable=False)
    above = session.equipment.above or session
    if not above.run.told_of_caps and (told := await session.model_use.spending.uncertainty(session.record.cwd)):
        above.run.told_of_caps = True
        above.publisher.publish(Noticed(told))


OF_TOOLS: Final = frozenset({CallPurpose.WEB_SEARCH, CallPurpose.WEB_PAGE, CallPurpose.SAMPLING})
"""Purposes of a tool's calls: part of its run, and ended with the tool."""
OF_RUNS: Final = OF_TOOLS | {CallPurpose.REPLY, CallPurpose.ROUTING, CallPurpose.COMPACTION, CallPurpose.MEMORY}
"""Purposes of calls that belong to a run; all others run beside runs."""


BACKGROUND: Final = frozenset({
    CallPurpose.TITLE,
    CallPurpose.TURN_SUMMARY,
    CallPurpose.SUGGESTION,
    CallPurpose.TRACKING,
    CallPurpose.ROUTING,
})
"""Purposes of the requests that the small model answers, without thinking (SPEC DEC-23)."""
REFUSED_MODEL: Final = frozenset({400, 403, 404})
"""HTTP statuses with which a service says that it does not have a model, or not for this key."""


class ModelAnswer(Struct, frozen=True):
    """Answer of a model."""

    text: str
    usage: Usage
    cost_usd: float | None
    """Cost of the answer; None where its price is unknown."""
    model: str = ""
    """Name as its provider gives it."""


async def answer_to(
    session: Session, purpose: CallPurpose, model: str, instruction: str, text: str, max_tokens: int
) -> ModelAnswer:
    """Ask `model` and return its answer; the caller limits the time.

    Raises:
        ProviderError: it cannot be asked, its answer breaks off, or a cap on spending forbids it.
        StorageError: what was spent cannot be read.
    """
    _, name = session.ports.providers.resolve(model)
    question = ModelMessage(Role.USER, (TextBlock(text),))
    reply, cost = await ask_aside(
        session, purpose, model, ModelRequest(name, (instruction,), (question,), max_tokens=max_tokens)
    )
    return ModelAnswer(text_in(reply.blocks), reply.usage, cost, reply.model)


async def ask_aside(
    session: Session, purpose: CallPurpose, model: str, request: ModelRequest
) -> tuple[ModelReply, float | None]:
    """Ask `model` beside the messages: within the caps on spending, paced, recorded and noted for debugging.

    Requests in the background do not think. A small model of the catalogue that this service does not have is not
    asked again in this conversation, and the conversation's own one answers in its place.

    Returns the reply and its cost, None where the price is unknown.

    Raises:
        ProviderError: it cannot be asked, its answer breaks off, or a cap on spending forbids it.
        StorageError: what was spent cannot be read.
    """
    if purpose in BACKGROUND:
        request = replace(request, effort=Effort.OFF)
    try:
        return await _ask_once(session, purpose, model, request)
    except ProviderError as error:
        is_own = session.settings.cheap_model != AUTO or model == session.record.model
        if is_own or purpose not in BACKGROUND or error.status not in REFUSED_MODEL or error.context_overflow:
            raise
        session.model_use.refused_small.add(model)
        if purpose is CallPurpose.TRACKING:
            raise
    _, name = session.ports.providers.resolve(session.record.model)
    return await _ask_once(session, purpose, session.record.model, replace(request, model=name))


async def _ask_once(
    session: Session, purpose: CallPurpose, model: str, request: ModelRequest
) -> tuple[ModelReply, float | None]:
    await check_caps(session)
    provider, _ = session.ports.providers.resolve(model)
    with diagnose_call(session, request, purpose) as diagnosed:
        async with pace_call(session, provider, request, shown=purpose in OF_RUNS) as pacing:
            with record_call(session, purpose, model, request) as call:
                reply = await reply_of(provider, request, call, pacing)
                cost = await cost_of(session, model, reply)
                record_reply(session, call, reply, cost)
            pacing.note_usage(reply.usage)
        diagnosed(reply)
    return reply, cost


async def cost_of(session: Session, model: str, reply: ModelReply) -> float | None:
    """US dollars of a reply: what its service charged by its own statement, else by the price list."""
    if reply.cost_usd is not None:
        return reply.cost_usd
    return await asyncio.to_thread(session.ports.providers.price, model, reply.usage)


async def reply_of(provider: Provider, request: ModelRequest, call: OpenCall, pacing: Pacing) -> ModelReply:
    """The whole reply to a request.

    Raises:
        ProviderError: it cannot be asked, or its answer breaks off.
    """
    async with aclosing(provider.stream(request)) as stream:
        async for item in stream:
            call.streamed = call.streamed or not isinstance(item, BeforeReply)
            match item:
                case UsageTold(usage, cost_usd):
                    call.usage, call.cost_usd = usage, cost_usd
                case LimitsTold():
                    pacing.note_limits(item)
                case ModelReply():
                    call.usage = item.usage
                    return item
                case _:
                    pass  # the reply has all of it
    raise build_cut_error(retryable=False)


@contextmanager
def record_call(
    session: Session, purpose: CallPurpose, model: str, request: ModelRequest, ask: RequestLlm | None = None
) -> Generator[OpenCall]:
    """Record a call made inside the block: an exception marks it as failed or stopped."""
    clock, run = session.ports.clock, run_of(session.state) if purpose in OF_RUNS else None
    call = OpenCall(
        id=session.ports.ids.new(),
        purpose=purpose,
        reference=model,
        started_at=clock.now(),
        begun=clock.monotonic(),
        run_id=ask.run_id if ask is not None else run.id if run is not None else "",
        iteration=ask.iteration if ask is not None else 0,
        attempt=ask.attempt if ask is not None else 0,
        request=request if session.settings.trace_verbose else None,
    )
    session.model_use.calls.begin(call)
    try:
        yield call
    except ProviderError as error:
        kind = error.kind
        session.model_use.calls.end(call, CallStatus.FAILED, clock.monotonic(), lambda one: replace(one, error=kind))
        raise
    except Exception:
        session.model_use.calls.end(
            call, CallStatus.FAILED, clock.monotonic(), lambda one: replace(one, error="internal")
        )
        raise
    except BaseException:
        session.model_use.calls.end(call, CallStatus.CANCELLED, clock.monotonic())
        raise


def record_reply(
    session: Session, call: OpenCall, reply: ModelReply, cost_usd: float | None = UNPRICED, message_id: str = ""
) -> None:
    """A call ended well."""
    session.model_use.calls.end(
        call,
        CallStatus.OK,
        session.ports.clock.monotonic(),
        lambda one: replace(
            one,
            usage=reply.usage,
            model=reply.model or one.model,
            estimated=reply.usage_estimated,
            cost_usd=reply.cost_usd if cost_usd == UNPRICED and reply.cost_usd is not None else cost_usd,
            message_id=message_id,
            preview=text_in(reply.blocks)[:PREVIEW],
            stop=reply.stop.value,
        ),
    )


def build_cut_error(*, retryable: bool) -> ProviderError:
    """A stream that ended without a reply."""
    return ProviderError("the answer ended too early", kind="network", retryable=retryable)


UNKNOWN: Final = "{label} asks for the model '{model}', which is not known here; {ours} answers."
LONGEST_NAME: Final = 80


def run_model(session: Session) -> str:
    """Reference of the model that answers in the current run."""
    return session.run.caps.model or session.record.model


def run_effort(session: Session) -> Effort:
    """Effort of the current run."""
    wanted = session.run.caps.effort
    return session.record.effort if wanted is Effort.DEFAULT else wanted


def named_cheap_model(session: Session) -> str:
    """The cheap model that the settings name; empty where they leave it to the catalogue, or want none."""
    wanted = session.settings.cheap_model
    return "" if wanted == AUTO else wanted


def small_model(session: Session) -> str:
    """The model for requests in the background; empty where there is none beside the conversation's own."""
    if session.settings.cheap_model != AUTO:
        return session.settings.cheap_model
    try:
        provider, name = session.ports.providers.resolve(session.record.model)
    except ProviderError:
        return ""
    small = provider.describe(name).small
    reference = f"{provider.name}/{small}" if small else ""
    return "" if reference in session.model_use.refused_small else reference


def background_model(session: Session) -> str:
    """The model for titles and summaries: the small one, else the conversation's own."""
    return small_model(session) or session.record.model


def summary_model(session: Session) -> str:
    """The model that summarizes this conversation: its own, unless the user names one; a poor summary loses work."""
    return session.settings.summary_model or named_cheap_model(session) or session.record.model


def choose_model(session: Session, wanted: str, label: str) -> tuple[str, str]:
    """The reference of a model that a command asks for, and a sentence where it is not known.

    A name without a provider is one of the conversation's own provider, and must have a known price: files written
    for other programs name models by words such as `haiku`.
    """
    if not wanted:
        return "", ""
    ours = session.record.model
    reference = wanted if "/" in wanted else f"{ours.partition('/')[0]}/{wanted}"
    try:
        session.ports.providers.resolve(reference)
        if "/" in wanted or session.ports.providers.price(reference, Usage()) is not None:
            return reference, ""
    except ProviderError:
        pass
    return "", UNKNOWN.format(label=label, model=one_line(clean_line(wanted), LONGEST_NAME), ours=ours)
