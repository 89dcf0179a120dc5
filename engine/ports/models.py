"""Interfaces of model providers, rate limits, and values of a growing list of messages."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from enum import StrEnum
from typing import Final, Generic, Protocol, TypeAlias, TypeVar

from msgspec import Struct, field

from engine.machine.messages import Block, Role, StopReason, Usage
from engine.run_options import Effort
from tools.contract import ToolSpec
from tools.web.contract import WebQuery, WebSource


class Unit(StrEnum):
    """The quantity that a limit counts."""

    REQUESTS = "requests"
    TOKENS = "tokens"
    """Input and output together."""
    INPUT = "input tokens"
    OUTPUT = "output tokens"


class RateLimit(Struct, frozen=True):
    """The most that a model takes in a minute."""

    unit: Unit
    limit: int
    """Limit, at least 1."""
    remaining: int | None = None
    """The part that is unused; None where only the limit is known."""
    full_in: float | None = None
    """Seconds, from 0 to 60, until all of it is unused again; None where unknown."""
    counts_cached: bool = True
    """False where input read from the provider's cache is free of the limit, as it is at Anthropic."""


class LimitsTold(Struct, frozen=True):
    """The limits in the head of an answer; the first item of its stream."""

    limits: tuple[RateLimit, ...]


class ModelMessage(Struct, frozen=True):
    """One message of a request; roles alternate, starting with the user (SPEC I2)."""

    role: Role
    blocks: tuple[Block, ...]


class ImageBytes(Struct, frozen=True):
    """An attachment in its form on the wire."""

    media_type: str
    data: bytes

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.media_type}, {len(self.data)} bytes)"


class ServerSearch(Struct, frozen=True):
    """A search of the web by the server of the model itself, within one request."""

    query: WebQuery
    most: int
    """Searches that the model may make."""
    forced: bool = True
    """True where the model has to begin with a search."""


class ModelRequest(Struct, frozen=True):
    """One call of a model. `model` is the part after the provider's name."""

    model: str
    system: tuple[str, ...]
    """The static part, then the parts that change per call: where a provider caches, those are sent last."""
    messages: tuple[ModelMessage, ...]
    tools: tuple[ToolSpec, ...] = ()
    images: Mapping[str, ImageBytes] = field(default_factory=dict[str, ImageBytes])
    """Every image that `messages` name, by attachment id."""
    max_tokens: int | None = None
    """Limit of output tokens; None for the model's maximum, else 8,192 (SPEC BED-006)."""
    effort: Effort = Effort.DEFAULT
    search: ServerSearch | None = None
    """Only for a model whose `ModelInfo.searches` is true."""


class TextDelta(Struct, frozen=True):
    """A piece of the answer."""

    text: str


class ThinkingDelta(Struct, frozen=True):
    """A piece of the model's reasoning."""

    text: str


class ToolCallDelta(Struct, frozen=True):
    """A tool call is being written; `name` once at its start, then pieces of its arguments."""

    name: str
    json: str


class UsageTold(Struct, frozen=True):
    """Token counts of the server so far: they hold for a call that is stopped or breaks."""

    usage: Usage
    cost_usd: float | None = None
    """US dollars that the service charges by its own statement; None: the price list decides."""


class PromptRead(Struct, frozen=True):
    """Share of the prompt that the model's server has read, in per cent."""

    percent: int


class ProviderNotice(Struct, frozen=True):
    """A sentence for the user: the request was changed after a refusal, and its answer follows."""

    text: str


class ModelReply(Struct, frozen=True):
    """A whole reply: always the last item of a stream that ended properly."""

    blocks: tuple[Block, ...]
    stop: StopReason
    usage: Usage
    model: str
    truncated_call: bool = False
    """The last tool use was cut off by the output limit and is not among `blocks`."""
    usage_estimated: bool = False
    cost_usd: float | None = None
    """US dollars that the service charges by its own statement; None: the price list decides."""
    sources: tuple[WebSource, ...] = ()
    """Results of the searches that `ModelRequest.search` asked for."""
    search_error: str = ""
    """Word of the server for a search that failed; empty without one."""


BeforeReply: TypeAlias = LimitsTold | ProviderNotice | PromptRead
"""Items of a stream that are no part of the reply."""
StreamItem: TypeAlias = TextDelta | ThinkingDelta | ToolCallDelta | UsageTold | BeforeReply | ModelReply


class ProviderError(Exception):
    """A call failed; `message` is written for the user and names no secret."""

    def __init__(
        self,
        message: str,
        *,
        kind: str,
        retryable: bool,
        retry_after: float = 0.0,
        context_overflow: bool = False,
        limits: tuple[RateLimit, ...] = (),
        status: int = 0,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.kind = kind
        """network, timeout, rate_limit, overloaded, server, auth, invalid_request, refused_image, protocol."""
        self.retryable = retryable
        self.retry_after = retry_after
        self.context_overflow = context_overflow
        self.limits = limits
        """Rate limits in the head of the refusal."""
        self.status = status
        """HTTP status of the refusal; 0 where there was none."""


class ModelInfo(Struct, frozen=True):
    """Known properties of a model; 0 and None mean unknown."""

    provider: str
    name: str
    context_window: int = 0
    max_output: int = 0
    vision: bool | None = None
    local: bool = False
    note: str = ""
    summarizes: bool = True
    """True when it can summarize a conversation; otherwise rules do."""
    limits: tuple[RateLimit, ...] = ()
    """Rate limits that the configuration sets."""
    efforts: tuple[Effort, ...] = ()
    """Levels of effort that it accepts, rising; empty for a model without, which is never sent one."""
    tools: bool | None = None
    """True when it calls tools, by the server's statement, else the catalogue."""
    reasoning: bool | None = None
    """True when it reasons, by the server's statement, else the catalogue."""
    price_in: float | None = None
    """US dollars per million tokens of input, for lists; None where unknown."""
    price_out: float | None = None
    searches: bool = False
    """True when its server searches the web within a request."""
    small: str = ""
    """Name of the small model of the same service, for requests in the background; empty where none is known."""

    @property
    def reference(self) -> str:
        """PROVIDER/MODEL, as flags and the status line name it."""
        return f"{self.provider}/{self.name}"


class Provider(Protocol):
    """Speaks to models. A stream that ends without a ModelReply raises ProviderError."""

    @property
    def name(self) -> str:
        """The part of a model reference before the slash."""
        ...

    def stream(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        """Ask once, no retries. Closing the generator closes the connection.

        Raises:
            ProviderError: anything that went wrong, sorted into retryable and not.
        """
        ...

    def describe(self, model: str) -> ModelInfo:
        """Describe `model` without a request."""
        ...

    async def models(self) -> list[ModelInfo]:
        """The models on offer; asks the server where there is one."""
        ...

    async def count_tokens(self, request: ModelRequest) -> int | None:
        """Tokens of the request; None where the server does not count, or there is no key. Raises nothing."""
        ...

    async def warm(self) -> None:
        """Open a connection ahead of the first request; failures are silent."""
        ...

    async def close(self) -> None:
        """Close every connection and end every helper process."""
        ...


class Providers(Protocol):
    """All configured providers."""

    def resolve(self, reference: str) -> tuple[Provider, str]:
        """The provider and the model name of `anthropic/claude-...`.

        Raises:
            ProviderError: unknown provider or missing credentials, naming the fix.
        """
        ...

    def price(self, reference: str, usage: Usage) -> float | None:
        """US dollars of a reply; None where the price is unknown."""
        ...

    async def close(self) -> None:
        """Close all of them."""
        ...


T = TypeVar("T")
LAST: Final = 8
"""Messages at the end of a request that may differ in the next one."""


class GrowingValues(Generic[T]):
    """Values of the messages of the last request; the next one computes those of its new messages only."""

    def __init__(self, value_of: Callable[[ModelMessage], T]) -> None:
        self._value_of = value_of
        self._messages: tuple[ModelMessage, ...] = ()
        self._values: list[T] = []

    def of(self, messages: tuple[ModelMessage, ...]) -> Sequence[T]:
        """The value of each message, in order; not to be kept, for the next request changes it."""
        same = common_start(self._messages, messages)
        del self._values[same:]
        self._values.extend(map(self._value_of, messages[same:]))
        self._messages = messages
        return self._values


def common_start(before: tuple[ModelMessage, ...], now: tuple[ModelMessage, ...]) -> int:
    """Number of messages at the beginning that are equal in both.

    A request ends otherwise than the one before, so the last messages are looked at one by one; the rest is compared
    at once, which takes 10 ns for each message that is the same object.
    """
    count = min(len(before), len(now))
    for _ in range(LAST):
        if not count or before[count - 1] == now[count - 1]:
            break
        count -= 1
    if before[:count] == now[:count]:
        return count
    return next((place for place in range(count) if before[place] != now[place]), count)
