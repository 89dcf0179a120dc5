"""Requests to the Messages API, as values."""

from __future__ import annotations

import json
from typing import Any

import pytest

from engine.machine.messages import (
    ImageBlock,
    Role,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
)
from engine.ports import ImageBytes, ModelMessage, ModelRequest
from engine.providers.anthropic.to_wire import encode_request, request_body
from tests.support.loopback_anthropic import TINY_PNG, violations
from tools.contract import ToolClass, ToolSpec

HEADERS = {"anthropic-version": "x", "x-api-key": "x"}
TOOL = ToolSpec("bash", "Run.", {"type": "object"}, ToolClass.RUN)
CACHED = {"type": "ephemeral"}
PICTURE = ImageBlock("img1", 1, 1)
ROUND = (
    ModelMessage(Role.USER, (TextBlock("Look"), PICTURE)),
    ModelMessage(
        Role.ASSISTANT,
        (
            ThinkingBlock("hm", "sig"),
            ThinkingBlock("", "opaque", redacted=True),
            TextBlock("  "),
            ToolUseBlock("a", "bash", '{"command": "ls"}'),
            ToolUseBlock("b", "read_image", "{broken"),
        ),
    ),
    ModelMessage(
        Role.USER,
        (
            TextBlock("and then?"),
            ToolResultBlock("a", (TextBlock(""),), is_error=True),
            ToolResultBlock("b", (TextBlock("a picture"), ImageBlock("img2", 1, 1))),
        ),
    ),
)


def request(**more: Any) -> ModelRequest:
    fields: dict[str, Any] = {
        "model": "claude-sonnet-5-5",
        "system": ("static", "moving"),
        "messages": ROUND,
        "tools": (TOOL, TOOL),
        "images": {"img1": ImageBytes("image/jpeg", TINY_PNG), "img2": ImageBytes("image/png", TINY_PNG)},
    }
    return ModelRequest(**{**fields, **more})


def written(asked: ModelRequest, budget: int = 0, **more: Any) -> Any:
    body = json.loads(encode_request(asked, budget, **more))
    assert violations(body, HEADERS) == []
    return body


def test_images_stand_before_text_and_results_before_both() -> None:
    messages = written(request())["messages"]
    assert [block["type"] for block in messages[0]["content"]] == ["image", "text"]
    assert [block["type"] for block in messages[2]["content"]] == ["tool_result", "tool_result", "text", "text"]
    assert [part["type"] for part in messages[2]["content"][1]["content"]] == ["image", "text"]
    assert messages[0]["content"][0]["source"]["media_type"] == "image/png"


def test_thinking_is_replayed_unchanged_and_blank_text_left_out() -> None:
    assert written(request())["messages"][1]["content"] == [
        {"type": "thinking", "thinking": "hm", "signature": "sig"},
        {"type": "redacted_thinking", "data": "opaque"},
        {"type": "tool_use", "id": "a", "name": "bash", "input": {"command": "ls"}},
        {"type": "tool_use", "id": "b", "name": "read_image", "input": {"invalid_json": "{broken"}},
    ]


def test_an_empty_error_result_says_that_there_is_no_output() -> None:
    assert written(request())["messages"][2]["content"][0] == {
        "type": "tool_result",
        "tool_use_id": "a",
        "content": [{"type": "text", "text": "(no output)"}],
        "is_error": True,
    }


def test_four_cache_markers_stand_on_static_prompt_tools_and_the_last_two_user_messages() -> None:
    body = written(request())
    assert [block.get("cache_control") for block in body["system"]] == [CACHED]
    assert [tool.get("cache_control") for tool in body["tools"]] == [None, CACHED]
    assert body["messages"][0]["content"][-1]["cache_control"] == CACHED
    assert body["messages"][2]["content"][-2]["cache_control"] == CACHED
    assert json.dumps(body).count("cache_control") == 4


def test_what_changes_between_calls_is_behind_the_last_marker_and_in_no_later_request() -> None:
    asked, changed = written(request()), written(request(system=("static", "Permission mode: auto.")))
    assert changed["messages"][-1]["content"].pop() == {"type": "text", "text": "Permission mode: auto."}
    assert "cache_control" not in asked["messages"][-1]["content"].pop()
    assert asked == changed
    later = request(messages=(*ROUND, ModelMessage(Role.ASSISTANT, (TextBlock("ok"),)), ROUND[0]))
    kept = written(later)["messages"][len(ROUND) - 1]["content"]
    assert kept == asked["messages"][-1]["content"]


@pytest.mark.parametrize(
    ("model", "asked", "limit"),
    [
        ("claude-sonnet-5-5", None, 128_000),
        ("claude-sonnet-4-5", None, 64_000),
        ("somebody-else", None, 8_192),
        ("claude-sonnet-5-5", 300, 300),
    ],
)
def test_the_output_limit_is_the_models_unless_asked_otherwise(model: str, asked: int | None, limit: int) -> None:
    assert written(request(model=model, max_tokens=asked))["max_tokens"] == limit


@pytest.mark.parametrize(
    ("model", "budget", "max_tokens", "thinking"),
    [
        ("claude-sonnet-5-5", 0, None, {"type": "adaptive", "display": "summarized"}),
        ("claude-haiku-5-5", 0, None, None),
        ("claude-haiku-5-5", 4_000, None, {"type": "adaptive", "display": "summarized"}),
        ("claude-sonnet-4-5", 0, None, None),
        ("claude-sonnet-4-5", 4_000, None, {"type": "enabled", "budget_tokens": 4_000}),
        ("claude-sonnet-4-5", 4_000, 2_000, {"type": "enabled", "budget_tokens": 1_999}),
        ("claude-sonnet-4-5", 4_000, 500, None),
        ("somebody-else", 4_000, None, None),
    ],
)
def test_thinking_is_asked_for_in_the_way_of_the_model(
    model: str, budget: int, max_tokens: int | None, thinking: object
) -> None:
    assert written(request(model=model, max_tokens=max_tokens), budget).get("thinking") == thinking


def test_a_request_never_ends_with_the_assistant_nor_holds_an_empty_message() -> None:
    messages = written(request(messages=(ROUND[0], ModelMessage(Role.ASSISTANT, (ThinkingBlock("x", ""),)))))[
        "messages"
    ]
    assert messages[1]["content"] == [{"type": "text", "text": "(no text)"}]
    assert messages[2]["content"][0]["text"] == "Continue."


def test_the_oldest_images_make_room_in_a_request_that_is_too_large() -> None:
    big = ImageBytes("image/png", TINY_PNG + bytes(60_000))
    asked = request(images={"img1": big, "img2": big})
    body = written(asked, limit=100_000)
    assert [block["text"] for block in body["messages"][0]["content"]] == ["Look", "[image omitted]"]
    assert body["messages"][2]["content"][1]["content"][0]["type"] == "image"
    none_left = written(asked, limit=50_000)
    assert "base64" not in json.dumps(none_left)


def test_an_image_that_is_gone_is_said_to_be_omitted() -> None:
    body = written(request(images={}))
    assert "base64" not in json.dumps(body)


def test_odd_characters_leave_as_valid_utf8() -> None:
    body = written(request(messages=(ModelMessage(Role.USER, (TextBlock("a\ud800\x00b"),)),)))
    assert body["messages"][0]["content"][0]["text"] == "a?\x00b"


def test_a_request_without_tools_and_system_names_neither() -> None:
    body = request_body(request(system=(), tools=()))
    assert "tools" not in body
    assert "system" not in body
