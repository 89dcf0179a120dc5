"""The contract with each service of its own dialect: a turn with a tool, against a server as strict as the service."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from msgspec import convert

from engine.machine.messages import Block, Role, TextBlock, ThinkingBlock, ToolResultBlock, ToolUseBlock
from engine.ports import ModelMessage, ModelReply, ModelRequest, UsageTold
from engine.providers.anthropic.to_wire import request_body as anthropic_body
from engine.providers.openai_compatible import OpenAiCompatibleProvider, OpenAiCompatibleSettings
from engine.providers.openai_compatible.dialect import Dialect, fit_schema
from engine.providers.openai_compatible.to_wire import request_body
from engine.providers.wire import carry
from engine.run_options import Effort
from phoenix_tui.config.presets import PRESETS
from tests.support.loopback import Talk, serve
from tests.support.loopback_dialects import deepseek, gemini, mistral, moonshot, openrouter, strict
from tests.support.loopback_openai import DONE, call, chunk
from tools.contract import JsonObject, JsonValue, ToolClass, ToolSpec

Answer = Callable[[Talk], Awaitable[None]]
ENDED = [chunk({"content": "Done."}), chunk({}, "stop"), DONE]
SCHEMA: JsonObject = {
    "type": "object",
    "properties": {
        "at": {"$ref": "#/$defs/point"},
        "kind": {"const": "line"},
        "width": {"type": "number", "exclusiveMinimum": 0, "minimum": 1},
        "not": {"type": "string"},
    },
    "additionalProperties": False,
    "$defs": {"point": {"type": "object", "properties": {"x": {"type": "integer"}}}},
}
SUBSET: JsonObject = {
    "type": "object",
    "properties": {
        "at": {"type": "object", "properties": {"x": {"type": "integer"}}},
        "kind": {"enum": ["line"]},
        "width": {"type": "number", "minimum": 1},
        "not": {"type": "string"},
    },
}


def request(*blocks: Block, schema: JsonObject | None = None, model: str = "m") -> ModelRequest:
    """A question, or with the blocks of an answer its next step."""
    messages = [ModelMessage(Role.USER, (TextBlock("Hi"),))]
    if blocks:
        results = [ToolResultBlock(one.id, (TextBlock("a.py"),)) for one in blocks if isinstance(one, ToolUseBlock)]
        messages += [ModelMessage(Role.ASSISTANT, blocks), ModelMessage(Role.USER, tuple(results))]
    tools = (ToolSpec("bash", "Run.", schema, ToolClass.RUN),) if schema is not None else ()
    return ModelRequest(model, (), tuple(messages), tools, effort=Effort.HIGH)


async def ask(preset: str, *steps: tuple[Answer, ModelRequest]) -> tuple[list[ModelReply], list[dict[str, Any]]]:
    """The replies of the service `preset` names, and the bodies that were sent."""
    replies: list[ModelReply] = []
    async with serve(*(answer for answer, _ in steps)) as server:
        settings = OpenAiCompatibleSettings(
            name="work",
            base_url=f"{server.url}/v1",
            api_key="key-0123456789",
            dialect=convert(dict(PRESETS[preset].quirks), Dialect),
        )
        asked = OpenAiCompatibleProvider(settings)
        try:
            for _, each in steps:
                replies += [item async for item in asked.stream(each) if isinstance(item, ModelReply)]
        finally:
            await asked.close()
    return replies, [json.loads(seen.body) for seen in server.requests]


LS = '{"command": "ls"}'


async def test_mistral_gets_ids_of_nine_characters_with_the_first_request() -> None:
    used = ToolUseBlock("call_from_another_service", "bash", LS)
    replies, bodies = await ask("mistral", (strict(mistral, ENDED), request(used)))
    assert [len(replies), len(bodies)] == [1, 1]
    assert bodies[0]["messages"][1]["tool_calls"][0]["id"] == bodies[0]["messages"][2]["tool_call_id"]


@pytest.mark.parametrize(("preset", "rule"), [("deepseek", deepseek), ("moonshot", moonshot)])
async def test_reasoning_in_text_goes_back_with_the_first_request(preset: str, rule: Any) -> None:
    thinking = [
        chunk({"reasoning_content": "Hm, "}),
        chunk({"reasoning_content": "ls."}),
        chunk(call(0, "bash", LS, "call_1")),
        chunk({}, "tool_calls"),
        DONE,
    ]
    first, _ = await ask(preset, (strict(rule, thinking), request(schema=SCHEMA)))
    _, bodies = await ask(preset, (strict(rule, ENDED), request(*first[0].blocks, schema=SCHEMA)))
    assert bodies[0]["messages"][1]["reasoning_content"] == "Hm, ls."
    assert bodies[0]["thinking"] == {"type": "enabled"}
    assert "tool_choice" not in bodies[0]


PIECES: list[JsonValue] = [
    {"type": "reasoning.text", "text": "Let me ", "format": "anthropic-claude-v1", "index": 0},
    {"type": "reasoning.text", "text": "see.", "format": "anthropic-claude-v1", "index": 0},
    {"type": "reasoning.text", "signature": "c2ln", "format": "anthropic-claude-v1", "index": 0},
    {"type": "reasoning.encrypted", "data": "eHg=", "id": "rs_1", "format": "openai-responses-v1", "index": 1},
]
TEXTS = ("Let me ", "see.", None, None)
WHOLE: list[JsonValue] = [
    {
        "type": "reasoning.text",
        "text": "Let me see.",
        "signature": "c2ln",
        "format": "anthropic-claude-v1",
        "index": 0,
    },
    PIECES[3],
]


async def test_openrouter_gets_its_details_back_and_its_cost_counts() -> None:
    counts = {
        "prompt_tokens": 10,
        "completion_tokens": 5,
        "cost": 0.25,
        "cost_details": {"upstream_inference_cost": 19},
    }
    pieces = [chunk({"reasoning": text, "reasoning_details": [one]}) for text, one in zip(TEXTS, PIECES, strict=True)]
    calls = [chunk(call(0, "bash", LS, "call_1")), chunk({}, "tool_calls"), chunk(usage=counts), DONE]
    rule = openrouter(WHOLE)
    first, opened = await ask("openrouter", (strict(rule, [*pieces, *calls]), request(schema=SCHEMA)))
    assert (first[0].cost_usd, opened[0]["reasoning"]) == (0.25, {"effort": "high"})
    assert first[0].blocks[0] == ThinkingBlock("Let me see.", "")
    replies, bodies = await ask("openrouter", (strict(rule, ENDED), request(*first[0].blocks, schema=SCHEMA)))
    assert [len(replies), len(bodies)] == [1, 1]
    assert bodies[0]["messages"][1]["reasoning_details"] == WHOLE


@pytest.mark.parametrize(
    ("usage", "cost"),
    [
        ({"cost": 0}, 0.0),
        ({"cost": 0.01, "is_byok": True, "cost_details": {"upstream_inference_cost": 0.2}}, 0.21),
        ({"cost": -1}, None),
        ({"cost": "0.5"}, None),
        ({"cost": "free"}, None),
        ({"cost": 1e300}, None),
        ({}, None),
    ],
)
async def test_only_a_plausible_cost_is_believed(usage: dict[str, Any], cost: float | None) -> None:
    counts = chunk(usage={"prompt_tokens": 10, "completion_tokens": 5, **usage})
    pieces = [chunk({"content": "Hi."}), chunk({}, "stop"), counts, DONE]
    replies, _ = await ask("openrouter", (strict(lambda _: None, pieces), request()))
    assert replies[0].cost_usd == pytest.approx(cost)
    others, _ = await ask("groq", (strict(lambda _: None, pieces), request()))
    assert others[0].cost_usd is None


async def test_a_cost_is_told_before_the_reply_ends() -> None:
    counts = chunk({}, "stop", usage={"prompt_tokens": 10, "completion_tokens": 5, "cost": 0.5})
    async with serve(strict(lambda _: None, [chunk({"content": "Hi."}), counts, DONE])) as server:
        settings = OpenAiCompatibleSettings(base_url=f"{server.url}/v1", dialect=Dialect(usage_cost=True))
        asked = OpenAiCompatibleProvider(settings)
        told = [item.cost_usd async for item in asked.stream(request()) if isinstance(item, UsageTold)]
        await asked.close()
    assert told == [0.5]


SIGNATURE: JsonObject = {"google": {"thought_signature": "c2lnbmF0dXJl"}}


def signed(index: int | None, call_id: str, extra: Any = None) -> bytes:
    delta = call(index, "bash", LS, call_id)
    if extra is not None:
        delta["tool_calls"][0]["extra_content"] = extra
    return chunk(delta)


@pytest.mark.parametrize("preset", ["gemini", "vertex"])
@pytest.mark.parametrize("index", [0, None])
async def test_gemini_gets_the_signatures_of_its_calls_and_schemas_of_its_subset(
    preset: str, index: int | None
) -> None:
    second = None if index is None else 1
    calls = [signed(index, "call_1", SIGNATURE), signed(second, "call_2"), chunk({}, "tool_calls"), DONE]
    first, opened = await ask(preset, (strict(gemini, calls), request(schema=SCHEMA)))
    assert opened[0]["tools"][0]["function"]["parameters"] == SUBSET
    replies, bodies = await ask(preset, (strict(gemini, ENDED), request(*first[0].blocks, schema=SCHEMA)))
    assert [len(replies), len(bodies)] == [1, 1]
    sent = bodies[0]["messages"][1]["tool_calls"]
    assert [one.get("extra_content") for one in sent] == [SIGNATURE, None]


async def test_gemini_takes_over_from_a_model_that_signs_nothing() -> None:
    used = ToolUseBlock("toolu_1", "bash", LS)
    _, bodies = await ask("gemini", (strict(gemini, ENDED), request(used)))
    extra = bodies[0]["messages"][1]["tool_calls"][0]["extra_content"]
    assert extra == {"google": {"thought_signature": "skip_thought_signature_validator"}}


async def test_a_gateway_to_gemini_teaches_signatures_and_subset_by_its_refusals() -> None:
    used = ToolUseBlock("toolu_1", "bash", LS)
    lessons = [strict(gemini, ENDED)] * 3
    async with serve(*lessons) as server:
        asked = OpenAiCompatibleProvider(OpenAiCompatibleSettings(name="work", base_url=f"{server.url}/v1"))
        items = [item async for item in asked.stream(request(used, schema=SCHEMA))]
        await asked.close()
    assert isinstance(items[-1], ModelReply)
    assert len(server.requests) == 3


def test_a_gateway_hands_the_subset_to_gemini_without_a_refusal() -> None:
    body = request_body(request(schema=SCHEMA, model="google/gemini-3-pro"), Dialect())
    assert json.loads(json.dumps(body))["tools"][0]["function"]["parameters"] == SUBSET
    assert request_body(request(schema=SCHEMA, model="openai/gpt-5"), Dialect())["tools"] != body["tools"]


def test_what_one_service_wants_back_never_reaches_another() -> None:
    kept = (carry("reasoning_details", WHOLE), carry("extra_content", [SIGNATURE]))
    asked = request(ThinkingBlock("Hm.", ""), *kept, ToolUseBlock("toolu_1", "bash", LS))
    for dialect in (Dialect(), Dialect(reasoning_replay="reasoning_content"), Dialect(replay_signed=True)):
        written = json.dumps(request_body(asked, dialect))
        assert "c2ln" not in written
    assert "c2ln" not in json.dumps(anthropic_body(asked))


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#"},
        {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}},
        {"properties": {"a": {"$ref": "#/nowhere"}}},
        {"$ref": "https://elsewhere.example/schema"},
        {"properties": {"x": {"properties": {"a": {"$ref": "#"}, "b": {"$ref": "#"}, "c": {"$ref": "#"}}}}},
        {"properties": []},
        {"$ref": 5},
    ],
)
def test_a_schema_that_refers_to_itself_ends(schema: JsonObject) -> None:
    found = fit_schema(schema, "gemini")
    text = json.dumps(found)
    assert isinstance(found, dict)
    assert len(text) < 2_000_000
    assert text.count("{") < 50_000


@pytest.mark.parametrize("extra", [5, "x", [], {}, {"google": None}, [[[[1]]]]])
async def test_a_signature_of_any_form_costs_no_reply(extra: Any) -> None:
    calls = [signed(0, "call_1", extra), chunk({}, "tool_calls"), DONE]
    replies, _ = await ask("gemini", (strict(lambda _: None, calls), request(schema=SCHEMA)))
    assert isinstance(replies[0].blocks[-1], ToolUseBlock)
    again, _ = await ask("gemini", (strict(lambda _: None, ENDED), request(*replies[0].blocks)))
    assert again[0].blocks == (TextBlock("Done."),)


async def test_openrouter_answers_for_details_of_another_model_once() -> None:
    kept = carry("reasoning_details", [{"type": "reasoning.text", "text": "Hm.", "signature": "of another"}])
    asked = request(kept, ToolUseBlock("call_1", "bash", LS))
    async with serve(*[strict(openrouter(None), ENDED)] * 2) as server:
        dialect = convert(dict(PRESETS["openrouter"].quirks), Dialect)
        asker = OpenAiCompatibleProvider(OpenAiCompatibleSettings(base_url=f"{server.url}/v1", dialect=dialect))
        items = [item async for item in asker.stream(asked)]
        await asker.close()
    assert isinstance(items[-1], ModelReply)
    bodies = [json.loads(seen.body) for seen in server.requests]
    assert ["reasoning_details" in body["messages"][1] for body in bodies] == [True, False]
