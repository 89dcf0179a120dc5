"""A web server for tabs of Phoenix: textual-serve behind a token, started by `phoenix serve`."""

from __future__ import annotations

import asyncio
import hmac
import shlex
import socket
import sys
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

from aiohttp import web
from msgspec import Struct
from textual_serve.server import Server

COOKIE: Final = "phoenix_token"
SECONDS_TO_CLOSE: Final = 3.0
HEADERS: Final = {
    "Content-Security-Policy": "default-src 'self' 'unsafe-inline' data: blob:; connect-src 'self' ws: wss:",
    "Referrer-Policy": "no-referrer",
    "X-Frame-Options": "DENY",
}
"""Nothing is fetched from elsewhere (textual-serve's page asks a font of another host), nothing is told to others."""
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Address(Struct, frozen=True):
    """Where the server listens and what lets one in."""

    host: str
    port: int
    token: str
    public_url: str = ""
    """What stands before the path in a browser, where a proxy is in between."""

    @property
    def url(self) -> str:
        """Without the token."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return self.public_url.rstrip("/") or f"http://{host}:{self.port}"

    @property
    def invitation(self) -> str:
        """With the token, for the first visit."""
        return f"{self.url}/?token={self.token}"


class TokenServer(Server):
    """Lets in who brings the token; it then lives in a cookie, not in the address."""

    def __init__(self, command: Sequence[str], address: Address, started: Callable[[], None]) -> None:
        super().__init__(  # pyright: ignore[reportUnknownMemberType] - a PathLike without its type
            shlex.join(command), host=address.host, port=address.port, title="Phoenix", public_url=address.url
        )
        self._address = address
        self._started = started

    async def on_startup(self, app: web.Application) -> None:
        """Say where it is."""
        self._started()

    async def make_app(self) -> web.Application:
        """The application with its guard."""
        app = await self._make_app()
        app.middlewares.append(self._guard)
        return app

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        if self._is_token(request.query.get("token", "")):
            entered = web.HTTPFound("/")
            entered.set_cookie(COOKIE, self._address.token, httponly=True, samesite="Strict", path="/")
            return entered
        if not self._is_token(request.cookies.get(COOKIE, "")):
            return web.Response(status=403, text="Open the address that `phoenix serve` printed: its token is missing.")
        origin = request.headers.get("Origin")
        if origin is not None and origin != self._address.url:
            return web.Response(status=403, text=f"Only {self._address.url} may talk to this Phoenix.")
        answer = await handler(request)
        if not answer.prepared:
            answer.headers.update(HEADERS)
        return answer

    def _is_token(self, text: str) -> bool:
        return hmac.compare_digest(text.encode(), self._address.token.encode())


def serve(command: Sequence[str], address: Address, listener: socket.socket, started: Callable[[], None]) -> None:
    """Serve until Ctrl+C or SIGTERM; every tab is closed then."""
    server = TokenServer(command, address, started)
    quiet: dict[str, Any] = {"print": None, "access_log": None}
    loop = asyncio.new_event_loop()
    web.run_app(server.make_app(), sock=listener, shutdown_timeout=SECONDS_TO_CLOSE, loop=loop, **quiet)


def program(arguments: Sequence[str]) -> list[str]:
    """What is started for a tab."""
    return [sys.executable, "-m", "phoenix_tui", *arguments]
