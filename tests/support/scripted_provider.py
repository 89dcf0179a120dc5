"""A provider that plays a script: for tests, pictures and benchmarks. The script is pure data."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias, assert_never

from msgspec import Struct

from engine.machine.messages import (
    Block,
    StopReason,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    Usage,
)
from engine.ports import (
    ModelInfo,
    ModelReply,
    ModelRequest,
    ProviderError,
    StreamItem,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
)

PROVIDER_NAME = "scripted"
WINDOW = 200_000
DEFAULT_USAGE = Usage(input_tokens=100, output_tokens=20)


class Text(Struct, frozen=True):
    """Text, in pieces of `piece` characters with `delay` seconds before each; 0 characters: all at once."""

    text: str
    piece: int = 0
    delay: float = 0.0


class Thought(Struct, frozen=True):
    """Reasoning, written like text."""

    text: str
    signature: str = "scripted"
    piece: int = 0
    delay: float = 0.0


class ScriptedCall(Struct, frozen=True):
    """A tool call; without an id it gets one that no other call of the provider has."""

    name: str
    input_json: str = "{}"
    id: str = ""
    piece: int = 0
    delay: float = 0.0


class Pause(Struct, frozen=True):
    """A pause of some seconds of the injected waiter."""

    seconds: float


class Fail(Struct, frozen=True):
    """The call fails here."""

    message: str
    kind: str = "server"
    retryable: bool = True
    retry_after: float = 0.0
    context_overflow: bool = False
    status: int = 0


class Hang(Struct, frozen=True):
    """Silence until the stream is closed."""


class Cut(Struct, frozen=True):
    """The connection breaks here."""


ScriptPart: TypeAlias = Text | Thought | ScriptedCall | Pause | Fail | Hang | Cut


class Reply(Struct, frozen=True):
    """Response to one call, part after part; without a stop reason the parts decide it."""

    parts: tuple[ScriptPart, ...]
    stop: StopReason | None = None
    usage: Usage = DEFAULT_USAGE
    truncated_call: bool = False
    when: str = ""
    """Text that a request must contain for this reply; empty: any."""
    always: bool = False
    """True for a reply that answers every matching request."""

    @property
    def reason(self) -> StopReason:
        """Stop reason of the reply."""
        has_call = any(isinstance(part, ScriptedCall) for part in self.parts)
        return self.stop or (StopReason.TOOL_USE if has_call else StopReason.END_TURN)


class Script(Struct, frozen=True):
    """Replies in order: a request takes the first unused one that fits it."""

    replies: tuple[Reply, ...] = ()
    after: Reply = Reply((Text("SCRIPT-END"),))
    """Reply to requests past the end."""
    aside: Reply = Reply((Text("aside"),))
    """Reply to requests without tools (titles, summaries), which uses nothing up; not where replies have a `when`."""


def says(*texts: str) -> Script:
    """A script of plain answers."""
    return Script(tuple(Reply((Text(text),)) for text in texts))


@dataclass(slots=True)
class _Progress:
    script: Script
    used: set[int] = field(default_factory=set[int])

    def next(self, request: ModelRequest) -> Reply:
        if not request.tools and not any(reply.when for reply in self.script.replies):
            return self.script.aside
        said = "\n".join(_texts(request))
        for number, reply in enumerate(self.script.replies):
            if number not in self.used and reply.when in said:
                if not reply.always:
                    self.used.add(number)
                return reply
        return self.script.after


class ScriptedProvider:
    """Plays `scripts` by model name; keeps every request it was asked."""

    def __init__(self, scripts: Mapping[str, Script], wait: Callable[[float], Awaitable[None]] = asyncio.sleep) -> None:
        self._progress = {name: _Progress(script) for name, script in scripts.items()}
        self._wait = wait
        self._calls = 0
        self.requests: list[ModelRequest] = []
        self.dropped = 0
        """Streams that were closed or cancelled before their end."""

    @property
    def name(self) -> str:
        """Always `scripted`."""
        return PROVIDER_NAME

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        """Play the next reply; see `engine.ports.Provider.stream`."""
        progress = self._progress.get(request.model)
        if progress is None:
            raise ProviderError(f"No script is named {request.model}.", kind="invalid_request", retryable=False)
        self.requests.append(request)
        reply = progress.next(request)
        blocks: list[Block] = []
        try:
            for part in reply.parts:
                async for item in self._play(part, blocks):
                    yield item
        except (GeneratorExit, asyncio.CancelledError):
            self.dropped += 1
            raise
        yield ModelReply(tuple(blocks), reply.reason, reply.usage, request.model, reply.truncated_call)

    def describe(self, model: str) -> ModelInfo:
        """A model with a window of 200,000 tokens that sees images."""
        return ModelInfo(PROVIDER_NAME, model, context_window=WINDOW, max_output=8_192, vision=True)

    async def models(self) -> list[ModelInfo]:
        """One model per script."""
        return [self.describe(model) for model in self._progress]

    async def count_tokens(self, request: ModelRequest) -> int | None:
        return None

    async def warm(self) -> None:
        """Do nothing: there is no connection."""

    async def close(self) -> None:
        """Do nothing: there is no connection."""

    async def _play(self, part: ScriptPart, blocks: list[Block]) -> AsyncGenerator[StreamItem, None]:
        match part:
            case Text() | Thought() | ScriptedCall():
                async for item in self._write(part, blocks):
                    yield item
            case Pause(seconds):
                await self._wait(seconds)
            case Hang():
                await asyncio.Event().wait()
            case Cut():
                raise ProviderError("The script cuts the connection here.", kind="network", retryable=True)
            case Fail():
                raise ProviderError(
                    part.message,
                    kind=part.kind,
                    retryable=part.retryable,
                    retry_after=part.retry_after,
                    context_overflow=part.context_overflow,
                    status=part.status,
                )
            case _:
                assert_never(part)

    async def _write(
        self, part: Text | Thought | ScriptedCall, blocks: list[Block]
    ) -> AsyncGenerator[StreamItem, None]:
        match part:
            case Text():
                async for piece in self._pieces(part.text, part.piece, part.delay):
                    yield TextDelta(piece)
                blocks.append(TextBlock(part.text))
            case Thought():
                async for piece in self._pieces(part.text, part.piece, part.delay):
                    yield ThinkingDelta(piece)
                blocks.append(ThinkingBlock(part.text, part.signature))
            case ScriptedCall():
                yield ToolCallDelta(part.name, "")
                async for piece in self._pieces(part.input_json, part.piece, part.delay):
                    yield ToolCallDelta("", piece)
                self._calls += 1
                blocks.append(ToolUseBlock(part.id or f"scripted_{self._calls}", part.name, part.input_json))
            case _:
                assert_never(part)

    async def _pieces(self, text: str, size: int, delay: float) -> AsyncGenerator[str, None]:
        """The pieces of `text`; the loop runs between them, as it does with a real connection."""
        for piece in _cut(text, size):
            await self._wait(delay)
            yield piece


def _cut(text: str, size: int) -> Iterator[str]:
    step = size or len(text) or 1
    return (text[at : at + step] for at in range(0, len(text), step))


def _texts(request: ModelRequest) -> Iterable[str]:
    yield from request.system
    for message in request.messages:
        for block in message.blocks:
            match block:
                case TextBlock(text):
                    yield text
                case ToolResultBlock(content=content):
                    yield from (part.text for part in content if isinstance(part, TextBlock))
                case _:
                    pass
