"""`phoenix mcp login` and `logout` with the real program."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from urllib.parse import parse_qs, urlsplit
from urllib.request import urlopen

from tests.support.cli import ended, phoenix_in
from tests.support.mcp_web import SignInServer, WebServer, serving
from tests.support.program import program


async def test_login_prints_the_address_takes_a_pasted_one_and_logout_forgets(tmp_path: Path) -> None:
    server = SignInServer()
    phoenix = phoenix_in(tmp_path)
    async with serving(server):
        added = await phoenix.run("mcp", "add", "web", server.url)
        assert added.code == 0, added.err
        async with program(phoenix, "mcp", "login", "web", rows=200, columns=1_000) as running:
            await running.shows(f"Sign in to web at 127.0.0.1:{server.port}", "paste the address here")
            found = re.search(r"http://\S*authorization\S+", running.text)
            assert found is not None
            state = parse_qs(urlsplit(found[0]).query)["state"][0]
            running.type("http://elsewhere/?code=c&state=wrong\r")
            await running.shows("its state is another one")
            running.type(f"http://elsewhere/?code=c&state={state}\r")
            await running.shows("Signed in to web.")
        tried = await phoenix.run("mcp", "test", "web")
        assert (tried.code, "web: connected, 1 tool" in tried.out) == (0, True), tried.out
        assert (await phoenix.run("mcp", "logout", "web")).code == 0
        assert (await phoenix.run("mcp", "test", "web")).code == 1


async def test_login_without_a_keyboard_waits_for_the_browser_and_says_no_more(tmp_path: Path) -> None:
    server = SignInServer()
    phoenix = phoenix_in(tmp_path)
    async with serving(server):
        await phoenix.run("mcp", "add", "web", server.url)
        process = await phoenix.start("mcp", "login", "web")  # stdin is /dev/null
        assert process.stdout is not None
        while not (found := re.search(r"http://\S*authorization\S+", (await process.stdout.readline()).decode())):
            pass
        asked = parse_qs(urlsplit(found[0]).query)
        back = f"{asked['redirect_uri'][0]}?code=c&state={asked['state'][0]}"
        await asyncio.to_thread(lambda: urlopen(back, timeout=30).read())
        ran = await ended(process)
    assert (ran.code, ran.err) == (0, "")
    assert "Signed in to web." in ran.out


async def test_a_refused_sign_in_fails_with_the_reason(tmp_path: Path) -> None:
    server = SignInServer()
    phoenix = phoenix_in(tmp_path)
    async with serving(server):
        await phoenix.run("mcp", "add", "web", server.url)
        async with program(phoenix, "mcp", "login", "web", rows=200, columns=1_000) as running:
            await running.shows("paste the address here")
            found = re.search(r"http://\S*authorization\S+", running.text)
            assert found is not None
            state = parse_qs(urlsplit(found[0]).query)["state"][0]
            running.type(f"http://elsewhere/?error=access_denied&state={state}\r")
            await running.shows("The authorization server refused: access_denied")


async def test_login_to_what_needs_none_fails_with_a_sentence(tmp_path: Path) -> None:
    phoenix = phoenix_in(tmp_path)
    async with serving(WebServer()) as server:
        await phoenix.run("mcp", "add", "web", server.url)
        ran, unknown = await asyncio.gather(phoenix.run("mcp", "login", "web"), phoenix.run("mcp", "login", "other"))
    assert (ran.code, unknown.code) == (1, 1)
    assert "is connected: there is nothing to sign in to" in ran.err
    assert "no such MCP server" in unknown.err
