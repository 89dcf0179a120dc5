"""The official SDK as transport: Bedrock, Vertex, profiles, or simply `transport = "sdk"`."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import TYPE_CHECKING, TypeAlias, cast

import msgspec

from engine.ports import ProviderError
from engine.providers.anthropic.anthropic_settings import AnthropicSettings
from engine.providers.events import WireModel, payloads_of
from engine.providers.failures import (
    ServerRefusal,
    build_broken,
    build_redirected,
    build_refused,
    retry_after_seconds,
    silent,
    unsendable,
    web_page,
)
from engine.providers.http import ErrorBody, Head, HttpService, error_in, limits_in
from engine.providers.http_transport import CONNECT_TIMEOUT, TransportError
from engine.providers.wire import encode_json
from tools.contract import JsonObject

if TYPE_CHECKING:
    import anthropic
    from anthropic.lib.bedrock import AsyncAnthropicBedrock
    from anthropic.lib.vertex import AsyncAnthropicVertex

    Client: TypeAlias = anthropic.AsyncAnthropic | AsyncAnthropicBedrock | AsyncAnthropicVertex

MESSAGES_PATH = "/v1/messages"


class SdkTransport:
    """The same calls through `anthropic.Async*`; the SDK is imported in a thread, on first use (2 s of CPU)."""

    def __init__(self, settings: AnthropicSettings) -> None:
        self._settings = settings
        self._service = settings.service
        self._http = HttpService(settings.service, {}, settings.idle_timeout)
        """Sorts the errors of the HTTP library underneath, as the other transport does."""
        self._client: Client | None = None
        self._making = asyncio.Lock()

    async def events(self, body: bytes, head: Head) -> AsyncGenerator[list[bytes], None]:
        """See `MessagesTransport.events`. The body is read as over HTTP; only Bedrock's, no text, by the SDK."""
        client = await self._get_client()
        import anthropic  # noqa: PLC0415 - after the client, whose thread has loaded it
        import httpx2  # noqa: PLC0415 - after the client, whose thread has loaded it

        started = False
        try:
            async with asyncio.timeout(self._settings.idle_timeout):
                stream = await client.post(
                    MESSAGES_PATH,
                    cast_to=anthropic.types.Message,
                    body=msgspec.json.decode(body),
                    stream=True,
                    stream_cls=anthropic.AsyncStream[object],  # plain values: typed ones fail on unknown kinds
                )
            started = True
            head.limits = limits_in(stream.response.headers)
            async with stream, aclosing(self._payloads(stream)) as batches:
                async for batch in batches:
                    yield batch
                    await asyncio.sleep(0)
        except anthropic.APIStatusError as error:
            raise self._build_refused(error) from None
        except anthropic.APIConnectionError as error:
            raise self._http.failure(_convert_failure(error.__cause__ or error), started) from None
        except TimeoutError:
            raise silent(self._service, self._settings.idle_timeout) from None
        except (httpx2.HTTPError, OSError) as error:
            raise self._http.failure(_convert_failure(error), started) from None
        except _sdk_errors() as error:
            # Half an event at the end of a cut stream is a ValueError of the JSON or UTF-8 decoder.
            raise (build_broken(self._service) if started else self._build_misconfigured(error)) from None

    async def _payloads(self, stream: anthropic.AsyncStream[object]) -> AsyncGenerator[list[bytes], None]:
        if self._settings.backend == "bedrock":
            async for event in stream:
                yield [encode_json(cast("JsonObject", event))]
            return
        if stream.response.headers.get("content-type", "").startswith("text/html"):
            raise web_page(self._service)
        async with aclosing(payloads_of(self._service, stream.response.aiter_bytes())) as batches:
            async for batch in batches:
                yield batch

    async def count(self, body: bytes) -> int:
        """See `MessagesTransport.count`: clouds have no such address, or another one, so the SDK is not asked."""
        return 0

    async def models(self) -> list[WireModel]:
        """See `MessagesTransport.models`; Bedrock and Vertex have no such list."""
        client = await self._get_client()
        import anthropic  # noqa: PLC0415 - after the client, whose thread has loaded it

        if not isinstance(client, anthropic.AsyncAnthropic):
            return []
        try:
            listed = [model async for model in client.models.list(limit=100)]
            return [WireModel(model.id, max_input_tokens=model.max_input_tokens) for model in listed]
        except anthropic.APIStatusError as error:
            raise self._build_refused(error) from None
        except anthropic.APIConnectionError as error:
            raise self._http.failure(_convert_failure(error.__cause__ or error), started=False) from None

    async def warm(self) -> None:
        """Import the SDK and make the client; a failure is reported with the first request."""
        with contextlib.suppress(ProviderError):
            await self._get_client()

    async def close(self) -> None:
        """Close every connection."""
        if self._client is not None:
            await self._client.close()
            self._client = None

    async def _get_client(self) -> Client:
        async with self._making:
            if self._client is None:
                made = await asyncio.to_thread(make_client, self._settings)
                if isinstance(made, Exception):
                    raise self._build_misconfigured(made)
                self._client = made
            return self._client

    def _build_misconfigured(self, error: Exception) -> ProviderError:
        """Error for a part that the SDK misses, in its own words: a region, a profile, an extra package."""
        if isinstance(error, UnicodeEncodeError):  # a key from a variable whose bytes are no text
            return unsendable(self._service)
        said = self._service.clean(str(error))
        return ProviderError(f"The Anthropic SDK cannot be used: {said}", kind="auth", retryable=False)

    def _build_refused(self, error: anthropic.APIStatusError) -> ProviderError:
        response = error.response
        if response.is_redirect:
            return build_redirected(self._service, response.headers.get("location", ""))
        refusal = self._classify_status(error)
        refusal.limits = limits_in(response.headers)
        return refusal

    def _classify_status(self, error: anthropic.APIStatusError) -> ProviderError:
        response = error.response
        retry_after = retry_after_seconds(response.headers.get("retry-after", ""))
        try:
            body = msgspec.convert(error.body, ErrorBody)
        except msgspec.ValidationError:
            return build_refused(self._service, ServerRefusal(response.status_code, "", error.message, retry_after))
        return build_refused(self._service, error_in(body, response.status_code, retry_after))


def _convert_failure(error: BaseException) -> TransportError:
    """Convert a failure of the HTTP library underneath; an unclassified one is reported as a plain failure."""
    from engine.providers.httpx_transport import convert_failure  # noqa: PLC0415 - httpx2, which the SDK has loaded

    return convert_failure(error) if isinstance(error, Exception) else TransportError(str(error))


def _sdk_errors() -> tuple[type[Exception], ...]:
    """Exceptions of the SDK besides its API errors, and of the clouds' own libraries when they are loaded."""
    named = (
        ("anthropic", "AnthropicError"),
        ("google.auth.exceptions", "GoogleAuthError"),
        ("botocore.exceptions", "BotoCoreError"),
    )
    classes = (vars(sys.modules[module]).get(name) for module, name in named if module in sys.modules)
    errors = [found for found in classes if isinstance(found, type) and issubclass(found, Exception)]
    return (ValueError, ImportError, RuntimeError, *errors)


def make_client(settings: AnthropicSettings) -> Client | Exception:
    """Build the SDK's client for the chosen backend, without retries: the engine counts those. Else the error."""
    try:
        return _client(settings)
    except _sdk_errors() as error:
        return error


def _client(settings: AnthropicSettings) -> Client:
    import anthropic  # noqa: PLC0415 - in a thread, when chosen: 2 s, 45 MB (docs/decisions/libraries.md)
    from anthropic.lib.bedrock import AsyncAnthropicBedrock  # noqa: PLC0415 - part of the SDK
    from anthropic.lib.vertex import AsyncAnthropicVertex  # noqa: PLC0415 - part of the SDK

    from engine.providers.httpx_transport import new_client  # noqa: PLC0415 - httpx2, which the SDK has loaded

    timeout = anthropic.Timeout(settings.idle_timeout, connect=CONNECT_TIMEOUT)
    match settings.backend:
        case "bedrock":
            return AsyncAnthropicBedrock(max_retries=0, timeout=timeout)
        case "vertex":
            return AsyncAnthropicVertex(max_retries=0, timeout=timeout)
        case "direct" if settings.profile:
            return anthropic.AsyncAnthropic(profile=settings.profile, max_retries=0, timeout=timeout)
        case "direct":
            return anthropic.AsyncAnthropic(
                api_key=settings.api_key or None,
                auth_token=settings.auth_token or None,
                base_url=settings.base_url,
                max_retries=0,
                timeout=timeout,
                http_client=new_client(settings.base_url, settings.idle_timeout, bounded=True),
            )
