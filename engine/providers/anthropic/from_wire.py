"""The events of a Messages API stream as stream items and, at the end, one reply, with calls left in its text. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from engine.machine.messages import Block, StopReason, TextBlock, ThinkingBlock, ToolUseBlock, Usage
from engine.ports import ModelReply, StreamItem, TextDelta, ThinkingDelta, ToolCallDelta, UsageTold
from engine.providers.anthropic.to_wire import ServerSearchResults
from engine.providers.failures import ServerRefusal, Service, build_refused, unreadable
from engine.providers.http import ErrorBody, ErrorDetail, error_in
from engine.providers.http_transport import MOST_NAME, ByteTally, tokens
from engine.providers.openai_compatible.answer_text import AnswerText, CallSpotter
from engine.providers.wire import decode_event, parse_object, unique_tool_id
from tools.contract import ToolSpec


class ServerToolUse(msgspec.Struct, gc=False):
    """Uses of the server's own tools."""

    web_search_requests: int | None = None


class MessageUsage(msgspec.Struct, gc=False):
    """Token counts; every field may be missing or null."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    server_tool_use: ServerToolUse | None = None


class WireMessage(msgspec.Struct, gc=False):
    """The message a stream begins with."""

    id: str = ""
    model: str = ""
    usage: MessageUsage | None = None


class WireBlock(msgspec.Struct, gc=False):
    """A content block at its start."""

    type: str = ""
    text: str = ""
    thinking: str = ""
    signature: str = ""
    data: str = ""
    id: str = ""
    name: str = ""
    input: msgspec.Raw = msgspec.Raw()
    content: msgspec.Raw = msgspec.Raw()
    """Results of a tool of the server."""


class MessageDelta(msgspec.Struct, gc=False):
    """Addition to a block, or the end of the message."""

    type: str = ""
    text: str = ""
    thinking: str = ""
    signature: str = ""
    partial_json: str = ""
    stop_reason: str | None = None


class WireEvent(msgspec.Struct, gc=False):
    """Any event; unknown types and fields are ignored, as the API's versioning asks of clients."""

    type: str = ""
    index: int = 0
    delta: MessageDelta | None = None
    content_block: WireBlock | None = None
    message: WireMessage | msgspec.UnsetType | None = None
    usage: MessageUsage | None = None
    id: str = ""
    model: str = ""
    content: list[WireBlock] | None = None
    """Blocks of a reply in one piece, with `id`, `model` and `stop_reason`."""
    stop_reason: str | None = None
    error: ErrorDetail | str | None = None


class _OpenBlock(Struct, eq=False):
    start: WireBlock
    parts: list[str] = field(default_factory=list[str])
    signature: str = ""
    closed: bool = False


_DECODER = msgspec.json.Decoder(WireEvent)
_STOPS = {
    "end_turn": StopReason.END_TURN,
    "stop_sequence": StopReason.STOP_SEQUENCE,
    "refusal": StopReason.REFUSAL,
    "tool_use": StopReason.TOOL_USE,
    "max_tokens": StopReason.MAX_TOKENS,
    "model_context_window_exceeded": StopReason.MAX_TOKENS,
    "pause_turn": StopReason.PAUSE_TURN,
    "length": StopReason.MAX_TOKENS,
    "content_filter": StopReason.CONTENT_FILTER,
    "content_filtered": StopReason.CONTENT_FILTER,
    "guardrail_intervened": StopReason.CONTENT_FILTER,
}
"""The API's own words, and below them those that gateways and Bedrock put in their place."""


class AnthropicReplyBuilder:
    """Takes the events of one stream in order; `done` once the last one came."""

    def __init__(self, service: Service, model: str, used_ids: set[str]) -> None:
        self.done = False
        self._service = service
        self._used_ids = set(used_ids)
        self._message = WireMessage(model=model)
        self._model = model
        self._blocks: dict[int, _OpenBlock] = {}
        self._usage = MessageUsage()
        self._stop = ""
        self._tally = ByteTally()
        self._results = ServerSearchResults()

    def feed(self, payload: bytes) -> StreamItem | None:
        """Feed one event; returns the visible addition, if any.

        Raises:
            ProviderError: the event is an error, or unreadable.
        """
        event = decode_event(_DECODER, payload, self._service)
        match event.type:
            case "content_block_delta" if event.delta is not None:
                return self._delta(event.index, event.delta)
            case "content_block_start" if event.content_block is not None:
                return self._start(event.index, event.content_block)
            case "content_block_stop":
                if event.index in self._blocks:
                    self._blocks[event.index].closed = True
            case "message" | "message_start" | "message_delta":
                return self._frame(event)
            case "message_stop":
                self.done = True
            case _ if event.error is not None:
                raise build_refused(self._service, error_in(ErrorBody(error=event.error), 200))
            case "error":
                raise build_refused(self._service, ServerRefusal(200))
            case _:
                pass
        return None

    def reply(self) -> ModelReply:
        """The whole reply; only meaningful once `done`."""
        stop = _STOPS.get(self._stop, StopReason.END_TURN)
        opened = list(self._blocks.values())
        cut = stop is StopReason.MAX_TOKENS and bool(opened) and _is_cut_call(opened[-1])
        blocks = [block for part in (opened[:-1] if cut else opened) if (block := self._finish_block(part)) is not None]
        if any(isinstance(block, ToolUseBlock) for block in blocks) and stop is StopReason.END_TURN:
            stop = StopReason.TOOL_USE
        return ModelReply(
            blocks=tuple(blocks),
            stop=stop,
            usage=self._read_usage(),
            model=self._message.model[:MOST_NAME] or self._model,
            truncated_call=cut,
            usage_estimated=self._usage.input_tokens is None,
            sources=tuple(self._results.sources),
            search_error=self._results.error,
        )

    def _frame(self, event: WireEvent) -> StreamItem:
        """Handle an event outside the blocks, and return the counts so far."""
        if event.type == "message":
            self._message = WireMessage(event.id, event.model)
            self._count(event.usage)
            self._stop, self.done = event.stop_reason or "", True
            for index, block in enumerate(event.content or ()):
                self._start(index, block)
                self._blocks[index].closed = True
            text = "".join(block.text for block in event.content or () if block.type == "text")
            return TextDelta(text) if text else UsageTold(self._read_usage())
        if isinstance(event.message, WireMessage):
            self._message = event.message
            self._count(event.message.usage)
        self._stop = (event.delta.stop_reason if event.delta else None) or self._stop
        self._count(event.usage)
        return UsageTold(self._read_usage())

    def _count(self, usage: MessageUsage | None) -> None:
        """Let later counts replace earlier ones; a missing field keeps its value."""
        if usage is None:
            return
        known = self._usage
        self._usage = MessageUsage(
            _newer(usage.input_tokens, known.input_tokens),
            _newer(usage.output_tokens, known.output_tokens),
            _newer(usage.cache_creation_input_tokens, known.cache_creation_input_tokens),
            _newer(usage.cache_read_input_tokens, known.cache_read_input_tokens),
            usage.server_tool_use or known.server_tool_use,
        )

    def _read_usage(self) -> Usage:
        server = self._usage.server_tool_use
        return Usage(
            input_tokens=tokens(self._usage.input_tokens),
            output_tokens=tokens(self._usage.output_tokens),
            cache_creation_tokens=tokens(self._usage.cache_creation_input_tokens),
            cache_read_tokens=tokens(self._usage.cache_read_input_tokens),
            web_searches=tokens(server.web_search_requests if server is not None else None),
        )

    def _start(self, index: int, block: WireBlock) -> StreamItem | None:
        block = replace(block, name=block.name[:MOST_NAME])
        self._check(self._tally.block(len(self._blocks) + 1))
        self._check(self._tally.text(block.text, block.thinking, block.signature, block.data))
        if bytes(block.content):
            self._results.take(block.type, block.content)
            block = replace(block, content=msgspec.Raw())
        self._blocks[index] = _OpenBlock(block, signature=block.signature)
        match block.type:
            case "tool_use":
                return ToolCallDelta(block.name, "")
            case "text" if block.text:
                return TextDelta(block.text)
            case "thinking" if block.thinking:
                return ThinkingDelta(block.thinking)
            case _:
                return None

    def _delta(self, index: int, delta: MessageDelta) -> StreamItem | None:
        block = self._blocks.get(index)
        if block is None:
            raise unreadable(self._service, f"a piece of block {index}, which never began")
        self._check(self._tally.text(delta.text, delta.partial_json, delta.thinking, delta.signature))
        match delta.type:
            case "text_delta":
                block.parts.append(delta.text)
                return TextDelta(delta.text)
            case "input_json_delta":
                block.parts.append(delta.partial_json)
                return ToolCallDelta("", delta.partial_json)
            case "thinking_delta":
                block.parts.append(delta.thinking)
                return ThinkingDelta(delta.thinking)
            case "signature_delta":
                block.signature += delta.signature
            case _:
                pass
        return None

    def _check(self, problem: str) -> None:
        if problem:
            raise unreadable(self._service, problem, retryable=False)

    def _finish_block(self, block: _OpenBlock) -> Block | None:
        start, text = block.start, "".join(block.parts)
        match start.type:
            case "text":
                return TextBlock(start.text + text) if start.text or text else None
            case "thinking":
                return ThinkingBlock(start.thinking + text, block.signature)
            case "redacted_thinking":
                return ThinkingBlock("", start.data, redacted=True)
            case "tool_use":
                spare = f"{self._message.id or 'call'}_{len(self._used_ids)}"
                return ToolUseBlock(unique_tool_id(start.id, self._used_ids, spare), start.name, _input(block))
            case _:
                return None


def _newer(new: int | None, old: int | None) -> int | None:
    return old if new is None else new


def _input(block: _OpenBlock) -> str:
    """The arguments as text: the streamed parts, else those at the start, else an empty object."""
    streamed = "".join(block.parts)
    return streamed if streamed.strip() else bytes(block.start.input).decode("utf-8", "replace") or "{}"


def _is_cut_call(block: _OpenBlock) -> bool:
    """True when the output limit cut this block within the arguments of a call."""
    if block.start.type != "tool_use":
        return False
    return not block.closed or not block.parts or parse_object(_input(block)) is None


def sort_out_text(reply: ModelReply, tools: Sequence[ToolSpec], used_ids: set[str]) -> ModelReply:
    """The reply with the calls in its last text as calls, and the reasoning ahead of it as reasoning."""
    last = reply.blocks[-1] if reply.blocks else None
    if not tools or reply.stop is not StopReason.END_TURN or not isinstance(last, TextBlock):
        return reply
    reader = AnswerText(CallSpotter(tools))
    for _ in reader.feed(last.text):
        pass
    found, blocks = reader.finish(cut=False), list[Block](reply.blocks[:-1])
    if not found.calls and not found.thinking:
        return reply
    if found.thinking:
        blocks.append(ThinkingBlock(found.thinking, ""))
    if found.text.strip():
        blocks.append(TextBlock(found.text))
    used = set(used_ids)
    for given, name, arguments in found.calls:
        blocks.append(ToolUseBlock(unique_tool_id(given, used, f"call_{len(used)}"), name, arguments))
    return replace(reply, blocks=tuple(blocks), stop=StopReason.TOOL_USE if found.calls else reply.stop)
