"""Sub-agents whose fates a test decides: a provider that answers by what an agent is to become, at a word."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from engine.machine.messages import (
    Block,
    Role,
    StopReason,
    TextBlock,
    ToolResultBlock,
    ToolUseBlock,
    Usage,
)
from engine.ports import ModelMessage, ModelReply, ModelRequest, ProviderError, StreamItem, TextDelta
from engine.records import StoredMessage
from tests.support.scripted_provider import Script, ScriptedProvider

TASK = re.compile(r"TASK (\d+)")
MORE = "dig deeper"
"""Text of a hint; an agent that ended before answers it with a result."""


class Fate(StrEnum):
    """Outcomes of an undisturbed agent."""

    RESULT = "result"
    ERROR = "error"
    TEXT = "text"
    FAILS = "fails"
    TOOL = "tool"
    """Runs a tool, then hands in."""
    CROWDED = "crowded"
    """Submits next to another call, is refused, submits alone."""
    TWO = "two"
    """Hands in twice in one reply, again and again, until its turns are used up."""
    HANGS = "hangs"
    """Writes a little, then nothing more."""


@dataclass
class Fates(ScriptedProvider):
    """Answers as decided; every request of agent `n` waits for `gates[n]`."""

    fates: Sequence[Fate]
    sequential: bool = False
    background: bool = False
    beside: bool = False
    """True when the spawn call has other calls around it."""
    gates: list[asyncio.Event] = field(init=False)
    faults: list[str] = field(default_factory=list)
    open: int = 0
    """Requests under way."""
    count: int = 0

    def __post_init__(self) -> None:
        super().__init__({"main": Script()})
        self.gates = [asyncio.Event() for _ in self.fates]

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        """One reply."""
        self.faults += faults_of(request.messages)
        self.open += 1
        try:
            first = words(request.messages[0].blocks)
            found = TASK.match(first)
            if found is None:
                blocks = self._parent(request)
            else:
                number = int(found[1])
                if self.fates[number] is Fate.HANGS:
                    yield TextDelta("hm")
                    await asyncio.Event().wait()
                await self.gates[number].wait()
                blocks = self._agent(number, request)
            calls = any(isinstance(block, ToolUseBlock) for block in blocks)
            yield ModelReply(blocks, StopReason.TOOL_USE if calls else StopReason.END_TURN, Usage(10, 5), "main")
        finally:
            self.open -= 1

    def _parent(self, request: ModelRequest) -> tuple[Block, ...]:
        if words(request.messages[-1].blocks) != "begin":
            return (TextBlock("I see."),)
        if self.background:
            return tuple(
                self._call("spawn_task", {"task_description": f"task {n}", "initial_prompt": f"TASK {n}"})
                for n in range(len(self.fates))
            )
        order: dict[str, object] = {
            "tasks": [{"task": f"TASK {n}"} for n in range(len(self.fates))],
            "strategy": "sequential" if self.sequential else "parallel",
        }
        spawn = self._call("spawn_agents", order)
        if not self.beside:
            return (spawn,)
        return (self._call("bash", {"command": "ls"}), spawn, self._call("bash", {"command": "pwd"}))

    def _agent(self, number: int, request: ModelRequest) -> tuple[Block, ...]:
        submit = self._call("submit_result", {"result": f"result {number}"})
        said = [words(message.blocks) for message in request.messages]
        if any(MORE in text for text in said[1:]):
            return (self._call("submit_result", {"result": f"more {number}"}),)
        match self.fates[number]:
            case Fate.RESULT | Fate.HANGS:
                return (submit,)
            case Fate.ERROR:
                return (self._call("submit_error", {"error": f"error {number}"}),)
            case Fate.TEXT:
                return (TextBlock(f"words {number}"),)
            case Fate.FAILS:
                raise ProviderError("broken", kind="auth", retryable=False)
            case Fate.TOOL:
                ran = any("ran ls" in text for text in said)
                return (submit,) if ran else (self._call("bash", {"command": "ls"}),)
            case Fate.CROWDED:
                told = any("must be the only tool" in text for text in said)
                return (submit,) if told else (submit, self._call("bash", {"command": "ls"}))
            case Fate.TWO:
                return (submit, self._call("submit_error", {"error": "both"}))

    def _call(self, name: str, arguments: dict[str, object]) -> ToolUseBlock:
        self.count += 1
        return ToolUseBlock(f"call{self.count}", name, json.dumps(arguments))


def words(blocks: Sequence[Block]) -> str:
    """Every text of a message, those of tool results too."""
    parts: list[str] = []
    for block in blocks:
        match block:
            case TextBlock(text):
                parts.append(text)
            case ToolResultBlock(content=content):
                parts += [part.text for part in content if isinstance(part, TextBlock)]
            case _:
                pass
    return "\n".join(parts)


def faults_of(messages: Sequence[ModelMessage]) -> list[str]:
    """Faults of a request: roles that do not alternate, tool uses and results that do not fit."""
    found: list[str] = []
    if [message.role for message in messages] != [(Role.USER, Role.ASSISTANT)[n % 2] for n in range(len(messages))]:
        found.append(f"roles {[message.role.value for message in messages]}")
    if messages[-1].role is not Role.USER:
        found.append("ends with the assistant")
    before: list[str] = []
    for message in messages:
        answers = [block.tool_use_id for block in message.blocks if isinstance(block, ToolResultBlock)]
        if message.role is Role.USER and answers != before:
            found.append(f"asked {before}, answered {answers}")
        before = [block.id for block in message.blocks if isinstance(block, ToolUseBlock)]
    return found


def unanswered(rows: Sequence[StoredMessage]) -> list[str]:
    """Faults of the stored calls: not answered, answered twice, in another order, or not at once."""
    spoken = [row for row in rows if row.role is not Role.SYSTEM]
    found: list[str] = []
    answered = [block.tool_use_id for row in spoken for block in row.blocks if isinstance(block, ToolResultBlock)]
    if len(set(answered)) != len(answered):
        found.append("answered twice")
    for place, row in enumerate(spoken):
        asked = [block.id for block in row.blocks if isinstance(block, ToolUseBlock)]
        after = spoken[place + 1].blocks if place + 1 < len(spoken) else ()
        given = [block.tool_use_id for block in after if isinstance(block, ToolResultBlock)]
        if asked and given != asked:
            found.append(f"asked {asked}, answered {given}")
    return found
