"""Servers that others wrote in TypeScript, where they are installed: PHOENIX_MCP_NPM names the node_modules folder."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.mcp_helper import Helper, helper, open_server
from tests.support.waiting import poll
from tests.tools.mcp_host.test_results_of_servers import answers, free_port
from tools.mcp_host.protocol import Answer, CallProgress, ImagePart, Root, ServerAsk, raw

MODULES = Path(os.environ.get("PHOENIX_MCP_NPM", "/usr/lib/node_modules"))
EVERYTHING = MODULES / "@modelcontextprotocol/server-everything/dist/index.js"
FILES = MODULES / "@modelcontextprotocol/server-filesystem/dist/index.js"
NODE = shutil.which("node") or ""
pytestmark = pytest.mark.skipif(
    not NODE or not EVERYTHING.exists() or not FILES.exists(),
    reason="needs node, @modelcontextprotocol/server-everything and server-filesystem in PHOENIX_MCP_NPM",
)


def over_http(transport: str, port: int) -> subprocess.Popen[bytes]:
    """server-everything over streamable HTTP or SSE."""
    return subprocess.Popen(
        [NODE, str(EVERYTHING), transport],
        env={"PATH": os.defpath, "PORT": str(port)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


async def try_everything(running: Helper) -> None:
    """Use the tools of server-everything."""
    assert await poll(lambda: len(running.items("tools").items) >= 10), running.items("tools")
    assert await running.text("echo", {"message": "hi"}) == "Echo: hi"
    assert any(isinstance(part, ImagePart) for part in (await running.call("get-tiny-image")).parts)
    weather = await running.call("get-structured-content", {"location": "Chicago"})
    assert not weather.is_error
    assert weather.parts[0].for_model
    assert (await running.call("get-resource-links", {"count": 2})).links
    await running.call("trigger-long-running-operation", {"duration": 1, "steps": 4})
    assert [event for event in running.events if isinstance(event, CallProgress)]


async def test_everything_over_stdio_with_questions(tmp_path: Path) -> None:
    async with helper(tmp_path) as running:
        process, pipes = open_server([NODE, str(EVERYTHING), "stdio"], tmp_path)
        roots = [Root(tmp_path.as_uri(), "work")]
        connected = await running.connect(pipes, roots=roots, elicitation=True, sampling=True)
        assert connected.protocol == "2025-11-25"
        await try_everything(running)
        names = {item.name for item in running.items("tools").items}
        asking = asyncio.ensure_future(running.text("trigger-elicitation-request"))
        ask = await running.event(ServerAsk)
        await running.ask(Answer(id=running.number(), ask=ask.ask, result=raw({"action": "decline"})), bool)
        assert "declined" in await asking
        assert "get-roots-list" in names
        assert tmp_path.as_uri() in await running.text("get-roots-list")
    assert await poll(lambda: process.poll() is not None)


@pytest.mark.parametrize(("transport", "word", "path"), [("http", "streamableHttp", "mcp"), ("sse", "sse", "sse")])
async def test_everything_over_http(transport: str, word: str, path: str, tmp_path: Path) -> None:
    port = free_port()
    process = over_http(word, port)
    try:
        assert await poll(lambda: answers(port))
        async with helper(tmp_path) as running:
            await running.connect_url(f"http://127.0.0.1:{port}/{path}", transport=transport)
            await try_everything(running)
    finally:
        process.kill()
        process.wait()


async def test_filesystem_takes_its_folder_from_the_roots(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("inside")
    async with helper(tmp_path) as running:
        process, pipes = open_server([NODE, str(FILES)], tmp_path)
        await running.connect(pipes, roots=[Root(tmp_path.as_uri())])
        reading = {"path": str(tmp_path / "a.txt")}
        listed = ""
        while str(tmp_path) not in listed:  # it asks for the roots after its first answers
            listed = await running.text("list_allowed_directories")
        assert "inside" in await running.text("read_text_file", reading)
        assert (await running.call("read_text_file", {"path": "/etc/passwd"})).is_error
    assert await poll(lambda: process.poll() is not None)
