"""Signing in to servers over HTTP, by the browser or by the headers that a program prints."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from msgspec import Raw
from msgspec.structs import replace

from engine.extensions.mcp import server_start
from engine.extensions.mcp.credentials_file import CredentialsFile, credentials_key
from engine.ports.mcp import ServerDefinition, ServerOrigin, ServerState, SignInAddress
from tests.support.mcp_hubs import Hub, hub_in
from tests.support.mcp_web import Asked, Given, SignInServer, WebServer, serving
from tests.support.waiting import PATIENCE, poll
from tests.tools.mcp_host.test_http_servers import fetch
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


def helped(url: str, program: str, origin: ServerOrigin = ServerOrigin.USER) -> ServerDefinition:
    made = over_http(url)
    environment = {"GIVEN": "yes"}
    helper = (sys.executable, "-c", program)
    return replace(made, headers={"X-A": "written"}, headers_helper=helper, environment=environment, origin=origin)


async def outcome(tmp_path: Path, definition: ServerDefinition) -> tuple[ServerState, str]:
    async with hub_in(tmp_path, definition) as one:
        await one.hub.settle(one.record, 20.0)
        view = await one.view("web")
        return view.state, view.text


async def test_printed_headers_are_sent_with_the_written_ones(tmp_path: Path) -> None:
    program = "import json, os; print(json.dumps({'X-A': 'printed', 'X-B': os.environ.get('GIVEN', 'none')}))"
    async with serving(WebServer()) as server:
        assert (await outcome(tmp_path, helped(server.url, program)))[0] is ServerState.CONNECTED
        assert {(one.headers["x-a"], one.headers["x-b"]) for one in server.asked} == {("printed", "yes")}


async def test_a_projects_program_gets_no_variables_of_the_definition(tmp_path: Path) -> None:
    program = "import json, os; print(json.dumps({'X-B': os.environ.get('GIVEN', 'none')}))"
    async with serving(WebServer()) as server:
        await outcome(tmp_path, helped(server.url, program, ServerOrigin.PROJECT))
        assert {one.headers["x-b"] for one in server.asked} == {"none"}


async def test_any_other_output_fails_the_connection_with_a_sentence(tmp_path: Path) -> None:
    said = {
        "print('[]')": "printed no JSON object",
        "print('{\"A\": 1}')": "printed no JSON object",
        'print(\'{"A": "b\\\\r\\\\nX: y"}\')': "printed no JSON object",
        'print(\'{"A B": "c"}\')': "printed no JSON object",
        "print('{' * 100_000)": "printed no JSON object",
        "import json; print(json.dumps({f'A{n}': '' for n in range(51)}))": "at most 50 headers",
        "raise SystemExit('error: \\x1b[31mno login')": "failed: error: ",
    }
    async with serving(WebServer()) as server:
        made = [replace(helped(server.url, program), name=f"web{number}") for number, program in enumerate(said)]
        servers = [replace(one, digest=one.name, identity=one.name) for one in made]
        async with hub_in(tmp_path, *servers) as hub:
            await hub.hub.settle(hub.record, PATIENCE)
            views = [await hub.view(one.name) for one in servers]
        assert server.asked == [], "nothing is sent without them"
    assert [view.state for view in views] == [ServerState.FAILED] * len(said)
    assert [text in view.text for view, text in zip(views, said.values(), strict=True)] == [True] * len(said), views
    assert not any("\x1b" in view.text for view in views)


async def test_a_program_that_does_not_end_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_start, "SECONDS", 0.3)
    async with serving(WebServer()) as server:
        state, text = await outcome(tmp_path, helped(server.url, "import time; time.sleep(600)"))
    assert (state, "its headersHelper took longer than" in text) == (ServerState.FAILED, True)


async def test_a_refusal_runs_it_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_start, "AGAIN", 0.0)
    count = tmp_path / "count"
    program = (
        f"from pathlib import Path; p = Path({str(count)!r}); n = len(p.read_text()) if p.exists() else 0; "
        "p.write_text('x' * (n + 1)); print('{\"X-N\": \"%d\"}' % n)"
    )
    expired: list[bool] = []

    def special(asked: Asked) -> Given | None:
        return Given(401) if expired and asked.headers["x-n"] == "0" else None

    async with serving(WebServer(special)) as server, hub_in(tmp_path, helped(server.url, program)) as one:
        await one.hub.settle(one.record, 20.0)
        expired.append(True)
        await one.call("mcp__web__fine")
        assert await poll(lambda: server.asked[-1].headers["x-n"] == "1")
        assert (await one.call("mcp__web__fine")).text.startswith("fine")
