"""The llama server's stream, event by event."""

from __future__ import annotations

import msgspec
from msgspec import Struct

from engine.machine.messages import Usage


class _Delta(msgspec.Struct):
    content: str | None = None


class _Choice(msgspec.Struct):
    delta: _Delta | None = None
    finish_reason: str | None = None


class _PromptDetails(msgspec.Struct):
    cached_tokens: int = 0


class _Usage(msgspec.Struct):
    prompt_tokens: int = 0
    completion_tokens: int = 0
    prompt_tokens_details: _PromptDetails | None = None


class _ErrorDetail(msgspec.Struct):
    message: str = ""
    type: str = ""


class _Event(msgspec.Struct):
    choices: list[_Choice] = []
    usage: _Usage | None = None
    error: _ErrorDetail | None = None


class ReplyPiece(Struct, frozen=True):
    """Addition of one event of the stream."""

    text: str = ""
    finish: str = ""
    """`stop`, `length` or empty."""
    usage: Usage | None = None
    error: str = ""


def read_event(payload: bytes) -> ReplyPiece | None:
    """One event; None for the closing mark.

    Raises:
        ValueError: it is no event of this server.
    """
    if payload.strip() == b"[DONE]":
        return None
    event = msgspec.json.decode(payload, type=_Event)
    if event.error is not None:
        return ReplyPiece(error=f"{event.error.type} {event.error.message}".strip())
    choice = event.choices[0] if event.choices else _Choice()
    text = choice.delta.content or "" if choice.delta else ""
    return ReplyPiece(text, choice.finish_reason or "", _usage(event.usage))


def _usage(counted: _Usage | None) -> Usage | None:
    if counted is None:
        return None
    cached = counted.prompt_tokens_details.cached_tokens if counted.prompt_tokens_details else 0
    return Usage(
        input_tokens=max(0, counted.prompt_tokens - cached),
        output_tokens=counted.completion_tokens,
        cache_read_tokens=cached,
    )
