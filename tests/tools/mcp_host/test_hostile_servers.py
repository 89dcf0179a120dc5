"""Servers that break every rule: each harms only itself, and an odd element costs itself alone (FAULTS 121 to 123)."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import itertools
import json
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final, cast

import pytest

from tests.support.mcp_helper import Helper, Refused, helper
from tests.support.mcp_raw import Behaviour, RawServer, raw_server, tool
from tests.support.mcp_web import Asked, Given, WebServer, serving
from tests.support.waiting import poll
from tools.mcp_host import protocol
from tools.mcp_host.protocol import (
    AskClosed,
    CallProgress,
    CallTool,
    Cancel,
    Connect,
    Disconnect,
    Items,
    LeftOut,
    ListItems,
    Log,
    ServerAsk,
    ServerStatus,
    TextPart,
)
from tools.mcp_sampling import SampleRefused, read_sample

MB = 1 << 20


async def fine(server: RawServer, number: Any) -> None:
    """Answer as expected."""
    await server.text(number, "fine")


async def silent(_server: RawServer, _number: Any) -> None:
    """Never answer."""


@contextlib.asynccontextmanager
async def against(folder: Path, **behaviours: Behaviour) -> AsyncIterator[tuple[Helper, RawServer]]:
    """A helper with a hostile server `s` and a good one, `good`, which must work at the end."""
    hostile, good = RawServer({"fine": fine, **behaviours}), RawServer({"fine": fine})
    async with helper(folder) as running, raw_server(hostile), raw_server(good):
        await running.connect(good.pipes, server="good")
        await running.connect(hostile.pipes, elicitation=True)
        yield running, hostile
        assert await running.text("fine", server="good") == "fine"


async def failed(running: Helper, name: str, **more: Any) -> str:
    """Kind and message of the error that a call ends with."""
    with pytest.raises(Refused) as refused:
        await running.call(name, **more)
    return f"{refused.value.error.kind}: {refused.value.error.message}"


async def test_a_line_without_end_ends_that_server_within_bounded_memory(tmp_path: Path) -> None:
    async def endless(server: RawServer, _number: Any) -> None:
        with contextlib.suppress(OSError):
            for _ in range(100):
                await server.send_bytes(b"x" * MB)

    async with against(tmp_path, endless=endless) as (running, _):
        before = running.memory()
        assert await failed(running, "endless") == "gone: MCP server 's' ended: it sent a line of more than 16 MB."
        assert await poll(lambda: running.states()[-1] == "ended")
        assert running.memory() - before < 64 * MB


async def test_answers_that_are_no_json_fail_their_call_at_once(tmp_path: Path) -> None:
    def answer(text: str) -> Behaviour:
        async def give(server: RawServer, number: Any) -> None:
            await server.send_bytes(b'garbage\n\x00\xff\n[1]\n"x"\n')
            await server.send_bytes(text.replace("ID", str(number)).encode() + b"\n")

        return give

    deep = "[" * 100_000 + "]" * 100_000
    wide = "[" + ",".join(["{}"] * 700_000) + "]"
    async with against(
        tmp_path,
        cut=answer('{"jsonrpc":"2.0","id":ID,"result":{"content":['),
        deep=answer(f'{{"jsonrpc":"2.0","id":ID,"result":{{"content":[],"structuredContent":{deep}}}}}'),
        wide=answer(f'{{"result":{{"content":[],"structuredContent":{wide}}},"jsonrpc":"2.0","id":ID}}'),
        shape=answer('{"jsonrpc":"2.0","id":ID,"result":{"content":7}}'),
    ) as (running, hostile):
        assert "server: MCP server 's' answered with an error: an answer that cannot be read" in await failed(
            running, "cut"
        )
        assert "cannot be read" in await failed(running, "deep")
        assert "more than 2000000 values" in await failed(running, "wide")
        assert await running.text("shape") == "(a part that Phoenix does not know: 7)"
        assert await running.text("fine") == "fine"
        log = await running.ask(ListItems(id=running.number(), server="s", what="log"), Items)
        assert any("not MCP" in line for line in log.lines)
        assert hostile.methods()[-1] == "tools/call"


async def test_a_flood_of_notifications_is_dropped_and_calls_go_on(tmp_path: Path) -> None:
    flooding = asyncio.Event()

    async def flood(server: RawServer, number: Any) -> None:
        log = {"method": "notifications/message", "params": {"level": "info", "data": "y" * 200}}
        line = json.dumps({"jsonrpc": "2.0", **log}).encode() + b"\n"
        changed = b'{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}\n'
        for _ in range(150):
            await server.send_bytes(line * 50 + changed * 20)
        flooding.set()
        await server.text(number, "after it")

    async with against(tmp_path, flood=flood) as (running, hostile):
        calling = asyncio.ensure_future(running.text("flood"))
        assert await running.text("fine", server="good") == "fine"
        assert await calling == "after it"
        logs = [event for event in running.events if isinstance(event, Log)]
        assert len(logs) < 500
        assert any("messages dropped" in event.text for event in logs)
        assert hostile.methods().count("tools/list") < 20


async def test_questions_beyond_a_few_are_declined_at_once_and_none_begins_during_the_end(tmp_path: Path) -> None:
    async def asking(server: RawServer, _number: Any) -> None:
        form = {"mode": "form", "message": "?", "requestedSchema": {"type": "object", "properties": {}}}
        with contextlib.suppress(OSError):
            for number in itertools.count():
                await server.send({"id": f"a{number}", "method": "elicitation/create", "params": form})

    async with against(tmp_path, asking=asking) as (running, hostile):
        calling = running.begin(CallTool(id=running.number(), server="s", tool="asking"))
        assert await poll(lambda: sum("Too many" in json.dumps(message) for message in hostile.received) > 400)
        await running.reply(Disconnect(id=running.number(), server="s"))
        asks = [event.ask for event in running.events if isinstance(event, ServerAsk)]
        assert len(asks) == protocol.MOST_ASKS
        assert sorted(event.ask for event in running.events if isinstance(event, AskClosed)) == asks
        reply = await calling
        assert reply.error is not None
        assert reply.error.kind == "gone"


async def test_a_server_that_asks_without_reading_the_answers_is_disconnected(tmp_path: Path) -> None:
    reading, given = os.pipe()
    fcntl.fcntl(given, fcntl.F_SETPIPE_SZ, 4096)
    output, writing = os.pipe()
    ping = b'{"jsonrpc":"2.0","id":%d,"method":"ping"}\n'
    async with helper(tmp_path) as running:
        connecting = running.begin(Connect(id=running.number(), server="s", timeout_ms=60_000), (output, given))
        os.write(writing, b"".join(ping % number for number in range(1_400)))
        reply = await connecting
        assert reply.error is not None
        assert "requests and does not read the answers" in reply.error.message
        for descriptor in (reading, writing):
            os.close(descriptor)


async def test_structured_content_against_a_hostile_schema_ends_in_time(tmp_path: Path) -> None:
    doubling: dict[str, Any] = {f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(40)}
    schemas: dict[str, dict[str, Any]] = {
        "backtrack": {"type": "object", "properties": {"v": {"pattern": "^(a+)+$"}}},
        "doubling": {"type": "object", "$ref": "#/$defs/d0", "$defs": {**doubling, "d40": {"type": "object"}}},
        "invalid": {"type": "object", "properties": {"v": {"type": "nonsense"}}},
        "remote": {"type": "object", "properties": {"v": {"$ref": "http://127.0.0.1:9/schema"}}},
    }

    async def structured(server: RawServer, number: Any) -> None:
        await server.result(number, {"content": [], "structuredContent": {"v": "a" * 60 + "!"}})

    hostile = RawServer(
        dict.fromkeys(schemas, structured), [tool(name, outputSchema=schema) for name, schema in schemas.items()]
    )
    async with helper(tmp_path) as running, raw_server(hostile):
        await running.connect(hostile.pipes)
        for name in ("backtrack", "doubling", "backtrack"):
            content = await running.call(name)
            assert content.is_error
            assert "takes too long to check" in await running.text(name)
        assert "its output schema is invalid" in await running.text("invalid")
        assert "leads nowhere" in await running.text("remote")


async def test_lists_are_bounded_and_odd_items_named(tmp_path: Path) -> None:
    deep: dict[str, Any] = {}
    for _ in range(80):
        deep = {"properties": {"p": deep}}
    tools = [tool(f"t{n:04}") for n in range(1500)] + [
        tool("x" * 129),
        tool(""),
        tool("t0000", description="again"),
    ]
    special = [
        tool("huge", description="d" * 5_000, title="\x1b]0;title\x07T" + "t" * 500),
        tool("odd name/é\u202e", inputSchema={"type": "object", "description": "a\x1b[2Jb"}),
        tool("large", inputSchema={"type": "object", "enum": ["e" * 200_000]}),
        tool("deep", inputSchema={"type": "object", **deep}),
        tool("tasks", execution={"taskSupport": "required"}),
    ]
    hostile = RawServer({}, [*special, *tools])
    hostile.initialized["instructions"] = "\x1b[31m" + "i" * 9_000
    async with helper(tmp_path) as running, raw_server(hostile):
        connected = await running.connect(hostile.pipes)
        listed = running.items("tools")
        assert len(listed.items) == protocol.MOST_ITEMS
        assert listed.left_out_count == 1508 - protocol.MOST_ITEMS
        assert len(listed.left_out) == protocol.MOST_LEFT_OUT
        by_name = {item.name: item for item in listed.items}
        assert len(by_name["huge"].description) == protocol.LONGEST_DESCRIPTION
        assert by_name["huge"].title == "T" + "t" * 117
        assert by_name["odd name/é\u202e"].schema["description"] == "ab"
        reasons = {one.name: one.reason for one in listed.left_out}
        assert reasons["tasks"] == "needs tasks"
        assert "bytes, more than" in reasons["large"]
        assert reasons["deep"] == "its schema is deeper than 60 levels"
        assert connected.instructions == "i" * (protocol.LONGEST_DESCRIPTION - 5)


async def test_pages_that_never_end_are_read_a_hundred_times(tmp_path: Path) -> None:
    class Endless(RawServer):
        pages = 0

        async def result(self, number: Any, result: dict[str, Any]) -> None:
            if "tools" in result:
                self.pages += 1
                result = {"tools": [tool(f"t{self.pages}")], "nextCursor": f"c{self.pages}"}
            await super().result(number, result)

    hostile = Endless({})
    async with helper(tmp_path) as running, raw_server(hostile):
        await running.connect(hostile.pipes)
        assert (hostile.pages, len(running.items("tools").items)) == (100, 100)
        assert running.items("tools").left_out[0].reason == "the server has more than 100 pages"


async def test_calls_end_at_their_limits_and_at_a_cancel_and_the_server_is_told(tmp_path: Path) -> None:
    async def chatty(server: RawServer, number: Any) -> None:
        while True:
            token = server.received[-1]["params"]["_meta"]["progressToken"]
            await server.send({"method": "notifications/progress", "params": {"progressToken": token, "progress": 1}})
            await asyncio.sleep(0)

    async def late(server: RawServer, number: Any) -> None:
        assert await poll(lambda: "notifications/cancelled" in server.methods())
        await server.text(number, "too late")

    async with against(tmp_path, silent=silent, chatty=chatty, late=late) as (running, hostile):
        assert (await failed(running, "silent", timeout_ms=300)).startswith("timeout: It took longer than 0.3 s")
        assert (await failed(running, "silent", idle_ms=200)).startswith("idle: Neither data nor progress")
        assert await poll(lambda: hostile.methods().count("notifications/cancelled") == 2)
        hostile.received.clear()
        number = running.number()
        calling = running.begin(CallTool(id=number, server="s", tool="late"))
        assert await poll(lambda: "tools/call" in hostile.methods())
        await running.reply(Cancel(id=running.number(), call=number))
        assert (await calling).error is not None
        assert await poll(lambda: "notifications/cancelled" in hostile.methods())
        assert await running.text("fine") == "fine"
        assert (await failed(running, "chatty", timeout_ms=1_500)).startswith("timeout: ")
        progress = [event for event in running.events if isinstance(event, CallProgress)]
        assert 1 <= len(progress) < 40


async def test_too_many_calls_and_a_server_that_does_not_read_its_input(tmp_path: Path) -> None:
    hostile = RawServer({"silent": silent})
    async with helper(tmp_path) as running, raw_server(hostile):
        await running.connect(hostile.pipes)
        asking = [
            running.begin(CallTool(id=running.number(), server="s", tool="silent", args={"big": "b" * 150_000}))
            for _ in range(protocol.MOST_CALLS)
        ]
        refused = await running.reply(CallTool(id=running.number(), server="s", tool="silent"))
        assert refused.error is not None
        assert refused.error.kind == "limit"
        for waiting in asking:
            waiting.cancel()


async def test_result_of_many_parts_is_bounded(tmp_path: Path) -> None:
    async def many(server: RawServer, number: Any) -> None:
        image = {"type": "image", "mimeType": "image/png; x\x1b", "data": "A" * 100_000}
        text = {"type": "text", "text": "z" * 3_000}
        await server.result(number, {"content": [image] * 60 + [text] * 900})

    async with against(tmp_path, many=many) as (running, _):
        content = await running.call("many")
        assert len(content.parts) == protocol.MOST_PARTS + 1
        assert content.parts[-1] == TextPart(text="(760 more parts of this result were left out)")
        inline = sum(len(getattr(part, "data", "")) for part in content.parts)
        assert inline <= protocol.MOST_INLINE


async def test_a_list_that_is_none_leaves_the_server_connected_with_the_reason(tmp_path: Path) -> None:
    hostile = RawServer({"fine": fine}, cast("Any", "none"))
    async with helper(tmp_path) as running, raw_server(hostile):
        await running.connect(hostile.pipes)
        status = await running.event(ServerStatus, lambda event: event.state == "connected")
        assert status.text.startswith("the list of tools could not be fetched: an answer that is not MCP")
        assert running.items("tools").items == []
        assert await running.text("fine") == "fine"


async def test_a_handshake_that_never_ends_fails_in_time(tmp_path: Path) -> None:
    hostile = RawServer({})
    del hostile.initialized["protocolVersion"]
    mute = RawServer({})
    async with helper(tmp_path) as running, raw_server(hostile):
        with pytest.raises(Refused) as refused:
            await running.connect(hostile.pipes)
        assert refused.value.error.kind == "gone"
        assert "not MCP" in refused.value.error.message
        with pytest.raises(Refused) as refused:
            await running.connect(mute.pipes, timeout_ms=400)
        assert "did not finish connecting in 0.4 s" in refused.value.error.message
        assert running.states()[-1] == "ended"


ODD: dict[str, dict[str, Any]] = {
    "none": {"name": "none"},
    "null": {"name": "null", "inputSchema": None},
    "untyped": {"name": "untyped", "inputSchema": {"oneOf": [{"required": ["a"]}]}},
    "properties": {"name": "properties", "inputSchema": {"type": "object", "properties": None}},
    "hints": tool("hints", annotations={"readOnlyHint": "often"}, title=7, icons="x", outputSchema=[]),
}


async def test_a_tool_without_a_usable_schema_hides_no_other(tmp_path: Path) -> None:
    async def fine(server: RawServer, number: Any) -> None:
        await server.text(number, "fine")

    odd: list[Any] = [*ODD.values(), "no tool", {"name": 5}, {"inputSchema": {"type": "object"}}]
    server = RawServer({"good": fine}, [*odd, tool("good")])
    async with helper(tmp_path) as running, raw_server(server):
        await running.connect(server.pipes)
        items = running.items("tools")
        assert [item.name for item in items.items] == sorted([*ODD, "good"])
        assert {item.schema.get("type") for item in items.items} == {"object"}
        assert [one.name for one in items.left_out] == ["?", "?", "?"]
        assert items.left_out[-1] == LeftOut("?", "its name is wrong: Field required")
        assert items.left_out_count == 3
        assert await running.text("good") == "fine"


@pytest.mark.parametrize(
    ("result", "text"),
    [
        ({}, "(odd completed with no output)"),
        ({"content": None}, "(odd completed with no output)"),
        ({"content": "plain"}, "plain"),
        ({"content": {"type": "text", "text": "one"}}, "one"),
        ({"content": ["a", {"type": "text", "text": "b"}]}, "a\nb"),
        (
            {"content": [{"type": "weird", "foo": 1}, {"type": "text", "text": "kept"}]},
            '(a part of the kind \'weird\' that Phoenix does not know: {"type": "weird", "foo": 1})\nkept',
        ),
        ({"content": [{"type": "text", "text": "x", "annotations": {"priority": "high"}}]}, "x"),
        ({"content": [{"type": "text", "text": "x"}], "structuredContent": [1]}, "x\n[1]"),
        ({"content": [{"type": "text", "text": "x"}], "_meta": 3}, "x"),
    ],
)
async def test_a_result_keeps_all_that_can_be_read(tmp_path: Path, result: dict[str, Any], text: str) -> None:
    async def odd(server: RawServer, number: Any) -> None:
        await server.result(number, result)

    server = RawServer({"odd": odd})
    async with helper(tmp_path) as running, raw_server(server):
        await running.connect(server.pipes)
        content = await running.call("odd")
        assert "\n".join(part.text for part in content.parts if isinstance(part, TextPart)) == text


async def test_an_error_with_the_code_of_a_closed_connection_fails_its_call_alone(tmp_path: Path) -> None:
    async def refuses(server: RawServer, number: Any) -> None:
        await server.send({"id": number, "error": {"code": -32000, "message": "backend says no"}})

    async def late(server: RawServer, number: Any) -> None:
        await server.send({"id": number, "error": {"code": -32001, "message": "quota"}})

    async def fine(server: RawServer, number: Any) -> None:
        await server.text(number, "fine")

    server = RawServer({"refuses": refuses, "late": late, "fine": fine})
    async with helper(tmp_path) as running, raw_server(server):
        await running.connect(server.pipes)
        for name, words in (("refuses", "backend says no"), ("late", "quota")):
            with pytest.raises(Refused) as refused:
                await running.call(name)
            assert refused.value.error.kind == "server"
            assert refused.value.error.message == f"MCP server 's' answered with an error: {words}"
        assert await running.text("fine") == "fine"
        assert running.states() == ["connecting", "connected"]


async def test_a_list_that_is_refused_with_401_wants_a_sign_in(tmp_path: Path) -> None:
    def guarded(asked: Asked) -> Given | None:
        return Given(401, b"") if b'"tools/list"' in asked.body else None

    async with helper(tmp_path) as running, serving(WebServer(guarded)) as server:
        with pytest.raises(Refused) as refused:
            await running.connect_url(server.url)
        assert refused.value.error.kind == "needs_auth"
        assert running.states()[-1] == "needs_auth"


def test_what_a_server_says_is_left_out_is_not_its_to_say() -> None:
    from tools.mcp_host.guard import LEFT_OUT, mend  # noqa: PLC0415 - the SDK takes a second

    mended = mend("tools/list", {"tools": [tool("a")], "_meta": {LEFT_OUT: [["b", "c"]], "own": 1}, "nextCursor": 4})
    assert mended["_meta"] == {LEFT_OUT: [], "own": 1}
    assert mended["nextCursor"] is None


@pytest.mark.parametrize("depth", [10, 100_000])
def test_a_deep_element_is_left_out_alone(depth: int) -> None:
    from tools.mcp_host.guard import mend  # noqa: PLC0415 - the SDK takes a second

    deep: Any = {}
    for _ in range(depth):
        deep = {"a": deep}
    mended = mend("tools/call", {"content": [{"type": "weird", "x": deep}, {"type": "text", "text": "kept"}]})
    assert mended["content"][1] == {"type": "text", "text": "kept"}
    assert mended["content"][0]["type"] == "text"


AUDIO: Final = '{"type":"audio","data":"aGk=","mimeType":"audio/wav"}'


def request(content: str = '{"type":"text","text":"hi"}', tokens: str = "10", more: str = "") -> str:
    return f'{{"messages":[{{"role":"user","content":{content}}}],"maxTokens":{tokens}{more}}}'


def nested(depth: int) -> str:
    return "[" * depth + "]" * depth


UNREADABLE: Final = (
    request(more=f',"tools":[{{"name":"x","inputSchema":{nested(20_000)}}}]'),
    request(more=f',"metadata":{{"a":{nested(20_000)}}}'),
    request('{"type":"text","text":"\\ud800"}'),
)
"""Lines that are no JSON for the SDK: dropped."""
WRONG: Final = (request(tokens="1e308"), request('{"type":"odd"}'), "{}")
PASSED_ON: Final = (
    request(more=f',"metadata":{{"a":{nested(150)}}}'),
    request(tokens="1" + "0" * 400),
    request(tokens="-5"),
    request(AUDIO),
    request(json.dumps([{"type": "text", "text": ""}] * 20_000)),
)


async def test_hostile_requests_are_dropped_answered_with_an_error_or_passed_on_bounded(tmp_path: Path) -> None:
    async def sampling(server: RawServer, number: Any) -> None:
        for place, params in enumerate((*UNREADABLE, *WRONG, *PASSED_ON)):
            line = f'{{"jsonrpc":"2.0","id":"s{place}","method":"sampling/createMessage","params":{params}}}\n'
            await server.send_bytes(line.encode())
        await server.text(number, "sent")

    hostile = RawServer({"sampling": sampling})
    async with helper(tmp_path) as running, raw_server(hostile):
        await running.connect(hostile.pipes, sampling=True)
        await running.reply(CallTool(id=running.number(), server="s", tool="sampling"))

        def asks() -> list[ServerAsk]:
            return [one for one in running.events if isinstance(one, ServerAsk)]

        def errors() -> list[int]:
            return [one["error"]["code"] for one in hostile.received if str(one.get("id")).startswith("s")]

        assert await poll(lambda: (len(asks()), len(errors())) == (len(PASSED_ON), len(WRONG)))
        assert errors() == [-32602] * len(WRONG)
        assert [outcome(one) for one in asks()] == [
            10,
            4_096,
            "maxTokens of a sampling request must be at least 1.",
            "Audio in a sampling request is not supported.",
            "A message of a sampling request needs 1 to 100 parts that are not empty.",
        ]


def outcome(asked: ServerAsk) -> object:
    """Tokens of a request that can be answered, or the refusal."""
    try:
        return read_sample(asked.params).max_tokens
    except SampleRefused as refused:
        return refused.sentence
