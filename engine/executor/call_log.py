"""The model calls of one open conversation: those under way, and those that ended and are not stored yet."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Final, TypeAlias

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from engine.machine.messages import Usage
from engine.ports import ModelRequest
from engine.records.runs import INPUT_PREVIEW, CallPurpose, CallStatus, ModelCall

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
