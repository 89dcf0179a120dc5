"""HTTP: reconnecting, forgotten sessions, redirects, bodies without end, headers."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from tests.support.mcp_helper import Refused, helper
from tests.support.mcp_web import Asked, Given, WebServer, serving
from tests.support.waiting import poll
from tools.mcp_host.protocol import CallTool, ServerStatus

MB = 1 << 20
JSON = {"Content-Type": "application/json"}


async def test_a_forgotten_session_is_replaced_and_the_call_repeated(tmp_path: Path) -> None:
    forgotten = {"s1"}

    def special(asked: Asked) -> Given | None:
        return Given(404) if asked.headers.get("mcp-session-id") in forgotten and asked.method == "POST" else None

    async with helper(tmp_path) as running, serving(WebServer()) as server:
        await running.connect_url(server.url, headers={"X-Key": "secret"})
        assert await running.text("fine") == "fine 1"
        assert {asked.headers.get("x-key") for asked in server.asked} == {"secret"}
        server.special = special
        assert await running.text("fine") == "fine 2"
        assert running.states()[-1] == "connected"


async def test_a_lost_server_is_reconnected_and_calls_meanwhile_wait(tmp_path: Path) -> None:
    async with helper(tmp_path) as running, serving(WebServer()) as server:
        await running.connect_url(server.url)
        await server.stop()
        with pytest.raises(Refused) as refused:
            await running.call("fine")
        assert refused.value.error.kind == "gone"
        await running.event(ServerStatus, lambda event: event.state == "reconnecting")
        await server.listen()
        assert await running.text("fine") == "fine 2"
        assert [state for state in running.states() if state in {"connected", "reconnecting"}][-1] == "connected"


async def test_a_server_that_cannot_be_reached_is_tried_again_on_use(tmp_path: Path) -> None:
    async with helper(tmp_path) as running, serving(WebServer()) as server:
        await server.stop()
        with pytest.raises(Refused) as refused:
            await running.connect_url(server.url)
        assert refused.value.error.kind == "failed"
        assert refused.value.error.message.startswith("MCP server 's' is not connected: it cannot be reached")
        await server.listen()
        assert await running.text("fine") == "fine 1"


async def test_a_proxy_of_the_environment_is_used_but_not_for_this_machine(tmp_path: Path) -> None:
    async with serving(WebServer()) as proxy, serving(WebServer()) as here:
        async with helper(tmp_path, http_proxy=f"http://127.0.0.1:{proxy.port}") as running:
            await running.connect_url("http://server.invalid/mcp")
            await running.connect_url(here.url, server="here")
        assert {asked.path for asked in proxy.asked} == {"http://server.invalid/mcp"}
        assert here.asked[0].path == "/mcp"


async def test_an_impossible_definition_is_a_sentence_without_secrets(tmp_path: Path) -> None:
    impossible: list[tuple[str, dict[str, str], str]] = [
        ("ftp://x/", {}, "must begin with http:// or https://"),
        ("http://", {}, "must begin with http:// or https://"),
        ("http://x/", {"X-Key": "secret\r\nEvil: 1"}, "The value of the header X-Key may only"),
        ("http://x/", {"s\xe9 cret": "secret"}, "is no name of a header"),
    ]
    async with helper(tmp_path) as running:
        for url, headers, words in impossible:
            with pytest.raises(Refused) as refused:
                await running.connect_url(url, headers=headers)
            assert refused.value.error.kind == "invalid"
            assert words in refused.value.error.message
            assert "secret" not in refused.value.error.message


async def test_redirects_stay_inside_the_origin(tmp_path: Path) -> None:
    def moved(place: str) -> WebServer:
        return WebServer(lambda asked: Given(307, b"", {"Location": place}) if asked.path == "/mcp" else None)

    async with helper(tmp_path) as running, serving(WebServer()) as other:
        async with serving(moved("/real")) as inside:
            await running.connect_url(inside.url, headers={"X-Key": "secret"})
            assert await running.text("fine") == "fine 1"
        async with serving(moved(other.url)) as outside:
            with pytest.raises(Refused) as refused:
                await running.connect_url(outside.url, server="t", headers={"X-Key": "secret"})
            assert "not followed" in refused.value.error.message
        assert other.asked == []


async def test_bodies_without_end_compressed_ones_and_wrong_kinds_fail_alone(tmp_path: Path) -> None:
    answers = [
        Given(200, b'{"a":"' + b"x" * MB, JSON, endless=True),
        Given(200, b"[[],[],[]," * 100_000, JSON, endless=True),
        Given(200, b"data: " + b"y" * MB, {"Content-Type": "text/event-stream"}, endless=True),
        Given(200, gzip.compress(b"0" * 64 * MB), {**JSON, "Content-Encoding": "gzip"}),
        Given(200, b"<html>", {"Content-Type": "text/html"}),
        Given(500, b"no"),
        Given(200, b"{", JSON),
    ]
    said: list[str] = []

    def special(asked: Asked) -> Given | None:
        return answers[len(said)] if asked.message.get("method") == "tools/call" else None

    asking = helper(tmp_path, anew=True)
    async with asking as running, serving(WebServer()) as server, serving(WebServer()) as good:
        await running.connect_url(good.url, server="good")
        await running.connect_url(server.url)
        server.special = special
        before = running.memory()
        while len(said) < len(answers):
            with pytest.raises(Refused) as refused:
                await running.call("fine")
            said.append(f"{refused.value.error.kind}: {refused.value.error.message}")
            assert await running.text("fine", server="good") == "fine 1"
        assert ["an answer of more than 16 MB" in said[0], "more than 2000000 values" in said[1]] == [True, True]
        assert "event exceeded" in said[2]
        assert "Unexpected content type: text/html" in said[4]
        assert "error response" in said[5]
        assert running.memory() - before < 160 * MB
        server.special = lambda _: None
        assert (await running.text("fine")).startswith("fine")


async def test_a_cancel_reaches_the_server(tmp_path: Path) -> None:
    def special(asked: Asked) -> Given | None:
        slow = asked.message.get("method") == "tools/call"
        return Given(200, b": wait\n\n", {"Content-Type": "text/event-stream"}, endless=True) if slow else None

    async with helper(tmp_path) as running, serving(WebServer(special)) as server:
        await running.connect_url(server.url)
        reply = await running.reply(CallTool(id=running.number(), server="s", tool="fine", timeout_ms=500))
        assert reply.error is not None
        assert reply.error.kind == "timeout"
        assert await poll(lambda: server.calls("notifications/cancelled"))


async def test_disconnecting_ends_the_session_on_the_server(tmp_path: Path) -> None:
    async with helper(tmp_path) as running, serving(WebServer()) as server:
        await running.connect_url(server.url)
        await running.connect_url(server.url)
        assert await poll(lambda: [asked.method for asked in server.asked].count("DELETE") == 1)
