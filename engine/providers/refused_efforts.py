"""Levels of effort that a server refused, so that each refusal costs one request and is reported once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from engine.ports import ModelRequest, ProviderError, ProviderNotice
from engine.run_options import Effort, nearest

REFUSED: Final = "{model} does not accept effort {effort}; asked without it. /effort shows what it accepts."
_MARKS: Final = ("effort", "reasoning", "thinking", "output_config", "budget_tokens", "chat_template_kwargs")
"""Names of the parameters in refusals of all services."""


class RefusedEfforts:
    """The refusals of one provider, while this process lives."""

    def __init__(self) -> None:
        self._refused: set[tuple[str, Effort]] = set()

    def of(self, model: str, known: Sequence[Effort]) -> tuple[Effort, ...]:
        """The levels that remain of those a model should know."""
        return tuple(level for level in known if (model, level) not in self._refused)

    def allowed(self, request: ModelRequest, known: Sequence[Effort]) -> ModelRequest:
        """The request with the nearest level that the model knows, or none where that one was refused."""
        level = nearest(request.effort, known)
        return replace(request, effort=Effort.DEFAULT if (request.model, level) in self._refused else level)

    def notice(self, request: ModelRequest, error: ProviderError) -> ProviderNotice | None:
        """Learn from a refusal and return the sentence about it; None where it is about something else."""
        said = error.message.lower()
        about = error.kind in {"invalid_request", "server"} and any(mark in said for mark in _MARKS)
        if request.effort is Effort.DEFAULT or error.retryable or error.context_overflow or not about:
            return None
        self._refused.add((request.model, request.effort))
        return ProviderNotice(REFUSED.format(model=request.model, effort=request.effort.value))


def without_effort(request: ModelRequest) -> ModelRequest:
    """The request with nothing about effort."""
    return replace(request, effort=Effort.DEFAULT)
