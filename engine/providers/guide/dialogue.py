"""Part of a conversation that the guide uses: the last request, and the answers of its tools so far."""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import Struct

from engine.machine.messages import Block, Role, TextBlock, ToolResultBlock, ToolUseBlock, text_in
from engine.ports import ModelMessage

_TRANSIENT = re.compile(r"^\s*\[.*\]\s*$", re.DOTALL)
"""Pattern of a text that Phoenix itself added to the user's text or tool results (SPEC UNI-33)."""


class Answered(Struct, frozen=True):
    """A tool call of this turn and its result."""

    name: str
    input_json: str
    text: str
    is_error: bool


class Dialogue(Struct, frozen=True):
    """One turn as far as it has come."""

    request: str
    """Last message that the person typed."""
    earlier: tuple[str, ...] = ()
    """Earlier messages of the person, oldest first."""
    rounds: tuple[tuple[Answered, ...], ...] = ()
    """The tool rounds of this turn, each with its calls in order."""

    @property
    def answered(self) -> tuple[Answered, ...]:
        """All calls of this turn in order."""
        return tuple(call for calls in self.rounds for call in calls)


def read_dialogue(messages: Sequence[ModelMessage]) -> Dialogue:
    """Split the messages of a request into the question and the later results of tools."""
    spoken: list[str] = []
    rounds: list[tuple[Answered, ...]] = []
    pending: tuple[ToolUseBlock, ...] = ()
    for message in messages:
        if message.role is Role.ASSISTANT:
            pending = tuple(block for block in message.blocks if isinstance(block, ToolUseBlock))
            continue
        results = {block.tool_use_id: block for block in message.blocks if isinstance(block, ToolResultBlock)}
        if results:
            rounds.append(tuple(_answered(call, results.get(call.id)) for call in pending))
        text = _spoken(message.blocks, beside_results=bool(results))
        if text or not results:
            spoken.append(text)
            rounds.clear()
        pending = ()
    return Dialogue(spoken[-1] if spoken else "", tuple(spoken[:-1]), tuple(rounds))


def _spoken(blocks: Sequence[Block], *, beside_results: bool) -> str:
    """Text that the person typed. A bracketed text counts only when there is no other."""
    texts = [block.text for block in blocks if isinstance(block, TextBlock) and not block.attached]
    typed = [text for text in texts if not _TRANSIENT.search(text)]
    return "\n".join(typed if typed or beside_results else texts).strip()


def _answered(call: ToolUseBlock, result: ToolResultBlock | None) -> Answered:
    if result is None:
        return Answered(call.name, call.input_json, "no result", is_error=True)
    text = text_in(result.content, "\n")
    return Answered(call.name, call.input_json, text, result.is_error)
