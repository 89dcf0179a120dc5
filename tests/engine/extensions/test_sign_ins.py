"""Signing in to servers over HTTP through the hub: the address, the browser, the stored tokens."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from msgspec import Raw
from msgspec.structs import replace

from engine.extensions.mcp.credentials_file import CredentialsFile, credentials_key
from engine.ports.mcp import ServerDefinition, ServerOrigin, ServerState, SignInAddress
from tests.support.mcp_hubs import Hub, hub_in
from tests.support.mcp_web import SignInServer, WebServer, serving
from tests.support.waiting import PATIENCE, poll
from tests.tools.mcp_host.test_signing_in import fetch
from tools.mcp_host.protocol import NOTHING


def over_http(url: str) -> ServerDefinition:
    return ServerDefinition(
        name="web", origin=ServerOrigin.USER, source="config.toml", transport="http", url=url, digest=url, identity=url
    )


async def address(one: Hub) -> SignInAddress:
    found = await one.hub.sign_ins.begin(one.record, "web")
    assert isinstance(found, SignInAddress), found
    return found


async def connected(one: Hub) -> bool:
    return (await one.view("web")).state is ServerState.CONNECTED


async def wait_until_connected(one: Hub) -> None:
    async with asyncio.timeout(PATIENCE):
        while not await connected(one):
            await poll(lambda: True)


async def test_a_sign_in_in_the_browser_connects_and_lasts(tmp_path: Path) -> None:
    server = SignInServer()
    async with serving(server):
        async with hub_in(tmp_path, over_http(server.url)) as one:
            await one.hub.settle(one.record, 20.0)
            assert (await one.view("web")).state is ServerState.NEEDS_AUTH
            assert not [asked for asked in server.asked if asked.path == "/registration"], (
                "nothing before the user asks"
            )
            found = await address(one)
            assert found.host == f"127.0.0.1:{server.port}"
            state = parse_qs(urlsplit(found.url).query)["state"][0]
            assert (await one.view("web")).state is ServerState.NEEDS_AUTH
            await fetch(f"{found.callback}?code=c&state={state}")
            await wait_until_connected(one)
            assert "mcp__web__fine" in one.names()
        tokens = tmp_path / "mcp_tokens.json"
        assert tokens.stat().st_mode & 0o777 == 0o600
        assert "token1" in tokens.read_text()
        async with hub_in(tmp_path, over_http(server.url)) as one:
            await one.hub.settle(one.record, 20.0)
            assert (await one.view("web")).state is ServerState.CONNECTED
            assert await one.hub.sign_ins.begin(one.record, "web") == (
                "MCP server 'web' is connected: there is nothing to sign in to."
            )
            assert await one.hub.sign_ins.forget(one.record, "web") == ""
            await one.hub.settle(one.record, 20.0)
            assert (await one.view("web")).state is ServerState.NEEDS_AUTH
        assert "token1" not in tokens.read_text()


async def test_a_pasted_address_signs_in_and_another_does_not(tmp_path: Path) -> None:
    server = SignInServer()
    async with serving(server), hub_in(tmp_path, over_http(server.url)) as one:
        found = await address(one)
        state = parse_qs(urlsplit(found.url).query)["state"][0]
        wrong = await one.hub.sign_ins.paste(one.record, "web", "http://127.0.0.1/callback?code=c&state=other")
        assert "its state is another one" in wrong
        assert await one.hub.sign_ins.paste(one.record, "web", f" http://x/callback?code=c&state={state}\n") == ""
        await wait_until_connected(one)


async def test_reasons_why_there_is_no_sign_in_are_sentences(tmp_path: Path) -> None:
    async with serving(WebServer(lambda _: None)) as server, hub_in(tmp_path, over_http(server.url)) as one:
        assert "nothing to sign in to" in str(await one.hub.sign_ins.begin(one.record, "web"))
        assert "no such MCP server" in str(await one.hub.sign_ins.begin(one.record, "other"))
        assert "no such MCP server" in await one.hub.sign_ins.paste(one.record, "other", "x")


def test_tokens_of_a_project_are_apart_from_those_of_the_user() -> None:
    users = over_http("https://a.example/mcp")
    projects = replace(users, origin=ServerOrigin.PROJECT)
    keys = {credentials_key(users, Path("/a")), credentials_key(users, Path("/b"))}
    assert len(keys) == 1
    keys |= {credentials_key(projects, Path("/a")), credentials_key(projects, Path("/b"))}
    assert len(keys) == 3


def test_a_damaged_file_of_tokens_is_none_and_is_replaced(tmp_path: Path) -> None:
    file = CredentialsFile(tmp_path / "tokens.json")
    file.path.write_text("{" * 100_000)
    assert bytes(file.get("a")) == bytes(NOTHING)
    file.put("a", Raw(b'{"tokens":{}}'))
    file.put("b", Raw(b"1"))
    file.put("b", NOTHING)
    assert json.loads(file.path.read_text()) == {"a": {"tokens": {}}}
    assert bytes(file.get("a")) == b'{"tokens": {}}'
