"""`phoenix serve`: a token lets one in, and a real browser works with it."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path

import aiohttp
import pytest

from tests.support.browser import CHROMIUM, browser
from tests.support.cli import phoenix_in
from tests.support.serving import DEADLINE, serving


async def test_only_who_brings_the_token_gets_in_and_it_leaves_the_address(tmp_path: Path) -> None:
    async with serving(phoenix_in(tmp_path)) as served, aiohttp.ClientSession(cookie_jar=_jar()) as session:
        address = served.address
        refused = await session.get(address)
        assert refused.status == 403
        assert "token" in await refused.text()
        assert (await session.get(f"{address}?token=wrong")).status == 403
        entered = await session.get(served.invitation)
        assert (entered.status, str(entered.url).partition("#")[0]) == (200, address)
        assert "default-src 'self'" in entered.headers["Content-Security-Policy"]
        foreign = await session.get(f"{address}ws", headers={"Origin": "http://elsewhere.example"})
        assert foreign.status == 403


def _jar() -> aiohttp.CookieJar:
    return aiohttp.CookieJar(unsafe=True)  # cookies of a bare address, as a browser keeps them


async def test_a_port_in_use_is_one_sentence_with_the_fix(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        ran = await phoenix_in(tmp_path).run("serve", "--port", str(taken.getsockname()[1]))
    assert ran.code == 2
    assert "choose another with --port" in ran.err
    assert len(ran.err.splitlines()) == 1


async def test_listening_beyond_this_machine_is_warned_of(tmp_path: Path) -> None:
    process = await phoenix_in(tmp_path).start("serve", "--host", "0.0.0.0", "--port", "0")
    assert process.stdout is not None
    await asyncio.wait_for(process.stdout.readline(), DEADLINE)
    process.terminate()
    _, err = await asyncio.wait_for(process.communicate(), DEADLINE)
    assert b"can run commands as you" in err


@pytest.mark.slow
@pytest.mark.skipif(not CHROMIUM, reason="no Chromium on this machine")
async def test_a_conversation_is_held_in_a_browser(tmp_path: Path) -> None:
    phoenix = phoenix_in(tmp_path)
    async with serving(phoenix) as served, browser() as tab:
        await tab.open(served.invitation)
        await tab.until("document.querySelector('.xterm-helper-textarea') && document.body.className.includes('byte')")
        await tab.click(600, 300)
        await tab.type("count to 3\n")

        async def answered() -> bool:
            listed = await phoenix.run("conversations", "list", "--json")
            return any(row["message_count"] >= 2 for row in listed.json)

        async with asyncio.timeout(DEADLINE):
            while not await answered():
                pass
