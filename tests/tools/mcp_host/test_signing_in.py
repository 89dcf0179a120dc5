"""Signing in: never by itself, in the browser or by a pasted address; tokens go to Phoenix and are refreshed."""

from __future__ import annotations

import asyncio
import base64
import json
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import msgspec
import pytest

from tests.support.mcp_helper import Helper, Refused, files_in, helper
from tests.support.mcp_web import Asked, Given, SignInServer, WebServer, data, serving
from tools.mcp_host.protocol import Auth, AuthUrl, Connect, NewCredentials, OAuth, ServerStatus, is_plain_address, raw


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
