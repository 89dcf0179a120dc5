"""One sign-in of the user: a listener on 127.0.0.1 for the browser's redirect, or the address pasted by the user."""

from __future__ import annotations

import asyncio
import contextlib
import hmac
from collections.abc import Callable
from urllib.parse import parse_qs, urlsplit

from tools.clean import clean_line
from tools.mcp_host.addresses import is_plain_address
from tools.mcp_host.causes import Failed
from tools.mcp_host.limits import SIGN_IN

LONGEST_REQUEST = 16 * 1024
PATIENCE = 10.0
"""Seconds for a browser to send its request."""
PAGE = "<!doctype html><meta charset=utf-8><title>Phoenix</title><p>{}"


class SignIn:
    """Waits for one redirect with the state of its address; others are refused and do not end it."""

    def __init__(self, opened: Callable[[str, str], None]) -> None:
        self._opened = opened
        """Called with the address for the browser, and the callback."""
        self._result: asyncio.Future[tuple[str, str, str | None]] = asyncio.get_running_loop().create_future()
        self._server: asyncio.Server | None = None
        self._state = ""
        self.callback = ""

    async def listen(self, port: int) -> None:
        """Listen on this port, or on any when it is 0 or taken."""
        try:
            self._server = await asyncio.start_server(self._serve, "127.0.0.1", port, limit=LONGEST_REQUEST)
        except OSError:
            self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, limit=LONGEST_REQUEST)
        self.callback = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/callback"

    def open(self, url: str) -> None:
        """Give the address of the authorization server to the user."""
        if not is_plain_address(url):
            raise Failed("failed", "The server's address for signing in is none that a browser should open.")
        self._state = (parse_qs(urlsplit(url).query).get("state") or [""])[-1]
        self._opened(url, self.callback)

    async def result(self) -> tuple[str, str, str | None]:
        """Code, state and issuer of the redirect.

        Raises:
            Failed: the authorization server refused, or the time was over.
        """
        try:
            return await asyncio.wait_for(asyncio.shield(self._result), SIGN_IN)
        except TimeoutError:
            raise Failed("timeout", f"Signing in took longer than {SIGN_IN / 60:.0f} minutes.") from None

    def take(self, url: str) -> str:
        """Take the address that the browser was sent to; returns the reason if it does not belong here."""
        try:
            query = {name: values[-1] for name, values in parse_qs(urlsplit(url.strip()).query).items()}
        except ValueError:
            return "It is not an address."
        if not self._state or not hmac.compare_digest(query.get("state", "").encode(), self._state.encode()):
            return "It does not belong to this sign-in: its state is another one."
        if self._result.done():
            return "This sign-in is already over."
        if error := query.get("error"):
            text = clean_line(f"{error} {query.get('error_description', '')}".strip()[:300])
            self._result.set_exception(Failed("needs_auth", f"The authorization server refused: {text}"))
        elif code := query.get("code"):
            self._result.set_result((code, query["state"], query.get("iss")))
        else:
            return "It has no code."
        return ""

    def close(self) -> None:
        """Stop listening."""
        if self._server is not None:
            self._server.close()
        if not self._result.done():
            self._result.cancel()
        elif not self._result.cancelled():
            self._result.exception()  # read once, so that the loop does not report it

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, TimeoutError, asyncio.LimitOverrunError, asyncio.IncompleteReadError):
            async with asyncio.timeout(PATIENCE):
                head = await reader.readuntil(b"\r\n\r\n")
                method, _, rest = head.partition(b" ")
                target = rest.partition(b" ")[0].decode("ascii", "replace")
                if method != b"GET" or urlsplit(target).path != "/callback":
                    status, text = "404 Not Found", "This address is not part of the sign-in."
                elif problem := self.take(target):
                    status, text = "400 Bad Request", problem
                else:
                    status, text = "200 OK", "You can close this page and go back to Phoenix."
                body = PAGE.format(text).encode()
                writer.write(
                    f"HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {len(body)}\r\n"
                    "Cache-Control: no-store\r\nConnection: close\r\n\r\n".encode()
                    + body
                )
                await writer.drain()
        writer.close()
