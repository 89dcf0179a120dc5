"""A web server for tabs of Phoenix: textual-serve behind a token, started by `phoenix serve`."""

from __future__ import annotations

import asyncio
import json
import logging
import signal
import socket
from asyncio.subprocess import Process
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any, Final

from aiohttp import WSMsgType, web
from textual_serve.app_service import AppService
from textual_serve.download_manager import DownloadManager
from textual_serve.server import Server, to_int

from phoenix_tui.lifecycle.stop_signals import IN_A_TAB, listen
from phoenix_tui.lifecycle.watchdogs import NO_LIMIT, LoopWatch, no_one
from phoenix_tui.terminal.serving.doors import PageAddress, refusal, same
from phoenix_tui.terminal.serving.handover import filter_environment, hand_over, program
from tools.process.link import ZygoteLink, spawn_zygote

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
                env=filter_environment(environment),
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
        await super().set_terminal_size(limit_cells(width), limit_cells(height))


def limit_cells(cells: object) -> int:
    return min(max(cells, 1), MOST_CELLS) if isinstance(cells, int) else 80


async def obey(websocket: web.WebSocketResponse, tab: Tab) -> None:
    """Carry out messages of the page until it is closed; one with invalid messages is closed."""
    async for message in websocket:
        if message.type is not WSMsgType.TEXT:
            continue
        try:
            kind, *rest = json.loads(message.data)
            value: Any = rest[0] if rest else None
            match str(kind):
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
        except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
            await websocket.close(code=1008, message=b"not understood")
            return


SECONDS_TO_CLOSE: Final = 3.0
CLOSING: Final = 1.0
"""Seconds for a page to close, too."""
MOST_TABS: Final = 32
"""Tabs at once; each is a Phoenix of some 60 MB."""
HEADERS: Final = {
    "Content-Security-Policy": "default-src 'self' 'unsafe-inline' data: blob:; connect-src 'self' ws: wss:; "
    "frame-ancestors 'none'; base-uri 'none'; form-action 'none'; object-src 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Frame-Options": "DENY",
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
"""Headers that forbid foreign sources (textual-serve's page asks for a font of another host) and referrers."""
NOT_KEPT: Final = {"Cache-Control": "no-store"}
UNINVITED: Final = "The token is missing; open the address that `phoenix serve` printed."
SCRIPT: Final = """<script>
  (() => {
    const name = "phoenix-key", given = location.hash.match(/^#key=([0-9a-f]{64})$/);
    if (given) {
      localStorage.setItem(name, given[1]);
      history.replaceState(null, "", location.pathname);
    }
    const key = localStorage.getItem(name);
    document.getElementById("terminal").dataset.sessionWebsocketUrl += "/" + (key || "none");
    if (!key) document.querySelector(".intro div").textContent = "%s";
  })();
</script>
"""
"""Script that keeps the key of a tab in the storage of this origin: unlike a cookie it is not sent to other ports of
the host.
"""
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class TokenServer(Server):
    """Admits requests with the token, which then stays in the browser, not in the address."""

    def __init__(
        self, arguments: Sequence[str], address: PageAddress, started: Callable[[], None], link: ZygoteLink
    ) -> None:
        super().__init__("phoenix", host=address.host, port=address.port, title="Phoenix", public_url=address.url)
        self._arguments = arguments
        self._address = address
        self._started = started
        self._link = link
        self._watch: LoopWatch | None = None
        self._tabs = 0
        self._running: set[Tab] = set()

    async def on_startup(self, app: web.Application) -> None:
        """End by signals from now on, whatever the loop does, and say where it is."""
        listen(asyncio.get_running_loop(), IN_A_TAB, self._end)  # replaces the handlers of aiohttp, which ignore HUP
        self._link.arm(IN_A_TAB)
        self._watch = LoopWatch(self._link, NO_LIMIT, no_one)
        self._started()

    async def on_shutdown(self, app: web.Application) -> None:
        """End every tab: it keeps its draft, and closes its page."""
        await asyncio.gather(*(tab.stop() for tab in set(self._running)))

    def over(self) -> None:
        if self._watch is not None:
            self._watch.stop()

    def _end(self, _number: signal.Signals) -> None:
        if self._watch is not None:
            self._watch.end_begins()
        raise web.GracefulExit

    async def make_app(self) -> web.Application:
        app = await self._make_app()
        app.router.add_get("/ws/{key}", self.handle_websocket)
        app.middlewares.append(self._guard)
        return app

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            answer = await self._answer(request, handler)
        except web.HTTPException as error:
            answer = error
        if not answer.prepared:
            answer.headers.update(HEADERS)
            if not request.path.startswith("/static/"):
                answer.headers.update(NOT_KEPT)
        if isinstance(answer, web.HTTPException):
            raise answer
        return answer

    async def _answer(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        token = request.query.get("token")
        if same(token or "", self._address.token):
            if request.headers.get("Host", "").lower() not in self._address.hosts:
                return web.Response(status=403, text=f"This Phoenix is only served at {self._address.url}.")
            entered = web.HTTPFound(f"/#key={self._address.page_key}")
            entered.set_cookie(
                self._address.cookie_name,
                self._address.cookie,
                httponly=True,
                samesite="Strict",
                path="/",
                secure=self._address.origin.startswith("https:"),
            )
            return entered
        reason = refusal(self._address, request.path, request.headers)
        if reason:
            return web.Response(status=403, text=reason)
        if not same(request.cookies.get(self._address.cookie_name, ""), self._address.cookie):
            return web.Response(status=403, text=UNINVITED)
        return await handler(request)

    async def handle_index(self, request: web.Request) -> web.Response:
        """The page of textual-serve, which takes the key of a tab from the browser's own storage."""
        page: Any = await super().handle_index(request)
        answer = page if isinstance(page, web.Response) else web.Response(status=500)
        answer.text = (answer.text or "").replace("</body>", f"{SCRIPT % UNINVITED}</body>")
        return answer

    async def handle_websocket(self, request: web.Request) -> web.WebSocketResponse:
        if not same(request.match_info.get("key", ""), self._address.page_key):
            raise web.HTTPForbidden(text=UNINVITED)
        if self._tabs >= MOST_TABS:
            raise web.HTTPServiceUnavailable(text=f"{MOST_TABS} tabs are open; close one first.")
        self._tabs += 1
        try:
            websocket = web.WebSocketResponse(heartbeat=15, timeout=CLOSING, max_msg_size=LARGEST_MESSAGE)
            width, height = (limit_cells(to_int(request.query.get(name, ""), 80)) for name in ("width", "height"))
            await websocket.prepare(request)
            tab = Tab(self._arguments, websocket, self.download_manager)
            self._running.add(tab)
            try:
                await tab.start(width, height)
                await obey(websocket, tab)
            except ConnectionError:
                pass  # the page is gone
            finally:
                await tab.stop()
                self._running.discard(tab)
            return websocket
        finally:
            self._tabs -= 1


def serve(arguments: Sequence[str], address: PageAddress, listener: socket.socket, started: Callable[[], None]) -> None:
    """Serve until Ctrl+C, SIGTERM or SIGHUP; every tab is closed then."""
    link = spawn_zygote()
    server = TokenServer(arguments, address, started, link)
    quiet: dict[str, Any] = {"print": None, "access_log": None}
    logging.getLogger("aiohttp").setLevel(logging.CRITICAL)  # an invalid request gets an answer, not a traceback
    loop = asyncio.new_event_loop()
    try:
        web.run_app(server.make_app(), sock=listener, shutdown_timeout=SECONDS_TO_CLOSE, loop=loop, **quiet)
    finally:
        server.over()
        link.close()
