"""Servers over HTTP: reconnecting, redirects, bodies without end, headers; signing in only when a person wants it."""

from __future__ import annotations

import asyncio
import base64
import gzip
import json
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import msgspec
import pytest

from tests.support.mcp_helper import Helper, Refused, files_in, helper
from tests.support.mcp_web import Asked, Given, SignInServer, WebServer, data, serving
from tests.support.waiting import poll
from tools.mcp_host.protocol import (
    Auth,
    AuthUrl,
    CallTool,
    Connect,
    NewCredentials,
    OAuth,
    ServerStatus,
    is_plain_address,
    raw,
)

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


async def fetch(address: str) -> bytes:
    """Open an address as a browser would."""
    parts = urlsplit(address)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
    writer.write(f"GET {parts.path}?{parts.query} HTTP/1.1\r\nHost: {parts.netloc}\r\n\r\n".encode())
    content = await reader.read()
    writer.close()
    return content


async def start(running: Helper, server: WebServer) -> tuple[AuthUrl, dict[str, str]]:
    """Connect, be refused, begin a sign-in: the event with the address and its parameters."""
    with pytest.raises(Refused) as refused:
        await running.connect_url(server.url)
    assert refused.value.error.kind == "needs_auth"
    assert running.states()[-1] == "needs_auth"
    assert not [event for event in running.events if isinstance(event, AuthUrl)]
    assert not [asked for asked in server.asked if asked.path == "/registration"]
    await running.ask(Auth(id=running.number(), server="s", action="start"), bool)
    opened = await running.event(AuthUrl)
    return opened, {name: values[0] for name, values in parse_qs(urlsplit(opened.url).query).items()}


@pytest.mark.parametrize(
    ("url", "plain"),
    [
        ("https://login.example/a?state=x", True),
        ("http://127.0.0.1:8/a", True),
        ("http://login.example/a", False),
        ("https://login.example@evil.example/a", False),
        ("https://login.example\\@evil.example/", False),
        ("https://lo\u0261in.example/", False),
        ("https://login.example/\x1b[2J", False),
        ("https:///a", False),
        ("javascript:alert(1)", False),
        ("file:///etc/passwd", False),
        ("https://[bad/", False),
    ],
)
def test_only_an_address_that_is_what_it_looks_like_is_opened(url: str, plain: bool) -> None:
    assert is_plain_address(url) is plain


async def test_a_browser_signs_in_and_a_forged_redirect_does_not(tmp_path: Path) -> None:
    server = SignInServer()
    async with helper(tmp_path) as running, serving(server):
        opened, query = await start(running, server)
        assert opened.host == f"127.0.0.1:{server.port}"
        assert (query["code_challenge_method"], query["redirect_uri"]) == ("S256", opened.callback)
        assert b"400" in await fetch(f"{opened.callback}?code=evil&state=other")
        assert b"404" in await fetch(opened.callback.replace("/callback", "/else") + "?code=evil")
        assert b"close this page" in await fetch(f"{opened.callback}?code=c&state={query['state']}")
        await running.event(ServerStatus, lambda event: event.state == "connected")
        assert await running.text("fine") == "fine 1"
        assert server.grants[0]["code"] == "c"
        stored = (await running.event(NewCredentials)).content
        assert b"token1" in bytes(stored)
        assert files_in(tmp_path) == []
        again = Connect(id=running.number(), server="t", transport="http", url=server.url, credentials=stored)
        assert (await running.reply(again)).error is None
        assert len(server.grants) == 1


async def test_an_address_is_pasted_and_tokens_are_refreshed_where_they_came_from(tmp_path: Path) -> None:
    server = SignInServer()
    async with helper(tmp_path) as running, serving(server):
        opened, query = await start(running, server)
        wrong = Auth(id=running.number(), server="s", action="paste", url=f"{opened.callback}?code=c&state=x")
        assert await running.refusal(wrong) == "invalid"
        url = f"http://elsewhere.invalid/callback?code=c&state={query['state']}"
        await running.ask(Auth(id=running.number(), server="s", action="paste", url=url), bool)
        await running.event(ServerStatus, lambda event: event.state == "connected")
        stored = (await running.event(NewCredentials)).content
        old = raw({**msgspec.json.decode(stored), "expires_at": 1.0})
        again = Connect(id=running.number(), server="t", transport="http", url=server.url, credentials=old)
        assert (await running.reply(again)).error is None
        assert server.grants[-1]["grant_type"] == "refresh_token"
        await running.event(NewCredentials, lambda event: event.server == "t")


async def test_a_refused_sign_in_and_a_forgotten_one_need_another(tmp_path: Path) -> None:
    server = SignInServer()
    async with helper(tmp_path) as running, serving(server):
        opened, query = await start(running, server)
        await fetch(f"{opened.callback}?error=access_denied&error_description=No%1b[31m&state={query['state']}")
        refused = await running.event(ServerStatus, lambda event: "refused" in event.text)
        assert (refused.state, refused.text) == ("needs_auth", "The authorization server refused: access_denied No")
        await running.ask(Auth(id=running.number(), server="s", action="forget"), bool)
        assert bytes((await running.event(NewCredentials)).content) == b"null"
        paste = Auth(id=running.number(), server="s", action="paste", url="http://x/?code=c")
        assert await running.refusal(paste) == "invalid"


async def test_configured_client_and_scopes_are_used(tmp_path: Path) -> None:
    server = SignInServer()
    async with helper(tmp_path) as running, serving(server):
        oauth = OAuth(client_id="mine", scopes="read write")
        spec = Connect(id=running.number(), server="s", transport="http", url=server.url, oauth=oauth)
        assert await running.refusal(spec) == "needs_auth"
        await running.ask(Auth(id=running.number(), server="s", action="start"), bool)
        query = parse_qs(urlsplit((await running.event(AuthUrl)).url).query)
        assert (query["client_id"], query["scope"]) == (["mine"], ["read write"])
        assert not [asked for asked in server.asked if asked.path == "/registration"]


@pytest.mark.parametrize(
    ("methods", "is_basic"),
    [
        (None, True),
        (["client_secret_basic", "client_secret_post"], True),
        (["none"], True),
        (["client_secret_post"], False),
    ],
)
async def test_the_secret_of_a_configured_client_goes_where_the_metadata_says(
    tmp_path: Path, methods: list[str] | None, is_basic: bool
) -> None:
    server = SignInServer()
    ordinary = server.special

    def special(asked: Asked) -> Given | None:
        given = ordinary(asked)
        if given is None or methods is None or "oauth-authorization-server" not in asked.path:
            return given
        return data({**json.loads(given.body), "token_endpoint_auth_methods_supported": methods})

    server.special = special
    async with helper(tmp_path) as running, serving(server):
        oauth = OAuth(client_id="mine", client_secret="se cret", callback_port=0)
        spec = Connect(id=running.number(), server="s", transport="http", url=server.url, oauth=oauth)
        assert await running.refusal(spec) == "needs_auth"
        await running.ask(Auth(id=running.number(), server="s", action="start"), bool)
        opened = await running.event(AuthUrl)
        state = parse_qs(urlsplit(opened.url).query)["state"][0]
        await fetch(f"{opened.callback}?code=c&state={state}")
        await running.event(ServerStatus, lambda event: event.state == "connected")
        (asked,) = [one for one in server.asked if one.path == "/token"]
        expected = f"Basic {base64.b64encode(b'mine:se%20cret').decode()}" if is_basic else None
        assert asked.headers.get("authorization") == expected
        assert server.grants[0].get("client_secret") == (None if is_basic else "se cret")
