"""Data of gateways to other APIs: the words and counts of LiteLLM 1.106.2, as it sent them (docs/counterparts.md)."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from engine.machine.messages import Role, TextBlock, ThinkingBlock, ToolResultBlock, ToolUseBlock, Usage
from engine.ports import ModelMessage, ModelReply, ModelRequest, ProviderError
from engine.providers.anthropic import AnthropicProvider, AnthropicSettings
from engine.providers.http_transport import seconds_named
from engine.providers.openai_compatible import OpenAiCompatibleProvider, OpenAiCompatibleSettings
from tests.support.loopback import Loopback, Talk, serve
from tests.support.loopback_openai import DONE, call, chunk, plays, refuses

HELLO = ModelRequest("claude-sonnet-5-5", (), (ModelMessage(Role.USER, (TextBlock("Hi"),)),))
COOLING = "No deployments available for selected model, Try again in 5 seconds. All deployments are in cooldown."
ENDED = [chunk({}, "stop"), DONE]


@asynccontextmanager
async def gateway(loopback: Loopback) -> AsyncGenerator[OpenAiCompatibleProvider, None]:
    asked = OpenAiCompatibleProvider(OpenAiCompatibleSettings(base_url=f"{loopback.url}/v1", api_key="sk-gateway"))
    try:
        yield asked
    finally:
        await asked.close()


async def ask(
    *answers: Callable[[Talk], Awaitable[None]], requests: tuple[ModelRequest, ...] = (HELLO,)
) -> tuple[list[ModelReply], list[dict[str, Any]]]:
    """The replies to `requests`, and the bodies that were sent for them."""
    async with serve(*answers) as loopback:
        async with gateway(loopback) as asked:
            replies = [[item async for item in asked.stream(each)][-1] for each in requests]
        return [each for each in replies if isinstance(each, ModelReply)], [
            json.loads(seen.body) for seen in loopback.requests
        ]


async def failure(answer: Callable[[Talk], Awaitable[None]]) -> ProviderError:
    with pytest.raises(ProviderError) as caught:
        await ask(answer)
    return caught.value


@pytest.mark.parametrize(
    "more",
    [
        {"prompt_tokens_details": {"cached_tokens": 12, "cache_write_tokens": 52, "cache_creation_tokens": 52}},
        {"prompt_tokens_details": {"cached_tokens": 12, "cache_creation_tokens": 52}},
        {"prompt_tokens_details": {"cached_tokens": 12, "cache_write_tokens": 52}},
        {"cache_read_input_tokens": 12, "cache_creation_input_tokens": 52},
        {"prompt_cache_hit_tokens": 12, "prompt_tokens_details": {"cache_write_tokens": "52"}},
    ],
)
async def test_what_was_written_to_a_cache_is_no_plain_input(more: dict[str, Any]) -> None:
    counts = chunk(usage={"prompt_tokens": 1092, "completion_tokens": 6, **more})
    replies, _ = await ask(plays([chunk({"content": "Hi."}), chunk({}, "stop"), counts, DONE]))
    assert replies[0].usage == Usage(1028, 6, 52, 12)


async def test_a_prompt_smaller_than_its_parts_is_no_negative_count() -> None:
    counts = chunk(usage={"prompt_tokens": 5, "completion_tokens": 6, "cache_read_input_tokens": 9})
    replies, _ = await ask(plays([chunk({"content": "Hi."}), chunk({}, "stop"), counts, DONE]))
    assert replies[0].usage == Usage(0, 6, 0, 9)


@pytest.mark.parametrize(
    ("error", "kind", "retryable"),
    [
        ({"message": "litellm.InternalServerError: Overloaded", "type": None, "code": "500"}, "server", True),
        (
            {"message": "litellm.RateLimitError: Slow down.", "type": "throttling_error", "code": "429"},
            "rate_limit",
            True,
        ),
        ({"message": "litellm.AuthenticationError: Incorrect key", "type": None, "code": "401"}, "auth", False),
        ({"message": "no", "type": "authentication_error", "code": "1301"}, "server", True),
        ({"message": "no", "type": "invalid_request_error", "code": "0400"}, "server", True),
        ({"message": "no", "type": "invalid_request_error", "code": "400"}, "invalid_request", False),
        ({"message": "too much", "type": "invalid_request_error", "code": 99999}, "invalid_request", False),
    ],
)
async def test_a_status_in_quotes_is_a_status_also_in_the_middle_of_a_stream(
    error: dict[str, Any], kind: str, retryable: bool
) -> None:
    midway = f"data: {json.dumps({'error': error})}\n\n".encode()
    caught = await failure(plays([chunk({"content": "Half of "}), midway]))
    assert (caught.kind, caught.retryable) == (kind, retryable)


async def test_a_key_that_a_gateway_without_a_database_does_not_know_is_rejected() -> None:
    error = {"message": "No connected db.", "type": "no_db_connection", "param": None, "code": "400"}
    caught = await failure(refuses(400, error))
    assert (caught.kind, caught.retryable) == ("auth", False)
    assert caught.message.startswith("API key rejected: set OPENAI_API_KEY to a key that 127.0.0.1:")
    assert caught.message.endswith(" accepts. It said: No connected db.")


async def test_a_spent_budget_is_not_asked_for_again() -> None:
    error = {"message": "Budget has been exceeded! Current cost: 2.1, Max budget: 2.0", "type": "budget_exceeded"}
    caught = await failure(refuses(429, error | {"code": "429"}))
    assert (caught.kind, caught.retryable) == ("rate_limit", False)
    assert "Current cost: 2.1, Max budget: 2.0" in caught.message


async def test_the_wait_that_stands_in_the_words_alone_is_kept() -> None:
    body = json.dumps({"type": "error", "error": {"type": "rate_limit_error", "message": COOLING}}).encode()

    async def cools(talk: Talk) -> None:
        await talk.plain(429, body)

    async with serve(cools) as loopback:
        asked = AnthropicProvider(AnthropicSettings(api_key="sk-gateway", base_url=loopback.url))
        with pytest.raises(ProviderError) as caught:
            _ = [item async for item in asked.stream(HELLO)]
        await asked.close()
    assert (caught.value.kind, caught.value.retry_after) == ("rate_limit", 5.0)


async def test_a_wait_in_a_header_counts_before_that_in_the_words() -> None:
    caught = await failure(refuses(429, {"message": COOLING, "code": "429"}, "retry-after: 7\r\n"))
    assert caught.retry_after == 7.0


@pytest.mark.parametrize(
    ("words", "seconds"),
    [
        ("Rate limit reached for gpt-5. Please try again in 1.7s. Visit the site.", 1.7),
        ("Please try again in 20ms.", 0.02),
        ("Please try again in 6m0.5s.", 360.5),
        ("Please retry after 32 seconds.", 32.0),
        ("Try again in 1 minute 30 seconds", 90.0),
        ("try again in 1h2m3s", 3_723.0),
        ("try again in 999999999h", 86_400.0),
        ("try again in a while", 0.0),
        ("try again in -5 seconds", 0.0),
        ("try again later, in 5 seconds", 0.0),
        ("try again in " * 100_000, 0.0),
        ("try again in " + "1 " * 100_000, 0.0),
        ("try again in " + "1s" * 100_000, 3.0),
        ("", 0.0),
    ],
)
def test_a_wait_in_words_is_a_number_with_a_unit(words: str, seconds: float) -> None:
    assert seconds_named(words) == pytest.approx(seconds)


def thought(text: str, signature: str = "", **more: str) -> bytes:
    """A piece of Claude's reasoning as LiteLLM tells it: twice, the text beside the block."""
    block = {"type": "thinking", "thinking": text, **({"signature": signature} if signature else {}), **more}
    return chunk({"reasoning_content": text, "thinking_blocks": [block], "content": "", "role": "assistant"})


SIGNED = [
    thought("Let me "),
    thought("see."),
    thought("", "sig-1"),
    chunk({"thinking_blocks": [{"type": "redacted_thinking", "data": "zz"}]}),
    thought("More.", "sig-2"),
    chunk(call(0, "bash", '{"command": "ls"}', "toolu_1")),
    chunk({}, "tool_calls"),
    DONE,
]
THOUGHTS = (
    ThinkingBlock("Let me see.", "sig-1"),
    ThinkingBlock("", "zz", redacted=True),
    ThinkingBlock("More.", "sig-2"),
)
BACK = [
    {"type": "thinking", "thinking": "Let me see.", "signature": "sig-1"},
    {"type": "redacted_thinking", "data": "zz"},
    {"type": "thinking", "thinking": "More.", "signature": "sig-2"},
]
AFTER = ModelRequest(
    HELLO.model,
    (),
    (
        *HELLO.messages,
        ModelMessage(Role.ASSISTANT, (*THOUGHTS, ToolUseBlock("toolu_1", "bash", '{"command": "ls"}'))),
        ModelMessage(Role.USER, (ToolResultBlock("toolu_1", (TextBlock("a.py"),)),)),
    ),
)


def sent_back(bodies: list[dict[str, Any]]) -> list[Any]:
    """Signed reasoning in the answer of each request that has one."""
    return [message.get("thinking_blocks") for body in bodies for message in body["messages"][1:2]]


async def test_reasoning_that_came_signed_goes_back_signed() -> None:
    replies, bodies = await ask(plays(SIGNED), plays([chunk({"content": "Done."}), *ENDED]), requests=(HELLO, AFTER))
    assert replies[0].blocks[:3] == THOUGHTS
    assert sent_back(bodies) == [BACK]


async def test_several_signed_blocks_in_one_event_stay_apart() -> None:
    whole = {"reasoning_content": "Let me see.More.", "thinking_blocks": BACK, "content": "Hi."}
    replies, _ = await ask(plays([chunk(whole), *ENDED]))
    assert replies[0].blocks == (*THOUGHTS, TextBlock("Hi."))


async def test_a_server_that_signs_nothing_gets_no_signature() -> None:
    plain = plays([chunk({"reasoning_content": "Hm.", "content": "Hi."}), *ENDED])
    replies, bodies = await ask(plain, requests=(HELLO, AFTER))
    assert replies[0].blocks == (ThinkingBlock("Hm.", ""), TextBlock("Hi."))
    assert sent_back(bodies) == [None]


async def test_reasoning_of_another_model_is_left_out_once_it_was_refused() -> None:
    refused = refuses(400, {"message": "Invalid `signature` in `thinking` block", "code": "400"})
    answers = (plays(SIGNED), refused, plays(SIGNED), plays(SIGNED))
    replies, bodies = await ask(*answers, requests=(HELLO, AFTER, AFTER))
    assert len(replies) == 3
    assert sent_back(bodies) == [BACK, None, None]
