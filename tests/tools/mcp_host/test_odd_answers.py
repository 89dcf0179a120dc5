"""One odd element of an answer costs itself, not the list, the result, or the server (FAULTS 121 to 123)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.mcp_helper import Refused, helper
from tests.support.mcp_raw import RawServer, raw_server, tool
from tests.support.mcp_web import Asked, Given, WebServer, serving
from tools.mcp_host.protocol import LeftOut, TextPart

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
