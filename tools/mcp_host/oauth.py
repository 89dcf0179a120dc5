"""Sign-in to servers over HTTP: the tokens, and the one redirect that the browser makes."""

from __future__ import annotations

import asyncio
import contextlib
import hmac
from collections.abc import Callable
from typing import Any, Final, Literal, TypeAlias, TypeVar
from urllib.parse import parse_qs, urlsplit

import msgspec
from mcp.client.auth import OAuthClientProvider
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthMetadata,
    OAuthToken,
    ProtectedResourceMetadata,
)
from msgspec import Raw, Struct
from pydantic import AnyUrl, BaseModel, ValidationError

from tools.clean import clean_line
from tools.mcp_host.causes import AuthNeeded, ServerFailed
from tools.mcp_host.protocol import NOTHING, SIGN_IN, OAuth, is_plain_address, raw

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
            raise ServerFailed("failed", "The server's address for signing in is none that a browser should open.")
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
            raise ServerFailed("timeout", f"Signing in took longer than {SIGN_IN / 60:.0f} minutes.") from None

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
            self._result.set_exception(ServerFailed("needs_auth", f"The authorization server refused: {text}"))
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


M = TypeVar("M", bound=BaseModel)
SecretMethod: TypeAlias = Literal["client_secret_basic", "client_secret_post"]
Fields: TypeAlias = dict[str, str]
BASIC: Final = "client_secret_basic"
POST: Final = "client_secret_post"
NO_CALLBACK: Final = "http://127.0.0.1/callback"
"""Redirect address of a provider that never redirects."""


class Stored(Struct, omit_defaults=True):
    """Content of `Credentials`. The metadata says where to refresh tokens; the SDK would have to find it again."""

    tokens: dict[str, Any] = {}
    client: dict[str, Any] = {}
    expires_at: float | None = None
    server: dict[str, Any] = {}
    resource: dict[str, Any] = {}
    issuer: str = ""


class FixedScopes(OAuthClientMetadata):
    """Metadata whose scopes are those of the user, where the SDK would set the ones a server asks for."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name != "scope" or not self.scope:
            super().__setattr__(name, value)


class ServerAuth:
    """All that the helper knows for signing in to one server."""

    def __init__(self, url: str, oauth: OAuth | None, stored: Raw, changed: Callable[[Raw], None]) -> None:
        self._url = url
        self._oauth = oauth or OAuth()
        self._changed = changed
        self._stored = _read(stored)
        self._provider: OAuthClientProvider | None = None

    @property
    def has_tokens(self) -> bool:
        """True if a request can be signed."""
        return bool(self._stored.tokens)

    @property
    def callback_port(self) -> int:
        """Port of the configured or registered redirect address; 0: any."""
        if self._oauth.callback_port or self._oauth.client_id:
            return self._oauth.callback_port
        addresses = self._stored.client.get("redirect_uris") or [""]
        try:
            return urlsplit(str(addresses[0])).port or 0
        except ValueError:
            return 0

    def forget(self) -> None:
        """Drop tokens and registration."""
        self._stored, self._provider = Stored(), None
        self._changed(NOTHING)

    def provider(self, sign_in: SignIn | None = None) -> OAuthClientProvider:
        """An authentication for requests; with a sign-in it asks the user when tokens are missing or refused."""
        callback = sign_in.callback if sign_in else NO_CALLBACK
        if sign_in and str((self._stored.client.get("redirect_uris") or [callback])[0]) != callback:
            self._stored.client = {}  # registered with a port that is taken now
        kind = FixedScopes if self._oauth.scopes else OAuthClientMetadata
        metadata = kind(
            redirect_uris=[AnyUrl(callback)],
            client_name="Phoenix",
            scope=self._oauth.scopes or None,
            token_endpoint_auth_method=BASIC if self._oauth.client_secret else "none",
        )

        async def redirect(url: str) -> None:
            if sign_in is None:
                raise AuthNeeded
            sign_in.open(url)

        async def await_callback() -> AuthorizationCodeResult:
            if sign_in is None:
                raise AuthNeeded
            code, state, issuer = await sign_in.result()
            return AuthorizationCodeResult(code=code, state=state, iss=issuer)

        provider = OAuthClientProvider(
            self._url, metadata, self, redirect, await_callback, self._oauth.client_metadata_url or None
        )
        self._restore(provider)
        self._sign_as_told(provider)
        self._provider = provider
        return provider

    def _sign_as_told(self, provider: OAuthClientProvider) -> None:
        """Send the secret of a configured client as the metadata of the authorization server says (RFC 8414)."""
        context, prepare = provider.context, provider.context.prepare_token_auth

        def prepare_with_method(data: Fields, headers: Fields | None = None) -> tuple[Fields, Fields]:
            if self._oauth.client_id and self._oauth.client_secret and context.client_info is not None:
                context.client_info.token_endpoint_auth_method = _secret_method(context.oauth_metadata)
            return prepare(data, headers)

        setattr(context, "prepare_token_auth", prepare_with_method)  # noqa: B010 - a method, so types refuse it

    def _restore(self, provider: OAuthClientProvider) -> None:
        context, stored = provider.context, self._stored
        context.token_expiry_time = stored.expires_at
        context.auth_server_url = stored.issuer or None
        try:
            context.oauth_metadata = OAuthMetadata.model_validate(stored.server) if stored.server else None
            if stored.resource:
                context.protected_resource_metadata = ProtectedResourceMetadata.model_validate(stored.resource)
        except ValidationError:
            context.oauth_metadata = None  # of an older SDK: found again at the next sign-in

    async def get_tokens(self) -> OAuthToken | None:
        """Stored tokens, for the SDK."""
        return _model(OAuthToken, self._stored.tokens)

    async def set_tokens(self, tokens: OAuthToken) -> None:
        """Take new tokens of the SDK and hand them to Phoenix."""
        stored = self._stored
        stored.tokens = _dump(tokens)
        if self._provider is not None:
            context = self._provider.context
            stored.expires_at = context.token_expiry_time
            stored.issuer = context.auth_server_url or ""
            stored.server = _dump(context.oauth_metadata)
            stored.resource = _dump(context.protected_resource_metadata)
        self._changed(raw(stored))

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        """Registration: the configured one, or the stored one."""
        if self._oauth.client_id:
            return OAuthClientInformationFull(
                client_id=self._oauth.client_id,
                client_secret=self._oauth.client_secret or None,
                token_endpoint_auth_method=BASIC if self._oauth.client_secret else "none",
            )
        return _model(OAuthClientInformationFull, self._stored.client)

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        """Take a registration of the SDK; it is handed to Phoenix together with the tokens."""
        self._stored.client = _dump(client_info)


def _secret_method(metadata: OAuthMetadata | None) -> SecretMethod:
    """Basic where nothing is said, which each authorization server must take (RFC 6749, 2.3.1)."""
    told = (metadata.token_endpoint_auth_methods_supported if metadata is not None else None) or [BASIC]
    return POST if POST in told and BASIC not in told else BASIC


def _read(stored: Raw) -> Stored:
    if bytes(stored) == bytes(NOTHING):
        return Stored()
    try:
        return msgspec.json.decode(stored, type=Stored)
    except msgspec.MsgspecError:
        return Stored()  # damaged: the user signs in again


def _dump(model: BaseModel | None) -> dict[str, Any]:
    return {} if model is None else model.model_dump(mode="json", by_alias=True, exclude_none=True)


def _model(kind: type[M], content: dict[str, Any]) -> M | None:
    try:
        return kind.model_validate(content) if content else None
    except ValidationError:
        return None
