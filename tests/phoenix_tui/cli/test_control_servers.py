"""MCP servers inside a host and outside of it: tools, policies, requests about them, and their questions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from engine.extensions.mcp.server_asks import NoAnswerError
from phoenix_tui.cli.control.servers import NO_POLICY, ServerPolicy, check_answer, elicitation, read_policy
from tests.support.cli import with_claude
from tests.support.control_host import ControlHost, Frame, hosted
from tests.support.journeys import Claude, calls, says
from tests.support.loopback import Loopback, serve
from tests.support.mcp_phoenix import SERVER, servers_json
from tools.mcp_form import BadForm

CONFIG = (
    "--mcp-config",
    json.dumps({"mcpServers": {"calc": {"type": "sdk", "name": "calc"}}}),
)
ALLOWED = ("--allowedTools", "mcp__calc__add")
ADDS = calls("mcp__calc__add", a=2, b=3)
SCHEMA = {"type": "object", "properties": {"a": {"type": "number"}, "b": {"type": "number"}}}
TOOL = {"name": "add", "description": "Add two numbers", "inputSchema": SCHEMA, "annotations": {"readOnlyHint": True}}


def server_with(result: Any, tools: Any = (TOOL,)) -> Any:
    """The answers of a server with one tool."""

    def answer(request: Frame) -> Frame | None:
        message = request["message"]
        results = {
            "initialize": {"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": {"name": "calc"}},
            "tools/list": {"tools": list(tools)},
            "tools/call": result(message["params"]["arguments"]) if message["method"] == "tools/call" else {},
        }
        given = {"jsonrpc": "2.0", "result": results.get(message["method"], {})}
        return {"mcp_response": given | ({"id": message["id"]} if "id" in message else {})}

    return answer


def adds(args: Frame) -> Frame:
    return {"content": [{"type": "text", "text": f"sum {args['a'] + args['b']}"}]}


def bodies(server: Loopback) -> list[Any]:
    return [json.loads(one.body) for one in server.requests if one.method == "POST"]


async def test_a_tool_of_the_host_is_offered_called_and_its_result_read(claude: Claude) -> None:
    phoenix, server = await claude(ADDS, says("Five."))
    async with hosted(phoenix, *CONFIG, *ALLOWED, mcp_message=server_with(adds)) as host:
        await host.ask("initialize", hooks=None)
        frames = await host.turn("Add")
        status = await host.ask("mcp_status")
    first, second = bodies(server)
    assert [one["message"]["method"] for one in host.requests("mcp_message")] == [
        "initialize",
        "notifications/initialized",
        "tools/list",
        "tools/call",
    ]
    assert "mcp__calc__add" in frames[0]["tools"]
    assert frames[0]["mcp_servers"] == [{"name": "calc", "status": "connected"}]
    [offered] = [one for one in first["tools"] if one["name"] == "mcp__calc__add"]
    assert (offered["description"], offered["input_schema"]["properties"]["a"]) == (
        "Add two numbers",
        {"type": "number"},
    )
    assert "sum 5" in json.dumps(second["messages"][-1])
    [calc] = status["response"]["mcpServers"]
    assert (calc["status"], calc["tools"][0]["annotations"]["readOnly"]) == ("connected", True)
    assert frames[-1]["result"] == "Five."


async def test_a_tool_of_the_host_needs_permission_like_a_command(claude: Claude) -> None:
    phoenix, _ = await claude(ADDS, says("I see."))
    async with hosted(phoenix, *CONFIG, mcp_message=server_with(adds)) as host:
        frames = await host.turn("Add")
    assert [one["message"]["method"] for one in host.requests("mcp_message")].count("tools/call") == 0
    assert [one["tool_name"] for one in frames[-1]["permission_denials"]] == ["mcp__calc__add"]


async def test_a_whole_server_is_allowed_by_its_name(tmp_path: Path) -> None:
    async with serve(ADDS, says("Five.")) as server:
        flags = (*CONFIG, "--allowedTools", "mcp__calc")
        async with hosted(with_claude(tmp_path, server.url), *flags, mcp_message=server_with(adds)) as host:
            frames = await host.turn("Add")
    assert frames[-1]["permission_denials"] == []


@pytest.mark.parametrize(
    ("result", "words"),
    [
        ({"content": [{"type": "text", "text": "no"}], "isError": True}, "no"),
        ({"content": []}, "no output"),
        ({"content": "x"}, "no output"),
        ({"content": [7, {"type": "odd"}, {"type": "image", "data": "!"}]}, "left out"),
        ({"content": [{"type": "text", "text": "y" * 2_000_000}]}, "characters left out"),
    ],
)
async def test_odd_results_are_read_as_far_as_they_go(claude: Claude, result: Frame, words: str) -> None:
    phoenix, server = await claude(ADDS, says("I see."))
    async with hosted(phoenix, *CONFIG, *ALLOWED, mcp_message=server_with(lambda _: result)) as host:
        frames = await host.turn("Add")
    read = json.dumps(bodies(server)[-1]["messages"][-1])
    assert words in read
    assert len(read) < 200_000
    assert frames[-1]["result"] == "I see."


@pytest.mark.parametrize(
    "tools", [(7,), ({"name": ""},), ({"name": "x" * 200},), ({"name": "s", "inputSchema": {"type": "array"}},)]
)
async def test_tools_that_cannot_be_offered_are_left_out(claude: Claude, tools: Any) -> None:
    phoenix, _ = await claude(says("Hello."))
    async with hosted(phoenix, *CONFIG, mcp_message=server_with(adds, tools)) as host:
        frames = await host.turn("Hi")
    assert [one for one in frames[0]["tools"] if one.startswith("mcp__")] == []
    assert frames[-1]["result"] == "Hello."


async def test_a_server_that_refuses_is_failed_and_the_turn_goes_on(claude: Claude) -> None:
    def refuse(request: Frame) -> Frame:
        error = {"code": -32601, "message": "Server 'calc' not found"}
        return {"mcp_response": {"jsonrpc": "2.0", "id": request["message"].get("id"), "error": error}}

    phoenix, _ = await claude(says("Hello."))
    async with hosted(phoenix, *CONFIG, mcp_message=refuse) as host:
        frames = await host.turn("Hi")
        status = await host.ask("mcp_status")
    assert frames[0]["mcp_servers"][0]["status"] == "failed"
    assert status["response"]["mcpServers"][0]["error"] == "Server 'calc' not found"
    assert frames[-1]["result"] == "Hello."


async def test_a_server_is_switched_off_and_on(claude: Claude) -> None:
    phoenix, _ = await claude(says("Hello."))
    async with hosted(phoenix, *CONFIG, mcp_message=server_with(adds)) as host:
        await host.turn("Hi")
        off = await host.ask("mcp_toggle", serverName="calc", enabled=False)
        without = await host.turn("Hi")
        await host.ask("mcp_toggle", serverName="calc", enabled=True)
        again = await host.turn("Hi")
        unknown = await host.ask("mcp_toggle", serverName="none", enabled=True)
    assert off["subtype"] == "success"
    assert ("mcp__calc__add" in without[0]["tools"], "mcp__calc__add" in again[0]["tools"]) == (False, True)
    assert unknown["error"] == "There is no server none."


@pytest.mark.parametrize("config", ["{", '{"mcpServers": []}', "/nowhere/mcp.json"])
async def test_a_wrong_configuration_ends_with_a_sentence(tmp_path: Path, config: str) -> None:
    async with serve() as server, hosted(with_claude(tmp_path, server.url), "--mcp-config", config) as host:
        code = await host.end()
    assert code == 2
    assert b"--mcp-config" in host.err
    assert b"Traceback" not in host.err


POLICY_FLAGS = (*ALLOWED, "--permission-mode", "bypassPermissions", "--permission-prompt-tool", "stdio")
REMOVE = TOOL | {"name": "remove"}
TOOLS = [
    {"name": "add", "permission_policy": "always_ask"},
    {"name": "remove", "permission_policy": "always_deny"},
]


def yes(request: Frame) -> Frame:
    return {"behavior": "allow", "updatedInput": request["input"]}


async def test_a_tool_asks_against_mode_and_rules_another_is_hidden_and_calls_have_their_time(claude: Claude) -> None:
    answers = server_with(adds, (TOOL, REMOVE))
    silent = False

    def server_of_host(request: Frame) -> Any:
        return None if silent and request["message"]["method"] == "tools/call" else answers(request)

    phoenix, server = await claude(ADDS, says("Five."), ADDS, says("None."))
    async with hosted(phoenix, *POLICY_FLAGS, mcp_message=server_of_host, can_use_tool=yes) as host:
        policy = {"calc": {"timeout": 1_000, "tools": TOOLS}, "other": {"tools": TOOLS}}
        await host.ask("initialize", sdkMcpServers=["calc"], sdkMcpServerConfigs=policy)
        init = (await host.turn("Add"))[0]
        silent = True
        await host.turn("Add")
    _, first, _, second = bodies(server)
    assert [one for one in init["tools"] if one.startswith("mcp__")] == ["mcp__calc__add"]
    [asked, _] = host.requests("can_use_tool")
    assert (asked["tool_name"], asked["permission_suggestions"]) == ("mcp__calc__add", [])
    assert asked["decision_reason"] == "the host wants to be asked about each call of this tool"
    assert "sum 5" in json.dumps(first["messages"][-1])
    assert "no answer within 1 s" in json.dumps(second["messages"][-1])


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (7, NO_POLICY),
        ({"timeout": 999, "tools": {}}, NO_POLICY),
        ({"timeout": True, "tools": [7, {"name": 7}, {"name": "a", "permission_policy": ["always_ask"]}]}, NO_POLICY),
        ({"timeout": 2_500, "tools": [{"name": "a", "permission_policy": "always_allow"}]}, ServerPolicy(2.5)),
    ],
)
def test_choices_of_another_shape_are_left_out(value: Any, expected: ServerPolicy) -> None:
    assert read_policy(value) == expected


BROKEN = {"command": "/no/such/program"}


def given(**servers: Any) -> tuple[str, str]:
    return "--mcp-config", servers_json(**servers)


async def statuses(host: ControlHost) -> dict[str, str]:
    answer = await host.ask("mcp_status")
    servers: list[Frame] = answer["response"]["mcpServers"]
    return {one["name"]: one["status"] for one in servers}


async def test_connected_servers_stand_in_the_init_frame_beside_those_of_the_host(claude: Claude) -> None:
    phoenix, _ = await claude(says("Hi."))
    flags = (*CONFIG, *given(kinds=SERVER, broken=BROKEN))
    async with hosted(phoenix, *flags, mcp_message=server_with(adds)) as host:
        init = (await host.turn("Hi"))[0]
        status = await host.ask("mcp_status")
    assert [(one["name"], one["status"]) for one in init["mcp_servers"]] == [
        ("calc", "connected"),
        ("broken", "failed"),
        ("kinds", "connected"),
    ]
    assert {"mcp__calc__add", "mcp__kinds__echo"} <= set(init["tools"])
    broken = next(one for one in status["response"]["mcpServers"] if one["name"] == "broken")
    kinds = next(one for one in status["response"]["mcpServers"] if one["name"] == "kinds")
    assert (broken["scope"], broken["config"], bool(broken["error"])) == (
        "dynamic",
        {"type": "stdio", "command": "/no/such/program"},
        True,
    )
    assert "echo" in [tool["name"] for tool in kinds["tools"]]
    assert b"MCP server 'broken' is left out" in bytes(host.err)


async def test_a_connected_server_is_switched_off_and_on_again(tmp_path: Path) -> None:
    async with serve(says("Hi.")) as server, hosted(with_claude(tmp_path, server.url), *given(kinds=SERVER)) as host:
        await host.turn("Hi")
        off = await host.ask("mcp_toggle", serverName="kinds", enabled=False)
        without, seen = await statuses(host), (await host.turn("Hi"))[0]
        on = await host.ask("mcp_toggle", serverName="kinds", enabled=True)
        again = await host.ask("mcp_reconnect", serverName="kinds")
        after = await statuses(host)
        nothing = [
            (await host.ask(subtype, serverName="other", enabled=True))["error"]
            for subtype in ("mcp_toggle", "mcp_reconnect")
        ]
    assert (off["subtype"], without, on["subtype"], again["subtype"], after) == (
        "success",
        {"kinds": "disabled"},
        "success",
        "success",
        {"kinds": "connected"},
    )
    assert not [name for name in seen["tools"] if name.startswith("mcp__kinds__")]
    assert nothing == ["There is no server other."] * 2


async def test_a_host_sets_its_servers_anew(claude: Claude) -> None:
    phoenix, _ = await claude(says("Hi."))
    async with hosted(phoenix, *CONFIG, mcp_message=server_with(adds)) as host:
        await host.turn("Hi")
        calc: Frame = {"type": "sdk", "name": "calc"}
        more = await host.ask("mcp_set_servers", servers={"calc": calc, "kinds": SERVER, "broken": BROKEN})
        init = (await host.turn("Hi"))[0]
        fewer = await host.ask("mcp_set_servers", servers={})
        after = await statuses(host)
    told = more["response"]
    assert (told["added"], told["removed"], list(told["errors"])) == (["broken", "kinds"], [], ["broken"])
    assert {"mcp__calc__add", "mcp__kinds__echo"} <= set(init["tools"])
    assert (fewer["response"], after) == ({"added": [], "removed": ["broken", "calc", "kinds"], "errors": {}}, {})


async def test_servers_that_are_no_objects_are_refused_or_named(tmp_path: Path) -> None:
    async with serve(says("Hi.")) as server, hosted(with_claude(tmp_path, server.url)) as host:
        no_object = await host.ask("mcp_set_servers", servers=[1])
        too_many = await host.ask("mcp_set_servers", servers={str(number): {} for number in range(65)})
        odd = await host.ask("mcp_set_servers", servers={"a": 7, "b": {"type": "carrier pigeon"}})
    assert no_object["error"] == too_many["error"] == "The request needs servers, an object of at most 64."
    assert sorted(odd["response"]["errors"]) == ["a", "b"]


async def test_a_required_server_that_fails_lets_no_turn_begin(claude: Claude) -> None:
    phoenix, server = await claude(says("Hi."))
    async with hosted(phoenix, *given(broken=BROKEN | {"required": True})) as host:
        result = (await host.turn("Hi"))[-1]
        code = await host.close()
    assert server.requests == []
    assert (result["is_error"], code) == (True, 1)
    assert "MCP server 'broken' is required and failed" in json.dumps(result)


ASKS = calls("mcp__kinds__form")
FLAGS = ("--mcp-config", servers_json(kinds=SERVER), "--allowedTools", "mcp__kinds__form")
FORM: Frame = {"type": "object", "properties": {"name": {"type": "string"}}}


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


async def test_the_answer_of_the_host_reaches_the_server_and_a_refused_question_is_cancelled(claude: Claude) -> None:
    texts = []
    phoenix, _ = await claude(ASKS, says("One."), ASKS, says("Two."))
    async with hosted(phoenix, *FLAGS) as host:
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
        "requested_schema": FORM,
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
    assert check_answer("form", {"action": "accept", "content": content, "more": 1}) == {
        "action": "accept",
        "content": content,
    }
    assert check_answer("form", {"action": "accept"}) == {"action": "accept", "content": {}}
    assert check_answer("url", {"action": "accept", "content": {"a": "x"}}) == {"action": "accept"}
    assert check_answer("form", {"action": "decline", "content": {"a": "x"}}) == {"action": "decline"}


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
        check_answer("form", given)
