"""Calls of real providers against servers with a rate limit: none is refused once the limit is known (SPEC UNI-18)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from engine.engine import ConversationOptions
from engine.executor import asking, model_limits
from engine.machine.messages import Role, TextBlock
from engine.machine.states import Idle
from engine.ports import LimitsTold, ModelMessage, ModelReply, ModelRequest, Provider, ProviderError, Unit
from engine.providers.anthropic.anthropic_settings import AnthropicSettings
from engine.providers.anthropic.client import AnthropicProvider
from engine.providers.openai_compatible.client import OpenAiCompatibleProvider
from engine.providers.openai_compatible.openai_settings import OpenAiCompatibleSettings
from engine.records import PermissionMode
from engine.updates import Noticed, Paced, RetryScheduled
from tests.support import loopback_openai
from tests.support.engine import EngineHarness, Providers, engine_harness, run_turn, until
from tests.support.loopback import serve
from tests.support.loopback_limits import Headers, LimitedServer, anthropic_headers, limit_alone, openai_headers

pytestmark = pytest.mark.slow
MINUTE = 0.6
"""Seconds of the minute of these servers."""


@pytest.fixture(autouse=True)
def short_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limits of 0.6 seconds instead of a minute."""
    monkeypatch.setattr(model_limits, "WINDOW", MINUTE)
    monkeypatch.setattr(model_limits, "SLACK", 0.15)
    monkeypatch.setattr(asking, "LEAST_TOLD", 0.05)
    monkeypatch.setattr(model_limits, "DELAY_PER_STEP", 0.1)


def compatible(url: str, **more: Any) -> Provider:
    return OpenAiCompatibleProvider(
        OpenAiCompatibleSettings(name="limited", base_url=f"{url}/v1", api_key="k" * 20, **more)
    )


def claude(url: str, **more: Any) -> Provider:
    return AnthropicProvider(AnthropicSettings(name="limited", base_url=url, api_key="k" * 20, **more))


async def asked(harness: EngineHarness, times: int) -> None:
    """Ask `times` in a new conversation, one after the other."""
    conversation = await harness.engine.create(
        ConversationOptions(harness.cwd, "limited/m", permission_mode=PermissionMode.AUTO)
    )
    await conversation.subscribe(harness.updates.append)
    for number in range(times):
        assert isinstance(await run_turn(conversation, f"message {number}"), Idle)


@pytest.mark.parametrize(
    ("make", "headers", "is_fixed"),
    [
        (compatible, openai_headers, False),
        (compatible, openai_headers, True),
        (compatible, limit_alone, False),
        (claude, anthropic_headers, False),
        (claude, anthropic_headers, True),
    ],
)
async def test_with_the_limit_in_the_headers_no_call_is_refused(
    tmp_path: Path, make: Callable[[str], Provider], headers: Headers, is_fixed: bool
) -> None:
    server = LimitedServer(window=MINUTE, headers=headers, is_fixed=is_fixed)
    async with serve(server) as loopback:
        provider = make(loopback.url)
        async with engine_harness(tmp_path, providers=Providers(provider, "limited")) as harness:
            await asked(harness, 6)
            assert (server.answers, server.refusals) == (6, [])
            assert harness.seen(Paced)
            assert not harness.seen(Noticed)


async def test_without_a_known_limit_the_server_has_to_refuse_first(tmp_path: Path) -> None:
    server = LimitedServer(window=MINUTE)
    async with serve(server) as loopback:
        providers = Providers(compatible(loopback.url), "limited")
        async with engine_harness(tmp_path, providers=providers) as harness:
            await asked(harness, 3)
            assert server.refusals == [2]


async def test_a_limit_of_the_configuration_holds_without_any_header(tmp_path: Path) -> None:
    server = LimitedServer(window=MINUTE)
    async with serve(server) as loopback:
        for make in (compatible, claude):
            server.answers = 0
            providers = Providers(make(loopback.url, tokens_per_minute=server.limit), "limited")
            (tmp_path / make.__name__).mkdir()
            async with engine_harness(tmp_path / make.__name__, providers=providers) as harness:
                await asked(harness, 5)
            assert server.answers == 5
            assert server.refusals == []
            await asyncio.wait_for(_empty(server), 10)


async def _empty(server: LimitedServer) -> None:
    await until(lambda: not server.used)


class Spawning(LimitedServer):
    """Has the first request start three sub-agents, each of which hands in at its second step."""

    def parts(self, body: Any) -> list[bytes]:
        said = json.dumps(body["messages"])
        tools = {tool["function"]["name"] for tool in body.get("tools", ())}
        results = [message for message in body["messages"] if message["role"] == "tool"]
        if "spawn_agents" in tools and not results:
            tasks = json.dumps({"tasks": [{"task": f"TASK {number}"} for number in range(3)]})
            call = loopback_openai.call(0, "spawn_agents", tasks, "s1")
        elif "submit_result" in tools and "TASK" in said:
            call = loopback_openai.call(0, "submit_result", '{"result": "42"}', f"r{self.answers}")
        else:
            return super().parts(body)
        return [loopback_openai.chunk(call, finish="tool_calls")]


async def test_sub_agents_share_the_limit_of_their_model(tmp_path: Path) -> None:
    server = Spawning(window=MINUTE, headers=openai_headers)
    async with serve(server) as loopback:
        providers = Providers(compatible(loopback.url), "limited")
        async with engine_harness(tmp_path, providers=providers) as harness:
            await asked(harness, 1)
            assert server.refusals == []
            assert server.answers == 5  # the parent twice, each of three sub-agents once


async def test_conversations_at_once_share_the_limit_of_their_model(tmp_path: Path) -> None:
    server = LimitedServer(window=MINUTE, headers=openai_headers)
    async with serve(server) as loopback:
        providers = Providers(compatible(loopback.url), "limited")
        async with engine_harness(tmp_path, providers=providers) as harness:
            await asked(harness, 1)
            await asyncio.gather(*(asked(harness, 2) for _ in range(3)))
            assert (server.answers, server.refusals) == (7, [])


async def test_escape_ends_the_wait_at_once_and_nothing_is_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_limits, "WINDOW", 250.0)
    server = LimitedServer(window=250.0, headers=limit_alone)
    async with serve(server) as loopback:
        providers = Providers(compatible(loopback.url), "limited")
        async with engine_harness(tmp_path, providers=providers) as harness:
            await asked(harness, 2)
            conversation = harness.engine.live()[0]
            await conversation.say("third")
            await until(lambda: harness.seen(Paced))
            conversation.cancel()
            assert isinstance(await conversation.wait_idle(), Idle)
            assert server.answers == 2
            assert harness.seen(Paced)[0].seconds == pytest.approx(250, abs=50)


HOSTILE = (
    "x-ratelimit-limit-tokens: -1\r\nx-ratelimit-remaining-tokens: NaN\r\nx-ratelimit-reset-tokens: inf\r\n",
    "x-ratelimit-limit-tokens: 999999999999999\r\nx-ratelimit-remaining-tokens: -5\r\n",
    "x-ratelimit-limit-tokens: 1\r\nx-ratelimit-remaining-tokens: 0\r\nx-ratelimit-reset-tokens: 9999999d\r\n",
    "x-ratelimit-reset-tokens: 1h\r\nx-ratelimit-remaining-requests: 0\r\n",
    "anthropic-ratelimit-tokens-limit: 0\r\nanthropic-ratelimit-tokens-reset: Wed, 99 Foo 2026 25:61:61 GMT\r\n",
    "anthropic-ratelimit-requests-limit: 1\r\nanthropic-ratelimit-requests-reset: 9999-12-31T23:59:59Z\r\n",
    f"x-ratelimit-limit-tokens: {'9' * 5_000}\r\nx-ratelimit-reset-requests: {'1s' * 2_000}\r\n",
    "x-ratelimit-limit-tokens: \xff\xfe\r\nx-ratelimit-limit-requests: 1 2\r\ndate: \xff\r\n",
)


@pytest.mark.parametrize("lines", HOSTILE)
async def test_hostile_headers_fail_no_call_and_delay_it_for_a_minute_at_most(tmp_path: Path, lines: str) -> None:
    server = LimitedServer(limit=10**9, window=MINUTE, headers=lambda _: lines)
    async with serve(server) as loopback:
        providers = Providers(compatible(loopback.url), "limited")
        async with engine_harness(tmp_path, providers=providers) as harness:
            await asked(harness, 3)
            assert server.answers == 3
            assert all(update.seconds <= MINUTE + 0.15 for update in harness.seen(Paced))


async def test_a_hostile_retry_after_delays_other_conversations_for_a_minute_at_most(tmp_path: Path) -> None:
    server = LimitedServer(limit=1, window=MINUTE, retry_after="86400")
    async with serve(server) as loopback:
        provider = compatible(loopback.url)
        async with engine_harness(tmp_path, providers=Providers(provider, "limited")) as harness:
            conversation = await harness.engine.create(ConversationOptions(harness.cwd, "limited/m"))
            await conversation.subscribe(harness.updates.append)
            await conversation.say("one")
            await until(lambda: harness.seen(RetryScheduled))
            conversation.cancel()
            await conversation.wait_idle()
            server.limit = 1_000
            await asked(harness, 1)
            assert server.answers == 1
            assert 0 < max(update.seconds for update in harness.seen(Paced)) <= MINUTE


@pytest.mark.parametrize(
    ("make", "headers"),
    [
        (compatible, openai_headers),
        (claude, anthropic_headers),
        (partial(claude, transport="sdk"), anthropic_headers),
    ],
)
async def test_answers_and_refusals_tell_the_limits(make: Callable[[str], Provider], headers: Headers) -> None:
    server = LimitedServer(limit=500, window=MINUTE, headers=headers)
    request = ModelRequest("m", (), (ModelMessage(Role.USER, (TextBlock("hi"),)),))
    async with serve(server) as loopback:
        provider = make(loopback.url)
        items = [item async for item in provider.stream(request)]
        server.window = 50.0
        with pytest.raises(ProviderError) as refused:
            await anext(provider.stream(request))
        await provider.close()
    assert isinstance(items[0], LimitsTold)
    assert isinstance(items[-1], ModelReply)
    for limits in (items[0].limits, refused.value.limits):
        assert [(limit.unit, limit.limit, limit.remaining) for limit in limits] == [(Unit.TOKENS, 500, 50)]
