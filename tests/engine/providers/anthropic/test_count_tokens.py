"""The counting endpoint: the same request without a reply, never without a key, and any odd answer is no count."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest
from msgspec.structs import replace

from engine.machine.messages import Role, TextBlock
from engine.ports import ModelMessage, ModelRequest
from engine.providers.anthropic import AnthropicProvider, AnthropicSettings
from engine.run_options import Effort
from tests.support.loopback import Talk, serve
from tests.support.loopback_anthropic import refuses
from tools.contract import ToolClass, ToolSpec

TOOL = ToolSpec("bash", "Run.", {"type": "object"}, ToolClass.RUN)
ASKED = ModelRequest("claude-opus-5", ("Be brief.",), (ModelMessage(Role.USER, (TextBlock("Hi"),)),), (TOOL,))
CACHED = {"type": "ephemeral"}


def answers(body: bytes) -> Callable[[Talk], Awaitable[None]]:
    async def answer(talk: Talk) -> None:
        await talk.plain(200, body)

    return answer


async def counted(answer: Callable[[Talk], Awaitable[None]]) -> int | None:
    async with serve(answer) as loopback:
        asked = AnthropicProvider(AnthropicSettings(api_key="sk-test", base_url=loopback.url))
        tokens = await asked.count_tokens(ASKED)
        await asked.close()
    return tokens


async def test_the_request_is_the_one_that_would_be_answered() -> None:
    async with serve(answers(b'{"input_tokens": 1234}')) as loopback:
        asked = AnthropicProvider(AnthropicSettings(api_key="sk-test", base_url=loopback.url))
        assert await asked.count_tokens(replace(ASKED, effort=Effort.HIGH)) == 1_234
        await asked.close()
        (seen,) = loopback.requests
    assert (seen.method, seen.path, seen.headers["x-api-key"]) == ("POST", "/v1/messages/count_tokens", "sk-test")
    assert seen.json == {
        "model": "claude-opus-5",
        "messages": [{"role": "user", "content": [{"type": "text", "text": "Hi", "cache_control": CACHED}]}],
        "system": [{"type": "text", "text": "Be brief.", "cache_control": CACHED}],
        "tools": [{"name": "bash", "description": "Run.", "input_schema": {"type": "object"}, "cache_control": CACHED}],
        "thinking": {"type": "adaptive", "display": "summarized"},
        "output_config": {"effort": "high"},
    }


async def test_nothing_is_sent_without_a_key() -> None:
    async with serve() as loopback:
        asked = AnthropicProvider(AnthropicSettings(base_url=loopback.url))
        assert await asked.count_tokens(ASKED) is None
        await asked.close()
        assert loopback.requests == []


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"null",
        b"[]",
        b"{}",
        b'{"input_tokens": null}',
        b'{"input_tokens": "12"}',
        b'{"input_tokens": -5}',
        b'{"input_tokens": 1e300}',
        b'{"input_tokens": 99999999999999999999}',
        b'{"input_tokens": 5',
        b"\xff\xfe",
        b'{"a":' * 100_000,
    ],
)
async def test_an_odd_answer_is_no_count(body: bytes) -> None:
    assert await counted(answers(body)) is None


@pytest.mark.parametrize(("status", "kind"), [(404, "not_found_error"), (429, "rate_limit_error"), (500, "api_error")])
async def test_a_server_that_refuses_or_lacks_it_is_no_failure(status: int, kind: str) -> None:
    assert await counted(refuses(status, kind, "no")) is None
