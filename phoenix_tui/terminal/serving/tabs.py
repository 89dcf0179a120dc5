"""One tab as textual-serve runs it, started without a shell, and with bounds on messages of a page."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
from asyncio.subprocess import Process
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final

from aiohttp import WSMsgType, web
from textual_serve.app_service import AppService
from textual_serve.download_manager import DownloadManager

from phoenix_tui.terminal.serving.handover import hand_over, program, shown_environment

MOST_CELLS: Final = 1000
"""Columns, and rows, of a tab; a page may ask for any number, and a screen takes memory for each cell."""
TELLING: Final = 1.0
"""Seconds in which a tab takes a word: it reads in a thread of its own."""
END_SECONDS: Final = 4.0
"""Seconds for a tab to end after a request; most take 0.2."""
KILL_SECONDS: Final = 2.5
"""Seconds after SIGTERM: a tab that does not take it is ended by its own watch after 1.6, by its zygote after 2."""
LARGEST_MESSAGE: Final = 4 * 1024 * 1024
"""Bytes of one message of a page: a long paste has less."""


class Tab(AppService):
    """A Phoenix of its own behind one websocket."""

    def __init__(self, arguments: Sequence[str], websocket: web.WebSocketResponse, downloads: DownloadManager) -> None:
        async def close() -> None:
            await websocket.close()

        super().__init__(
            "",
            write_bytes=websocket.send_bytes,
            write_str=websocket.send_str,
            close=close,
            download_manager=downloads,
        )
        self._arguments = arguments

    async def _open_app_process(self, width: int = 80, height: int = 24) -> Process:
        """Start Phoenix; it gets its keys once it has closed itself to other processes."""
        environment = self._build_environment(width=width, height=height)
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = process = await asyncio.create_subprocess_exec(
                *program(theirs.fileno(), self._arguments),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env=shown_environment(environment),
                pass_fds=(theirs.fileno(),),
            )
        self._telling = asyncio.create_task(asyncio.to_thread(hand_over, ours, environment))
        assert process.stdin is not None
        self._stdin = process.stdin
        return process

    async def stop(self) -> None:
        """End Phoenix in order; one that cannot be reached, or does not end, gets a signal, then is killed."""
        process, task = self._process, self._task
        self._task = None
        if process is None or task is None:
            return
        with suppress(TimeoutError, ConnectionError):
            async with asyncio.timeout(TELLING):
                await self._download_manager.cancel_app_downloads(app_service_id=self.app_service_id)
                await self.send_meta({"type": "quit"})
        for seconds, number in ((END_SECONDS, signal.SIGTERM), (KILL_SECONDS, signal.SIGKILL)):
            done, _ = await asyncio.wait((task,), timeout=seconds)
            if done:
                break
            with suppress(ProcessLookupError):
                process.send_signal(number)
        with suppress(TimeoutError, ConnectionError):  # an ended process has not closed its page
            async with asyncio.timeout(TELLING):
                await self.remote_close()
        await asyncio.wait((task,), timeout=TELLING)
        with suppress(TimeoutError):  # its pipes may close a moment before the process ends, and the loop with it
            async with asyncio.timeout(TELLING):
                await process.wait()

    async def set_terminal_size(self, width: int, height: int) -> None:
        """Set the new size, within bounds."""
        await super().set_terminal_size(bounded(width), bounded(height))


def bounded(cells: object) -> int:
    """A number of columns or rows that can be drawn."""
    return min(max(cells, 1), MOST_CELLS) if isinstance(cells, int) else 80


async def obey(websocket: web.WebSocketResponse, tab: Tab) -> None:
    """Carry out messages of the page until it is closed; one with invalid messages is closed."""
    async for message in websocket:
        if message.type is not WSMsgType.TEXT:
            continue
        try:
            kind, *rest = json.loads(message.data)
            await _carry_out(websocket, tab, str(kind), rest[0] if rest else None)
        except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
            await websocket.close(code=1008, message=b"not understood")
            return


async def _carry_out(websocket: web.WebSocketResponse, tab: Tab, kind: str, value: Any) -> None:
    match kind:
        case "stdin":
            await tab.send_bytes(value.encode("utf-8", "replace"))
        case "resize":
            await tab.set_terminal_size(value["width"], value["height"])
        case "ping":
            await websocket.send_json(["pong", str(value)[:100]])
        case "blur":
            await tab.blur()
        case "focus":
            await tab.focus()
        case _:
            pass
