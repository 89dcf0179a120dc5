"""Statements of servers on this machine about their models: queried before the first request, once, without delaying
it.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from engine.machine.messages import Role, TextBlock
from engine.ports import ModelMessage, ModelReply, ModelRequest
from engine.providers.openai_compatible import OpenAiCompatibleProvider, OpenAiCompatibleSettings
from tests.support.loopback import Answer, Loopback, Talk, serve
from tests.support.loopback_openai import DONE, chunk, plays

HELLO = ModelRequest("qwen", (), (ModelMessage(Role.USER, (TextBlock("Hi"),)),))
ANSWER = plays([chunk({"content": "Hi."}), chunk({}, "stop"), DONE])
TRAINED = {"id": "qwen.gguf", "meta": {"n_ctx_train": 32_768}}
RUNS = {"id": "qwen.gguf", "meta": {"n_ctx": 4_096, "n_ctx_train": 32_768}}


def server(models: Any, props: Any = None, status: int = 200) -> Answer:
    """Lists `models`, tells `props` of itself, answers everything else."""

    async def answer(talk: Talk) -> None:
        if talk.seen.path == "/v1/models":
            await talk.plain(status, json.dumps(models).encode())
        elif talk.seen.path == "/props":
            await talk.plain(200 if props is not None else 404, json.dumps(props).encode())
        else:
            await ANSWER(talk)

    return answer


@asynccontextmanager
async def asking(answer: Answer, **more: Any) -> AsyncGenerator[tuple[OpenAiCompatibleProvider, Loopback], None]:
    async with serve(answer) as loopback:
        given: dict[str, Any] = {"name": "llamacpp", "key_variable": "", **more}
        asked = OpenAiCompatibleProvider(OpenAiCompatibleSettings(base_url=f"{loopback.url}/v1", **given))
        try:
            yield asked, loopback
        finally:
            await asked.close()


async def answered(asked: OpenAiCompatibleProvider) -> bool:
    items = [item async for item in asked.stream(HELLO)]
    return isinstance(items[-1], ModelReply) and items[-1].blocks == (TextBlock("Hi."),)


def paths(loopback: Loopback) -> list[str]:
    return [seen.path for seen in loopback.requests]


async def test_the_window_is_asked_once_ahead_of_the_first_request() -> None:
    async with asking(server({"data": [RUNS]})) as (asked, loopback):
        assert asked.describe("qwen").note == "context window estimated"
        assert await answered(asked)
        assert await answered(asked)
        info = asked.describe("qwen")
        assert (info.context_window, info.note) == (4_096, "")
        assert paths(loopback) == ["/v1/models", "/v1/chat/completions", "/v1/chat/completions"]


async def test_the_first_key_asks_for_it_too() -> None:
    async with asking(server({"data": [RUNS]})) as (asked, loopback):
        await asked.warm()
        assert asked.describe("any name").context_window == 4_096
        await asked.warm()
        assert paths(loopback) == ["/v1/models"]


async def test_an_older_server_names_the_window_it_runs_with_elsewhere() -> None:
    async with asking(server({"data": [TRAINED]}, {"default_generation_settings": {"n_ctx": 8_192}})) as (asked, _):
        assert [(info.name, info.context_window) for info in await asked.models()] == [("qwen.gguf", 8_192)]


@pytest.mark.parametrize(
    "props", [None, [], {"default_generation_settings": None}, {"default_generation_settings": {"n_ctx": "many"}}, "x"]
)
async def test_a_server_that_says_nothing_of_itself_has_the_window_of_its_model(props: Any) -> None:
    async with asking(server({"data": [TRAINED]}, props)) as (asked, _):
        assert [info.context_window for info in await asked.models()] == [32_768]


@pytest.mark.parametrize("models", [{}, [], "x", {"data": None}, {"data": [{"id": "a"}, {"id": "b"}]}, {"data": [7]}])
async def test_a_list_that_says_nothing_costs_no_answer(models: Any) -> None:
    async with asking(server(models)) as (asked, _):
        assert await answered(asked)
        assert asked.describe("qwen").note == "context window estimated"


async def test_a_list_that_is_refused_is_not_asked_for_again() -> None:
    async with asking(server({"error": "no"}, status=404)) as (asked, loopback):
        assert await answered(asked)
        assert await answered(asked)
        assert paths(loopback).count("/v1/models") == 1


async def test_a_server_that_loads_its_model_is_asked_again() -> None:
    async with asking(server({"error": {"message": "Loading model", "code": 503}}, status=503)) as (asked, loopback):
        assert await answered(asked)
        assert await answered(asked)
        assert paths(loopback).count("/v1/models") == 2


@pytest.mark.slow
async def test_a_list_that_never_comes_holds_the_first_request_up_for_a_moment_only() -> None:
    async def silent(talk: Talk) -> None:
        await (talk.stall if talk.seen.path == "/v1/models" else lambda: ANSWER(talk))()

    async with asking(silent) as (asked, loopback):
        assert await answered(asked)
        assert await answered(asked)
        assert paths(loopback).count("/v1/models") == 1


@pytest.mark.parametrize("more", [{"name": "openai", "api_key": "k"}, {"name": "gateway"}, {"window": 9_000}])
async def test_others_are_asked_nothing_ahead(more: dict[str, Any]) -> None:
    async with asking(server({"data": [RUNS]}), **more) as (asked, loopback):
        await asked.warm()
        assert await answered(asked)
        assert paths(loopback) == ["/v1/chat/completions"]


@pytest.mark.parametrize(
    ("takes", "vision"), [(["text"], False), (["text", "image"], True), ([], None), (None, None), ("image", None)]
)
async def test_whether_it_takes_images_is_what_the_server_says(takes: Any, vision: bool | None) -> None:
    async with asking(server({"data": [RUNS | {"architecture": {"input_modalities": takes}}]})) as (asked, _):
        await asked.warm()
        assert asked.describe("qwen").vision is vision
