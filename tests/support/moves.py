"""Short builders of machine values, and a driver that applies events and keeps what was saved."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeVar

from engine.machine.effects import Effect, SaveMessage
from engine.machine.events import Event, LlmReplied, UserMessage
from engine.machine.messages import (
    Block,
    LastMessage,
    NewMessage,
    Origin,
    Role,
    StopReason,
    TextBlock,
    ToolResult,
    ToolResultBlock,
    ToolStatus,
    ToolUseBlock,
    Usage,
)
from engine.machine.states import Idle, State
from engine.machine.step import step

E = TypeVar("E", bound=Effect)


def user(text: str = "hi", last: LastMessage = LastMessage.NONE, limit: int = 250) -> UserMessage:
    message = NewMessage("m-user", Role.USER, Origin.HUMAN, (TextBlock(text),))
    return UserMessage(message, last, "run-1", limit)


def reply(gen: int, *blocks: Block, stop: StopReason = StopReason.END_TURN, **facts: object) -> LlmReplied:
    last = facts.pop("last", LastMessage.USER)
    return LlmReplied(gen, f"m-{gen}", blocks, stop, Usage(10, 5), "test", last, **facts)  # type: ignore[arg-type] # test facts


def calls(*names: str) -> tuple[ToolUseBlock, ...]:
    return tuple(ToolUseBlock(name, "bash", "{}") for name in names)


def done(call: str, text: str = "ok", status: ToolStatus = ToolStatus.SUCCESS) -> ToolResult:
    return ToolResult(call, text, status)


@dataclass
class Driver:
    """Applies events one after the other."""

    state: State = field(default_factory=lambda: Idle(0))
    effects: tuple[Effect, ...] = ()
    saved: list[NewMessage] = field(default_factory=list)

    def on(self, event: Event) -> Driver:
        after = step(self.state, event)
        self.state, self.effects = after.state, after.effects
        self.saved += [effect.message for effect in after.effects if isinstance(effect, SaveMessage)]
        return self

    @property
    def gen(self) -> int:
        return self.state.gen

    def effect(self, kind: type[E]) -> E:
        """The one effect of that kind in the last step."""
        found = [effect for effect in self.effects if isinstance(effect, kind)]
        assert len(found) == 1, f"{kind.__name__} in {self.effects}"
        return found[0]

    def has(self, kind: type[Effect]) -> bool:
        return any(isinstance(effect, kind) for effect in self.effects)

    def results(self) -> list[tuple[str, str, bool]]:
        """(call, text, is_error) of the last saved tool-result message."""
        blocks = [block for block in self.saved[-1].blocks if isinstance(block, ToolResultBlock)]
        return [(b.tool_use_id, _text(b), b.is_error) for b in blocks]


def _text(block: ToolResultBlock) -> str:
    return "".join(part.text for part in block.content if isinstance(part, TextBlock))
