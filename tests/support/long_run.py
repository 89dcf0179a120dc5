"""A model that works through hundreds of tool calls in a window of a given size, as strict as a real server.

It refuses an invalid request, and one that does not fit; it counts tokens by its own measure, not the engine's, and
reports how many of them a prompt cache would have served.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from typing import Any

from msgspec.json import encode

from engine.machine.messages import StopReason, TextBlock, ToolUseBlock, Usage
from engine.ports import ModelInfo, ModelReply, ModelRequest, ProviderError, StreamItem
from engine.providers.anthropic.to_wire import request_body
from tests.support.engine import StubTool
from tests.support.environment_note import without_note
from tests.support.loopback_anthropic import violations
from tools.contract import JsonObject, ToolContext, ToolOutput

CHARACTERS_PER_TOKEN = 3.4
"""Differs from the factor of the engine's estimates, as real tokenizers do."""
FACTS = 10
"""Facts in the results of the first steps, which are asked for at the end."""
HEADERS = {"anthropic-version": "2023-06-01", "x-api-key": "k"}
PRICES = Usage(input_tokens=300, output_tokens=1_500, cache_creation_tokens=375, cache_read_tokens=30)
"""Micro-dollars of 100 tokens of each kind: those of a mid-size model with a prompt cache."""
_FACT = re.compile(r"FACT-\d+ = \w+")
_WANTED = "Write the summary now."


@dataclass
class LongTool(StubTool):
    """A command whose output is long, different each time, and names a fact in the first steps."""

    scale: int = 1
    """Factor of the length."""

    async def run(self, args: JsonObject, context: ToolContext) -> ToolOutput:
        self.calls.append(args)
        step = len(self.calls)
        fact = f"FACT-{step} = value{step * 7919}\n" if step <= FACTS else ""
        lines = self.scale * (400 if step % 10 == 0 else 40)
        return ToolOutput(fact + "".join(f"line {line} of step {step}: nothing to see\n" for line in range(lines)))


@dataclass
class LongRunProvider:
    """Asks for one command after the other until `steps` are done, then answers."""

    window: int
    steps: int
    checked_every: int = 1
    """Every request is counted; each so many is checked for validity too."""
    sizes: list[int] = field(default_factory=list)
    """Tokens of each request of the run."""
    overflows: int = 0
    summaries: int = 0
    spent: Usage = field(default_factory=Usage)
    misses: list[int] = field(default_factory=list)
    """Steps whose request did not continue the one before."""
    _made: int = 0
    _before: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return "scripted"

    def describe(self, model: str) -> ModelInfo:
        return ModelInfo("scripted", model, context_window=self.window, max_output=1_024)

    async def models(self) -> list[ModelInfo]:
        return []

    async def count_tokens(self, request: ModelRequest) -> int | None:
        return None

    async def warm(self) -> None:
        return

    async def close(self) -> None:
        return

    @property
    def cache_share(self) -> float:
        """Share of the input that a prompt cache served."""
        read = self.spent.cache_read_tokens
        return read / (read + self.spent.input_tokens + self.spent.cache_creation_tokens)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        parts = self._parts(request)
        tokens = sum(map(_tokens, parts))
        if tokens + 1_024 > self.window:
            self.overflows += 1
            raise ProviderError("too long", kind="invalid_request", retryable=False, context_overflow=True)
        if _WANTED in parts[-1]:
            self.summaries += 1
            yield self._reply(request, TextBlock(_summary(parts[-1])), self._usage(parts, tokens, cached=False))
            return
        usage = self._usage(parts, tokens, cached=True)
        self.sizes.append(tokens)
        if asked := re.search(r"What is (FACT-\d+)\?", parts[-1]):
            known = next((one for one in _FACT.findall("".join(parts)) if one.startswith(f"{asked[1]} ")), "unknown")
            yield self._reply(request, TextBlock(known), usage)
        elif self._made < self.steps:
            self._made += 1
            call = ToolUseBlock(f"call-{self._made}", "bash", json.dumps({"command": f"step {self._made}"}))
            yield self._reply(request, call, usage)
        else:
            yield self._reply(request, TextBlock("done"), usage)

    def _parts(self, request: ModelRequest) -> tuple[str, ...]:
        """System prompt, tools and each message as JSON, without cache marks and what is behind the last of them."""
        body = request_body(request)
        if len(self.sizes) % self.checked_every == 0:
            faults = violations({**body, "max_tokens": 1_024}, HEADERS)
            if faults:
                raise AssertionError(f"a real server refuses this: {faults}")
        last: Any = _list(body["messages"])[-1]  # JSON as it was built
        last["content"] = without_note(last["content"])
        texts = [encode(part).decode() for part in (body.get("tools"), body.get("system"), *_list(body["messages"]))]
        return tuple(text.replace(',"cache_control":{"type":"ephemeral"}', "") for text in texts)

    def _reply(self, request: ModelRequest, block: TextBlock | ToolUseBlock, usage: Usage) -> ModelReply:
        stop = StopReason.TOOL_USE if isinstance(block, ToolUseBlock) else StopReason.END_TURN
        return ModelReply((block,), stop, usage, request.model)

    def _usage(self, parts: tuple[str, ...], tokens: int, *, cached: bool) -> Usage:
        served = 0
        if cached:
            while served < min(len(parts), len(self._before)) and parts[served] == self._before[served]:
                served += 1
            if self._before and served < len(self._before) - 1:
                self.misses.append(self._made)
            self._before = parts
        read = sum(map(_tokens, parts[:served]))
        usage = Usage(0, 40, tokens - read, read) if cached else Usage(tokens, 200)
        self.spent = Usage(*(getattr(self.spent, one) + getattr(usage, one) for one in Usage.__struct_fields__))
        return usage


def cost_of(usage: Usage) -> float:
    """Dollars, by `PRICES`."""
    pairs: list[tuple[int, int]] = [(getattr(usage, one), getattr(PRICES, one)) for one in Usage.__struct_fields__]
    return sum(tokens * price for tokens, price in pairs) / 1e8


def _list(value: object) -> list[object]:
    assert isinstance(value, list)
    return value


def _tokens(text: str) -> int:
    return int(len(text) / CHARACTERS_PER_TOKEN) + 1


def _summary(text: str) -> str:
    found = dict.fromkeys(_FACT.findall(text))
    return "## Facts\n" + "\n".join(found) + "\n## State\nThe steps go on."
