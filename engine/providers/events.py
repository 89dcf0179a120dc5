"""Event streams and lists of models, as every HTTP provider reads them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from time import monotonic

import msgspec

from engine.ports import ProviderError
from engine.providers.bounds import LONGEST_PINGS, MOST_MODELS, MOST_NAME
from engine.providers.carrier import Unreadable
from engine.providers.failures import silent, unreadable
from engine.providers.http import HttpService
from engine.providers.sse import EventParser

PING_BYTES = 64
DRAIN_SECONDS = 0.2
"""How long the end of the body may lag behind the last event before the connection is given up instead of kept."""


class WireModelMeta(msgspec.Struct):
    """What llama.cpp adds to a model."""

    n_ctx: int | None = None
    n_ctx_train: int | None = None


class WireModel(msgspec.Struct):
    """One entry of a list of models, with the window under the name each server gives it."""

    id: str
    context_length: int | None = None
    """OpenRouter."""
    max_model_len: int | None = None
    """vLLM."""
    max_context_length: int | None = None
    """LM Studio."""
    max_input_tokens: int | None = None
    """Anthropic."""
    meta: WireModelMeta | None = None

    @property
    def window(self) -> int:
        """Tokens of context; 0 where the server does not say."""
        meta = self.meta or WireModelMeta()
        sizes = (
            self.context_length,
            self.max_model_len,
            self.max_context_length,
            self.max_input_tokens,
            meta.n_ctx,
            meta.n_ctx_train,
        )
        return next((size for size in sizes if size), 0)


class WireModels(msgspec.Struct):
    """The answer of /v1/models."""

    data: list[WireModel] | None = None


async def post_events(
    http: HttpService, path: str, body: bytes, clock: Callable[[], float] = monotonic
) -> AsyncGenerator[list[bytes], None]:
    """Send `body` and give the payloads of the events of the answer, in batches as they arrive.

    Raises:
        ProviderError: the request failed, or the answer broke off.
    """
    parser, heard = EventParser(), clock()
    try:
        async with aclosing(http.post_stream(path, body)) as chunks:
            async for chunk in chunks:
                if payloads := parser.feed(chunk):
                    heard = heard if all(map(_is_ping, payloads)) else clock()
                    yield payloads
                if clock() - heard > LONGEST_PINGS:
                    raise silent(http.service, LONGEST_PINGS)
    except Unreadable as error:
        raise unreadable(http.service, str(error)) from None
    yield [payload for payload in parser.finish() if _is_whole(payload)]


async def drain(batches: AsyncGenerator[list[bytes], None]) -> None:
    """Read to the end of the body, so that the connection can be used again."""
    try:
        async with asyncio.timeout(DRAIN_SECONDS):
            async for _ in batches:
                pass
    except (TimeoutError, ProviderError):
        return


async def read_models(http: HttpService, path: str) -> list[WireModel]:
    """The models that a server lists.

    Raises:
        ProviderError: it cannot be asked, or the answer is no list.
    """
    body = await http.get(path)
    try:
        listed = msgspec.json.decode(body, type=WireModels).data or []
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise unreadable(http.service, str(error)) from None
    return [model for model in listed[:MOST_MODELS] if len(model.id) <= MOST_NAME]


def _is_ping(payload: bytes) -> bool:
    """A sign of life without content, as Anthropic sends it; those of others are comments, which give no payload."""
    return len(payload) < PING_BYTES and b'"ping"' in payload


def _is_whole(payload: bytes) -> bool:
    """Whether an event without its blank line is all there; half of one means that the stream was cut."""
    if payload == b"[DONE]":
        return True
    try:
        msgspec.json.decode(payload, type=msgspec.Raw)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return False
    return True
