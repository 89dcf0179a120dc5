"""A web server for tabs of Phoenix: textual-serve behind a token, started by `phoenix serve`."""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

from aiohttp import web
from textual_serve.server import Server, to_int

from phoenix_tui.lifecycle.loop_watchdog import LoopWatch
from phoenix_tui.lifecycle.memory_limit import NO_LIMIT, no_one
from phoenix_tui.lifecycle.stop_signals import IN_A_TAB, listen
from phoenix_tui.terminal.serving.doors import PageAddress, refusal, same
from phoenix_tui.terminal.serving.tabs import LARGEST_MESSAGE, Tab, bounded, obey
from tools.process.link import ZygoteLink, spawn_zygote

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
        super().__init__(  # pyright: ignore[reportUnknownMemberType] - a PathLike without its type
            "phoenix", host=address.host, port=address.port, title="Phoenix", public_url=address.url
        )
        self._arguments = arguments
        self._address = address
        self._started = started
        self._link = link
        self._watch: LoopWatch | None = None
        self._tabs = 0
        self._running: set[Tab] = set()

    async def on_startup(self, app: web.Application) -> None:
        """End by signals from now on, whatever the loop does, and say where it is."""
        listen(asyncio.get_running_loop(), IN_A_TAB, self._told)  # replaces the handlers of aiohttp, which ignore HUP
        self._link.arm(IN_A_TAB)
        self._watch = LoopWatch(self._link, NO_LIMIT, no_one)
        self._started()

    async def on_shutdown(self, app: web.Application) -> None:
        """End every tab: it keeps its draft, and closes its page."""
        await asyncio.gather(*(tab.stop() for tab in set(self._running)))

    def over(self) -> None:
        """The loop has ended."""
        if self._watch is not None:
            self._watch.stop()

    def _told(self, _number: signal.Signals) -> None:
        if self._watch is not None:
            self._watch.end_begins()
        raise web.GracefulExit

    async def make_app(self) -> web.Application:
        """The application with its guard."""
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
            return self._entered(request)
        reason = refusal(self._address, request.path, request.headers)
        if reason:
            return web.Response(status=403, text=reason)
        if not same(request.cookies.get(self._address.cookie_name, ""), self._address.cookie):
            return web.Response(status=403, text=UNINVITED)
        return await handler(request)

    def _entered(self, request: web.Request) -> web.StreamResponse:
        """Send the page without the token in its address; the key of a tab is behind `#`, which browsers never send."""
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

    async def handle_index(self, request: web.Request) -> web.Response:  # pyright: ignore[reportIncompatibleMethodOverride] - textual-serve's type is that before its decorator
        """The page of textual-serve, which takes the key of a tab from the browser's own storage."""
        page: Any = await super().handle_index(request)
        answer = page if isinstance(page, web.Response) else web.Response(status=500)
        answer.text = (answer.text or "").replace("</body>", f"{SCRIPT % UNINVITED}</body>")
        return answer

    async def handle_websocket(self, request: web.Request) -> web.WebSocketResponse:
        """Run a tab until its page is closed."""
        if not same(request.match_info.get("key", ""), self._address.page_key):
            raise web.HTTPForbidden(text=UNINVITED)
        if self._tabs >= MOST_TABS:
            raise web.HTTPServiceUnavailable(text=f"{MOST_TABS} tabs are open; close one first.")
        self._tabs += 1
        try:
            return await self._run_tab(request)
        finally:
            self._tabs -= 1

    async def _run_tab(self, request: web.Request) -> web.WebSocketResponse:
        websocket = web.WebSocketResponse(heartbeat=15, timeout=CLOSING, max_msg_size=LARGEST_MESSAGE)
        width, height = (bounded(to_int(request.query.get(name, ""), 80)) for name in ("width", "height"))
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
