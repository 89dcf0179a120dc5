"""Effort as the Messages API takes it, by the generation of the model. Pure."""

from __future__ import annotations

from typing import Final, assert_never

from engine.providers.catalogue import Thinking, known_model
from engine.run_options import Effort, nearest
from tools.contract import JsonObject

MIN_THINKING_BUDGET: Final = 1_024
BUDGETS: Final = {Effort.LOW: 2_048, Effort.MEDIUM: 8_192, Effort.HIGH: 16_384, Effort.MAX: 32_768}
"""Tokens of reasoning for models that take a number; never more than three quarters of the output limit."""
_LEVELS: Final = (Effort.LOW, Effort.MEDIUM, Effort.HIGH, Effort.MAX)


def efforts_of(model: str) -> tuple[Effort, ...]:
    """The levels that a model accepts, rising; empty for a model that does not reason, or is unknown."""
    match thinking := _thinking_of(model):
        case Thinking.NONE:
            return ()
        case Thinking.ALWAYS:
            return _LEVELS
        case Thinking.BUDGET | Thinking.ADAPTIVE | Thinking.ADAPTIVE_ON_DEMAND:
            return (Effort.OFF, *_LEVELS)
        case _:
            assert_never(thinking)


def effort_fields(model: str, effort: Effort, budget: int, max_tokens: int) -> JsonObject:
    """Fields of the request about reasoning; `budget` is the user's own number for the default effort.

    Without a display of `summarized` newer models are silent between tool calls.
    """
    thinking, level = _thinking_of(model), nearest(effort, efforts_of(model))
    match thinking:
        case Thinking.NONE:
            return {}
        case Thinking.BUDGET:
            return _budget(min(budget, max_tokens - 1) if level is Effort.DEFAULT else _tokens(level, max_tokens))
        case Thinking.ADAPTIVE | Thinking.ALWAYS | Thinking.ADAPTIVE_ON_DEMAND:
            if level is Effort.OFF:
                return {"thinking": {"type": "disabled"}}
            if level is Effort.DEFAULT:
                return {} if thinking is Thinking.ADAPTIVE_ON_DEMAND and not budget else {"thinking": _adaptive()}
            return {"thinking": _adaptive(), "output_config": {"effort": level.value}}
        case _:
            assert_never(thinking)


def _thinking_of(model: str) -> Thinking:
    known = known_model(model)
    return known.thinking if known is not None else Thinking.NONE


def _adaptive() -> JsonObject:
    return {"type": "adaptive", "display": "summarized"}


def _tokens(level: Effort, max_tokens: int) -> int:
    return min(BUDGETS.get(level, 0), max_tokens * 3 // 4)


def _budget(tokens: int) -> JsonObject:
    return {"thinking": {"type": "enabled", "budget_tokens": tokens}} if tokens >= MIN_THINKING_BUDGET else {}
