"""Questions of MCP servers to the user of a host: asked as `elicitation`, answered, refused, withdrawn."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from engine.extensions.mcp.server_asks import NoAnswerError
from phoenix_tui.cli.control.host_questions import answer_of, elicitation
from tests.support.cli import with_claude
from tests.support.control_host import ControlHost, Frame, hosted
from tests.support.loopback import serve
from tests.support.loopback_agents import calls, says
from tests.support.mcp_phoenix import SERVER, servers_json
from tools.mcp_form_fields import BadForm

ASKS = calls("mcp__kinds__form", {})
FLAGS = ("--mcp-config", servers_json(kinds=SERVER), "--allowedTools", "mcp__kinds__form")
SCHEMA: Frame = {"type": "object", "properties": {"name": {"type": "string"}}}


async def asked(host: ControlHost, start: int) -> Frame:
    """The next request about a question, from frame number `start` on."""
    return await host.wait(lambda one: one.get("request", {}).get("subtype") == "elicitation", start)


def answer(host: ControlHost, request: Frame, **response: Any) -> None:
    host.send({"type": "control_response", "response": {"request_id": request["request_id"]} | response})


def result_of_call(frames: list[Frame]) -> str:
    blocks = [block for one in frames if one["type"] == "user" for block in one["message"]["content"]]
    return str(next(block["content"] for block in blocks if block["type"] == "tool_result"))


def states(frames: list[Frame]) -> list[str]:
    return [one["state"] for one in frames if one.get("subtype") == "session_state_changed"]


async def test_the_answer_of_the_host_reaches_the_server_and_a_refused_question_is_cancelled(tmp_path: Path) -> None:
    texts = []
    async with (
        serve(ASKS, says("One."), ASKS, says("Two.")) as server,
        hosted(with_claude(tmp_path, server.url), *FLAGS) as host,
    ):
        for response in (
            {"subtype": "success", "response": {"action": "accept", "content": {"name": "Ada"}}},
            {"subtype": "error", "error": "Unsupported control request subtype: elicitation"},
        ):
            start = len(host.frames)
            host.say("Go")
            answer(host, await asked(host, start), **response)
            await host.wait(lambda one: one.get("state") == "idle", start)
            texts.append(result_of_call(host.frames[start:]))
            assert states(host.frames[start:]) == ["running", "requires_action", "running", "idle"]
        assert await host.close() == 0
    assert ["accept {'name': 'Ada'}" in texts[0], "cancel None" in texts[1]] == [True, True]
    (first, _) = host.requests("elicitation")
    assert first == {
        "subtype": "elicitation",
        "mcp_server_name": "kinds",
        "message": "Your name?",
        "mode": "form",
        "requested_schema": SCHEMA,
    }
    assert not [one for one in host.frames if one["type"] == "control_cancel_request"], "both were answered"


async def test_a_question_is_withdrawn_with_its_run_and_cancelled_once_the_host_is_gone(tmp_path: Path) -> None:
    async with serve(ASKS, ASKS, says("Done.")) as server, hosted(with_claude(tmp_path, server.url), *FLAGS) as host:
        host.say("Go")
        request = await asked(host, 0)
        await host.ask("interrupt")
        withdrawn = await host.wait(lambda one: one["type"] == "control_cancel_request")
        await host.wait(lambda one: one["type"] == "result")
        start = len(host.frames)
        host.say("Again")
        await asked(host, start)
        assert await host.close() == 0
    assert withdrawn["request_id"] == request["request_id"]
    assert "cancel None" in result_of_call(host.frames[start:])
    assert host.messages()[-1]["result"] == "Done."


def test_an_address_goes_with_its_id_and_a_schema_as_the_server_wrote_it() -> None:
    link: Frame = {"message": "Sign\x1b[2J in", "url": "https://a.example/x", "elicitationId": "e1", "mode": "url"}
    assert elicitation("kinds", "url", link) == {
        "subtype": "elicitation",
        "mcp_server_name": "kinds",
        "message": "Sign in",
        "mode": "url",
        "url": "https://a.example/x",
        "elicitation_id": "e1",
    }
    schema: Frame = {"properties": {str(number): {"type": "carrier pigeon"} for number in range(20)}}
    assert elicitation("kinds", "form", {"message": 7, "requestedSchema": schema})["requested_schema"] == schema


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("kind", "params"),
    [
        ("url", {"url": "javascript:1"}),
        ("url", {"url": 7}),
        ("form", {"requestedSchema": []}),
        ("form", {"requestedSchema": {"a": nested(100_000)}}),
    ],
)
def test_what_no_host_should_show_is_declined(kind: str, params: Any) -> None:
    with pytest.raises(BadForm):
        elicitation("kinds", kind, {"message": "m"} | params)


def test_the_action_decides_what_of_an_answer_counts() -> None:
    content: Frame = {"a": "x", "b": 1.5, "c": True, "d": ["x"], "e": None}
    assert answer_of("form", {"action": "accept", "content": content, "more": 1}) == {
        "action": "accept",
        "content": content,
    }
    assert answer_of("form", {"action": "accept"}) == {"action": "accept", "content": {}}
    assert answer_of("url", {"action": "accept", "content": {"a": "x"}}) == {"action": "accept"}
    assert answer_of("form", {"action": "decline", "content": {"a": "x"}}) == {"action": "decline"}


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"action": ["accept"]},
        {"action": "accept", "content": [1]},
        {"action": "accept", "content": {"a": {"b": 1}}},
        {"action": "accept", "content": {"a": [1]}},
        {"action": "accept", "content": {"a": "\ud800"}},
        {"action": "accept", "content": {"a": "x" * 70_000}},
    ],
)
def test_an_answer_that_is_none_is_no_answer(given: Any) -> None:
    with pytest.raises(NoAnswerError):
        answer_of("form", given)
