"""Refusals for which the user has to do something: what they name."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from engine.machine.messages import Role, TextBlock
from engine.ports import ModelMessage, ModelRequest, ProviderError
from engine.providers.openai_compatible import OpenAiCompatibleProvider, OpenAiCompatibleSettings
from engine.providers.openai_compatible.client import nearest_models
from tests.support.loopback import Talk, serve
from tests.support.loopback_openai import refuses

OFFERED = ["openai/gpt-5.2", "openai/gpt-5-mini", "z-ai/glm-4.7", "anthropic/claude-sonnet-5-5"]
Answer = Callable[[Talk], Awaitable[None]]


def lists(models: list[Any]) -> Answer:
    async def answer(talk: Talk) -> None:
        await talk.plain(200, json.dumps({"data": [{"id": one} for one in models]}).encode())

    return answer


async def failure(*answers: Answer, model: str = "gpt-5.22") -> ProviderError:
    async with serve(*answers) as server:
        asked = OpenAiCompatibleProvider(
            OpenAiCompatibleSettings(
                name="router", base_url=f"{server.url}/v1", api_key="key-0123456789", key_variable="ROUTER_API_KEY"
            )
        )
        with pytest.raises(ProviderError) as caught:
            _ = [
                item
                async for item in asked.stream(ModelRequest(model, (), (ModelMessage(Role.USER, (TextBlock("Hi"),)),)))
            ]
        await asked.close()
    return caught.value


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (404, {"message": "No endpoints found for gpt-5.22."}),
        (404, {"message": "The model `gpt-5.22` does not exist", "code": "model_not_found"}),
        (400, {"message": "gpt-5.22 is not a valid model ID", "code": 400}),
        (400, {"message": "Model gpt-5.22 not found"}),
    ],
)
async def test_an_unknown_model_is_answered_with_the_nearest(status: int, error: dict[str, Any]) -> None:
    said = (await failure(refuses(status, error), lists(OFFERED))).message
    assert said.endswith(" The nearest of its models: router/openai/gpt-5.2, router/openai/gpt-5-mini.")


@pytest.mark.parametrize("second", [lists([]), lists(["zzz"]), refuses(500, {"message": "down"})])
async def test_without_a_near_model_the_refusal_stands_alone(second: Answer) -> None:
    caught = await failure(refuses(404, {"message": "no such model"}), second)
    assert caught.message.endswith("does not know this model or address: no such model")
    assert (caught.kind, caught.retryable) == ("invalid_request", False)


async def test_names_of_a_server_bring_no_line_breaks() -> None:
    caught = await failure(refuses(404, {"message": "no such model"}), lists(["gpt-5.2\n\x1b[31mX", "key-0123456789"]))
    assert "\n" not in caught.message
    assert "\x1b" not in caught.message


@pytest.mark.parametrize(
    ("status", "error", "kind"),
    [
        (402, {"message": "Insufficient credits", "code": 402}, "rate_limit"),
        (402, {"message": "Insufficient Balance", "type": "unknown_error"}, "rate_limit"),
        (429, {"message": "You exceeded your current quota", "code": "insufficient_quota"}, "rate_limit"),
    ],
)
async def test_used_up_credit_is_no_rate_limit_to_wait_for(status: int, error: dict[str, Any], kind: str) -> None:
    caught = await failure(refuses(status, error))
    assert (caught.kind, caught.retryable) == (kind, False)
    assert caught.message.startswith("Credit or quota at 127.0.0.1:")
    assert caught.message.endswith(f" is used up: add some there, or choose another model. It said: {error['message']}")


async def test_a_rejected_key_names_variable_and_host() -> None:
    caught = await failure(refuses(401, {"message": "Invalid API key"}))
    assert caught.message.startswith("API key rejected: set ROUTER_API_KEY to a key that 127.0.0.1:")


def test_the_same_model_of_another_maker_is_nearest() -> None:
    assert nearest_models("gpt-5-mini", OFFERED)[0] == "openai/gpt-5-mini"
    assert nearest_models("glm-4.7", OFFERED) == ["z-ai/glm-4.7"]
    assert nearest_models("\0" * 1000, OFFERED) == []
