"""A day of use by script: conversations whose runs end in each possible way, counted by the model that answers them."""

from __future__ import annotations

import asyncio
import re
from collections import Counter, defaultdict
from collections.abc import AsyncGenerator, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import count
from pathlib import Path
from typing import Final

from engine.conversation import Conversation
from engine.executor.requests import Accepted, ConversationOptions
from engine.machine.messages import Block, Role, StopReason, TextBlock, ToolUseBlock, Usage
from engine.ports import ModelInfo, ModelReply, ModelRequest, ProviderError, StreamItem, TextDelta
from engine.records import PermissionMode
from tests.support.engine import EngineHarness, until

MODEL: Final = "scripted/main"
AGENT: Final = "scripted/cheap"


class Kind(StrEnum):
    """Kinds of runs, by their end; the value is the word of the prompt."""

    ANSWERS = "answers"
    CALLS = "calls"
    CALLS_TWICE = "twice"
    FAILS = "fails"
    STOPS = "stops"
    REPEATS = "repeats"


DAY: Final = (
    *[Kind.ANSWERS] * 11,
    *[Kind.CALLS] * 4,
    *[Kind.CALLS_TWICE] * 2,
    Kind.FAILS,
    Kind.STOPS,
    Kind.REPEATS,
)
"""Runs of a conversation in their order, again and again."""
CALLS: Final = {Kind.CALLS: 1, Kind.CALLS_TWICE: 2}
_PROMPT: Final = re.compile(rf"\b({'|'.join(Kind)}) (\d+)-(\d+)\b")
_MESSAGE: Final = re.compile(r"<message id=(\d+)>")


@dataclass
class DayModel:
    """Answers as the prompt says, and counts what it has said; prices are those of `price`."""

    used: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict[str, Counter[str]](Counter))
    """Tokens by the number of the conversation, and of the task agent under its own name."""
    calls: Counter[str] = field(default_factory=Counter[str])
    hanging: set[str] = field(default_factory=set[str])
    """Prompts whose answer has begun and goes no further."""
    known: str = "scripted"
    _failed: set[str] = field(default_factory=set[str])
    _numbers: Iterator[int] = field(default_factory=lambda: count(1))

    @property
    def name(self) -> str:
        return self.known

    def resolve(self, reference: str) -> tuple[DayModel, str]:
        return self, reference.partition("/")[2]

    def price(self, reference: str, usage: Usage) -> float:
        return price(usage)

    def describe(self, model: str) -> ModelInfo:
        return ModelInfo(self.known, model, context_window=1_000_000, max_output=8_192)

    async def models(self) -> list[ModelInfo]:
        return [self.describe("main")]

    async def count_tokens(self, request: ModelRequest) -> int | None:
        return None

    async def warm(self) -> None:
        return

    async def close(self) -> None:
        return

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        if any(tool.name == "insert_task" for tool in request.tools):
            yield self._reply(AGENT, request, _recorded(request))
            return
        found = _PROMPT.findall("\n".join(_said(request)))[-1]
        kind, prompt = Kind(found[0]), " ".join(found)
        if kind is Kind.FAILS or (kind is Kind.REPEATS and prompt not in self._failed):
            self._failed.add(prompt)
            raise ProviderError("not now", kind="server", retryable=kind is Kind.REPEATS)
        yield TextDelta("so ")
        if kind is Kind.STOPS:
            self.hanging.add(prompt)
            await asyncio.Event().wait()
        asked = not _has_results(request) and CALLS.get(kind, 0)
        tools = [ToolUseBlock(f"call_{next(self._numbers)}", "bash", '{"command": "true"}') for _ in range(asked)]
        yield self._reply(found[1], request, (TextBlock("so be it"), *tools))

    def _reply(self, who: str, request: ModelRequest, blocks: tuple[Block, ...]) -> ModelReply:
        number = next(self._numbers)
        usage = Usage(100 + number % 7, 10 + number % 5, number % 3, 50 + number % 11)
        self.calls[who] += 1
        self.used[who].update(
            input=usage.input_tokens,
            output=usage.output_tokens,
            written=usage.cache_creation_tokens,
            read=usage.cache_read_tokens,
        )
        calls = any(isinstance(block, ToolUseBlock) for block in blocks)
        return ModelReply(blocks, StopReason.TOOL_USE if calls else StopReason.END_TURN, usage, request.model)

    async def hangs(self, prompt: str) -> None:
        """Wait until the answer to a prompt has begun."""
        await until(lambda: prompt in self.hanging)

    def total(self, *names: str) -> Usage:
        """Tokens of some conversations, or of all."""
        sums: Counter[str] = Counter()
        for name in names or tuple(self.used):
            sums += self.used[name]
        return Usage(sums["input"], sums["output"], sums["written"], sums["read"])


@dataclass
class Talked:
    """One conversation of the day."""

    conversation: Conversation
    kinds: tuple[Kind, ...]

    @property
    def tools(self) -> int:
        """Tool calls of all its runs."""
        return sum(CALLS.get(kind, 0) for kind in self.kinds)


def price(usage: Usage) -> float:
    """Dollars; a millionth for each token, so that no sum is rounded."""
    return usage.context_tokens / 1e6


async def talk(harness: EngineHarness, model: DayModel, number: int, runs: int, folder: Path) -> Talked:
    """One conversation, run by run."""
    options = ConversationOptions(folder, MODEL, permission_mode=PermissionMode.AUTO)
    conversation = await harness.engine.create(options)
    kinds = tuple(DAY[run % len(DAY)] for run in range(runs))
    for run, kind in enumerate(kinds):
        prompt = f"{kind} {number}-{run}"
        assert isinstance(await conversation.say(prompt), Accepted)
        if kind is Kind.STOPS:
            await model.hangs(f"{kind} {number} {run}")
            conversation.cancel()
        await conversation.wait_idle()
    return Talked(conversation, kinds)


def _said(request: ModelRequest) -> Iterator[str]:
    for message in request.messages:
        if message.role is Role.USER:
            yield from (block.text for block in message.blocks if isinstance(block, TextBlock))


def _has_results(request: ModelRequest) -> bool:
    return not any(isinstance(block, TextBlock) and _PROMPT.search(block.text) for block in request.messages[-1].blocks)


def _recorded(request: ModelRequest) -> tuple[Block, ...]:
    """The calls of the task agent: one task for each pass, which has all its messages."""
    text = next(_said(request))
    ids = [int(found) for found in _MESSAGE.findall(text.partition("## Current Messages")[2])]
    order = len(re.findall(r"^Task \d+:", text, re.MULTILINE))
    inserted = f'{{"after_task_order": {order}, "task_description": "messages from {ids[0]}"}}'
    appended = f'{{"task_order": {order + 1}, "message_range": [{ids[0]}, {ids[-1]}]}}'
    return (
        ToolUseBlock(f"insert_{ids[0]}", "insert_task", inserted),
        ToolUseBlock(f"append_{ids[0]}", "append_messages_to_task", appended),
        ToolUseBlock(f"finish_{ids[0]}", "finish", "{}"),
    )
