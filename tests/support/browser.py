"""A headless Chromium, driven through its debugging protocol."""

from __future__ import annotations

import asyncio
import base64
import itertools
import shutil
import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp

CHROMIUM = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), ""
)
FLAGS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--remote-debugging-port=0")
LARGEST = 64_000_000
PATIENCE = 45.0


@dataclass
class Tab:
    """One page."""

    socket: aiohttp.ClientWebSocketResponse
    _ids: itertools.count[int] = field(default_factory=lambda: itertools.count(1))

    async def ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send one command and give its result; events are passed over."""
        number = next(self._ids)
        await self.socket.send_json({"id": number, "method": method, "params": parameters})
        while True:
            answer: dict[str, Any] = await self.socket.receive_json()
            if answer.get("id") == number:
                assert "error" not in answer, answer
                result: dict[str, Any] = answer["result"]
                return result

    async def open(self, url: str) -> None:
        """Go there."""
        await self.ask("Page.navigate", url=url)

    async def click(self, x: int, y: int) -> None:
        """Press and release the left button there."""
        for kind in ("mousePressed", "mouseReleased"):
            await self.ask("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    async def type(self, text: str) -> None:
        """Type letters, and Enter for a newline."""
        for letter in text:
            key = {"\n": ("Enter", "\r", 13)}.get(letter, (letter, letter, 0))
            await self.ask(
                "Input.dispatchKeyEvent", type="keyDown", key=key[0], text=key[1], windowsVirtualKeyCode=key[2]
            )
            await self.ask("Input.dispatchKeyEvent", type="keyUp", key=key[0], windowsVirtualKeyCode=key[2])

    async def evaluate(self, expression: str) -> Any:
        """The value of an expression in the page."""
        answer = await self.ask("Runtime.evaluate", expression=expression, returnByValue=True)
        return answer["result"].get("value")

    async def until(self, expression: str) -> None:
        """Wait until an expression holds; the browser itself waits for frames."""
        waits = (
            f"new Promise(done => {{ const look = () => ({expression}) ? done(true) : setTimeout(look, 20); look() }})"
        )
        async with asyncio.timeout(PATIENCE):
            await self.ask("Runtime.evaluate", expression=waits, awaitPromise=True)

    async def picture(self, path: Path) -> None:
        """A PNG of what is shown."""
        answer = await self.ask("Page.captureScreenshot", format="png")
        await asyncio.to_thread(path.write_bytes, base64.b64decode(answer["data"]))


@asynccontextmanager
async def browser(width: int = 1280, height: int = 800) -> AsyncGenerator[Tab]:
    """A Chromium with one empty page; gone with the block."""
    profile = tempfile.mkdtemp(prefix="phoenix-chromium-")
    process = await asyncio.create_subprocess_exec(
        CHROMIUM,
        *FLAGS,
        f"--user-data-dir={profile}",
        f"--window-size={width},{height}",
        "about:blank",
        stderr=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.DEVNULL,
    )
    try:
        address = await asyncio.wait_for(_debugger(process), 20)
        async with aiohttp.ClientSession() as session:
            pages: list[dict[str, Any]] = await (await session.get(f"http://{address}/json/list")).json()
            page = next(page for page in pages if page["type"] == "page")
            async with session.ws_connect(page["webSocketDebuggerUrl"], max_msg_size=LARGEST) as socket:
                yield Tab(socket)
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.communicate()
        shutil.rmtree(profile, ignore_errors=True)


async def _debugger(process: asyncio.subprocess.Process) -> str:
    """Host and port that Chromium says it listens on."""
    assert process.stderr is not None
    while line := (await process.stderr.readline()).decode("utf-8", "replace"):
        if "DevTools listening on ws://" in line:
            return line.split("ws://")[1].split("/")[0]
    raise AssertionError("Chromium did not start")
