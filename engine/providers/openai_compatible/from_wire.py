"""The chunks of a `/chat/completions` stream as stream items and, at the end, one reply. Pure."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from engine.machine.messages import Block, StopReason, TextBlock, ToolUseBlock, Usage
from engine.ports import ModelReply, StreamItem, TextDelta, ThinkingDelta, ToolCallDelta, UsageTold
from engine.providers.failures import ServerRefusal, Service, build_refused, unreadable
from engine.providers.http import ErrorBody, ErrorDetail, error_in
from engine.providers.http_transport import MOST_NAME, ByteTally, step_problem
from engine.providers.openai_compatible.answer_text import AnswerText, CallSpotter
from engine.providers.openai_compatible.dialect import Dialect
from engine.providers.openai_compatible.json_protocol import StepReader
from engine.providers.openai_compatible.reply_pieces import (
    CallList,
    ChatUsage,
    Reasoning,
    ReasoningDetails,
    WireCall,
    WireThinking,
    count_usage,
    read_charge,
)
from engine.providers.wire import carry, decode_event, estimate_tokens, unique_tool_id

DONE = b"[DONE]"


class WirePart(msgspec.Struct):
    """A piece of content where a server sends parts instead of text (Mistral)."""

    type: str = ""
    text: str = ""


class ChatDelta(msgspec.Struct, gc=False):
    """Part of the answer. Reasoning has two names: the first at DeepSeek and llama.cpp, the other at OpenRouter."""

    content: str | list[WirePart] | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    thinking_blocks: list[WireThinking] | None = None
    refusal: str | None = None
    tool_calls: list[WireCall] | None = None
    reasoning_details: msgspec.Raw = msgspec.Raw()
    """Reasoning in the form in which OpenRouter wants it back."""


class WireChoice(msgspec.Struct, gc=False):
    """One answer; only the first is ever requested. `message` is the form of a server without streaming."""

    delta: ChatDelta | None = None
    message: ChatDelta | None = None
    finish_reason: str | None = None
    error: ErrorDetail | str | None = None
    """Cause when it ends with `error` (OpenRouter)."""


class WireChunk(msgspec.Struct, gc=False):
    """One event; unknown fields are ignored."""

    id: str | None = None
    model: str | None = None
    choices: list[WireChoice] | None = None
    usage: ChatUsage | None = None
    error: ErrorDetail | str | None = None


_PLAIN = Dialect()
_DECODER = msgspec.json.Decoder(WireChunk)
_STOPS = {
    "length": StopReason.MAX_TOKENS,
    "max_tokens": StopReason.MAX_TOKENS,
    "max_output_tokens": StopReason.MAX_TOKENS,
    "tool_calls": StopReason.TOOL_USE,
    "function_call": StopReason.TOOL_USE,
    "refusal": StopReason.REFUSAL,
    "content_filter": StopReason.CONTENT_FILTER,
    "content_filtered": StopReason.CONTENT_FILTER,
    "safety": StopReason.CONTENT_FILTER,
    "prohibited_content": StopReason.CONTENT_FILTER,
    "blocklist": StopReason.CONTENT_FILTER,
    "recitation": StopReason.CONTENT_FILTER,
    "spii": StopReason.CONTENT_FILTER,
    "sensitive": StopReason.CONTENT_FILTER,
}
"""Stop reasons in lower case: OpenAI's words, then those of gateways to Claude, Gemini and GLM."""
_BREAKS = frozenset({"error", "network_error", "insufficient_system_resource", "abort"})
"""Reasons that are failures of the server: OpenRouter's, GLM's, DeepSeek's, vLLM's."""


class OpenAiReplyBuilder:
    """Takes the chunks of one stream in order; `done` once the server sent the last one."""

    def __init__(
        self,
        service: Service,
        model: str,
        used_ids: set[str],
        prompt_bytes: int,
        reader: StepReader | CallSpotter | None = None,
        dialect: Dialect = _PLAIN,
    ) -> None:
        self.done = False
        self._service = service
        self._model = model
        self._id = ""
        self._used_ids = set(used_ids)
        self._prompt_bytes = prompt_bytes
        self._by_protocol = isinstance(reader, StepReader)
        self._text = AnswerText(reader)
        self._characters = 0
        """Characters of the text."""
        self._refusal: list[str] = []
        """Words by which the model declines; they have a field of their own."""
        self._reasoning = Reasoning()
        self._dialect = dialect
        self._details = ReasoningDetails()
        self._calls = CallList()
        self._finish = ""
        self._usage: ChatUsage | None = None
        self._tally = ByteTally()

    @property
    def finished(self) -> bool:
        """True when the stream may end here: some servers leave out `[DONE]`."""
        return self.done or bool(self._finish)

    @property
    def called(self) -> bool:
        """True when the server has parsed a call of the reply itself."""
        return len(self._calls) > 0

    @property
    def signed(self) -> bool:
        """True when the reasoning came with signatures, without which it cannot be sent back."""
        return self._reasoning.signed > 0

    @property
    def signed_calls(self) -> bool:
        """True when calls came with signatures, without which Gemini refuses them."""
        return bool(self._calls.extras())

    def feed(self, payload: bytes) -> Iterator[StreamItem]:
        """Feed one event; yields the visible additions.

        Raises:
            ProviderError: the event is an error, or unreadable.
        """
        if payload == DONE:
            # An incomplete call without a finish reason: the stream was cut on the network.
            self.done = bool(self._finish) or not self._calls.is_open
            return
        chunk = decode_event(_DECODER, payload, self._service)
        if chunk.error is not None:
            raise build_refused(self._service, error_in(ErrorBody(error=chunk.error), 200))
        self._id = (chunk.id or self._id)[:MOST_NAME]
        self._model = (chunk.model or self._model)[:MOST_NAME]
        if chunk.usage is not None:
            self._usage = chunk.usage
            if self._is_counted():
                yield UsageTold(self._count_usage(), self._read_charge())
        for choice in (chunk.choices or ())[:1]:
            self._finish = (choice.finish_reason or self._finish).lower()
            delta = choice.delta or choice.message
            if delta is not None:
                yield from self._delta(delta)
            if choice.error is not None:
                raise build_refused(self._service, error_in(ErrorBody(error=choice.error), 200))
            if self._finish in _BREAKS:
                raise build_refused(
                    self._service, ServerRefusal(200, "server_error", f"the reply ended with `{self._finish}`")
                )

    def flush(self) -> Iterator[StreamItem]:
        """Text that was held back as the beginning of something else, and is none; ahead of `reply`."""
        yield from self._text.flush(cut=self._stop is StopReason.MAX_TOKENS, called=self.called)

    def reply(self) -> ModelReply:
        """The whole reply; only meaningful once `finished`."""
        stop = self._stop
        blocks: list[Block] = []
        whole = self._text.finish(cut=stop is StopReason.MAX_TOKENS, called=self.called)
        blocks.extend(self._reasoning.blocks(whole.thinking))
        if len(self._details):
            blocks.append(carry("reasoning_details", self._details.whole()))
        cut = self._calls.drop_cut_call() if stop is StopReason.MAX_TOKENS else False
        calls = self._calls.whole()
        if self._by_protocol or not self.called:
            calls, cut = whole.calls, whole.is_cut or cut
        elif extras := self._calls.extras():
            blocks.append(carry("extra_content", extras))
        text = whole.text + "".join(self._refusal)
        if text.strip():
            blocks.append(TextBlock(text))
        if stop not in {StopReason.REFUSAL, StopReason.CONTENT_FILTER}:
            blocks.extend(ToolUseBlock(self._tool_id(given), name, arguments) for given, name, arguments in calls)
        if isinstance(blocks[-1] if blocks else None, ToolUseBlock) and stop is StopReason.END_TURN:
            stop = StopReason.TOOL_USE
        return ModelReply(
            tuple(blocks),
            stop,
            self._count_usage(),
            self._model,
            cut,
            usage_estimated=not self._is_counted(),
            cost_usd=self._read_charge(),
        )

    def _delta(self, delta: ChatDelta) -> Iterator[StreamItem]:
        if reasoning := delta.reasoning_content or delta.reasoning:
            self._check(self._tally.text(reasoning))
            yield ThinkingDelta(reasoning)
        if reasoning or delta.thinking_blocks:
            self._check(self._tally.text(*self._reasoning.add(reasoning or "", delta.thinking_blocks or ())))
            self._check(self._tally.block(self._reasoning.signed))
        if self._dialect.reasoning_replay == "reasoning_details" and (raw := bytes(delta.reasoning_details)):
            self._check(self._tally.text(raw.decode("utf-8", "replace")))
            self._details.add(raw)
        if delta.refusal:
            self._check(self._tally.text(delta.refusal))
            self._refusal.append(delta.refusal)
            yield TextDelta(delta.refusal)
        if content := delta.content:
            text = content if isinstance(content, str) else "".join(part.text for part in content)
            self._check(self._tally.text(text))
            self._characters += len(text)
            if self._by_protocol:
                self._check(step_problem(self._tally.characters))
            yield from self._text.feed(text)
        for call in delta.tool_calls or ():
            name, arguments = self._calls.add(call)
            extra = bytes(call.extra_content).decode("utf-8", "replace")
            self._check(self._tally.text(name, arguments, extra) or self._tally.block(len(self._calls)))
            if name or arguments:
                yield ToolCallDelta(name, arguments)

    @property
    def _stop(self) -> StopReason:
        return StopReason.REFUSAL if self._refusal else _STOPS.get(self._finish, StopReason.END_TURN)

    def _check(self, problem: str) -> None:
        if problem:
            raise unreadable(self._service, problem, retryable=False)

    def _tool_id(self, given: str) -> str:
        return unique_tool_id(given, self._used_ids, f"{self._id or 'call'}_{len(self._used_ids)}")

    def _read_charge(self) -> float | None:
        return read_charge(self._usage) if self._usage is not None and self._dialect.usage_cost else None

    def _is_counted(self) -> bool:
        return self._usage is not None and self._usage.prompt_tokens is not None

    def _count_usage(self) -> Usage:
        usage = self._usage
        if usage is None or usage.prompt_tokens is None:
            written = sum(map(len, self._refusal)) + self._reasoning.characters
            written += self._characters + self._calls.characters
            return Usage(estimate_tokens(self._prompt_bytes), estimate_tokens(written))
        return count_usage(usage)
