"""A long reply in one piece: nothing of it is lost, and the loop goes on meanwhile."""

from __future__ import annotations

import asyncio
import contextlib
import json

import pytest

from engine.machine.messages import text_in
from engine.ports import ProviderError
from tests.engine.providers.http.test_one_piece import CLAUDE, HELLO, OPENAI, ask, provider
from tests.support.loopback import Answer, Talk, serve

SHORT_LINES = "a\n" * 40_000
CODE = "[{" * 30_000


def in_one_piece(kind: str, text: str, **more: object) -> Answer:
    """A server that answers with `text`."""
    said = (
        {**OPENAI, "choices": [{"message": {"role": "assistant", "content": text}, "finish_reason": "stop"}]}
        if kind == "openai"
        else {**CLAUDE, "content": [{"type": "text", "text": text}], "stop_reason": "end_turn"}
    )

    async def answer(talk: Talk) -> None:
        await talk.plain(200, json.dumps({**said, **more}).encode())

    return answer


@pytest.mark.parametrize("kind", ["claude", "claude, sdk", "openai"])
@pytest.mark.parametrize("text", [SHORT_LINES, CODE, '"\\' * 20_000], ids=["short lines", "code", "quotes"])
async def test_every_character_arrives_brackets_in_the_text_too(kind: str, text: str) -> None:
    reply, requests = await ask(kind, in_one_piece(kind, text))
    assert (text_in(reply.blocks).strip(), requests) == (text.strip(), 1)


@pytest.mark.parametrize("kind", ["claude", "openai"])
@pytest.mark.parametrize("extra", [[{}] * 60_000, ["["] * 200_000], ids=["objects", "texts"])
async def test_as_many_objects_or_texts_with_brackets_are_refused(kind: str, extra: object) -> None:
    with pytest.raises(ProviderError, match="larger than any reply"):
        await ask(kind, in_one_piece(kind, "Hello", extra=extra))


async def test_the_loop_goes_on_while_a_reply_of_many_lines_is_read() -> None:
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async with serve(in_one_piece("openai", SHORT_LINES)) as loopback, contextlib.AsyncExitStack() as stack:
        asked = provider("openai", loopback)
        stack.push_async_callback(asked.close)
        stream, pieces = asked.stream(HELLO), 0
        counting: asyncio.Task[None] | None = None
        async for _ in stream:
            counting = counting or asyncio.create_task(count())
            pieces += 1
        assert counting is not None
        counting.cancel()
    assert pieces > 50
    assert turns > 20
