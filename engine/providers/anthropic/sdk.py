"""The official SDK as transport: Bedrock, Vertex, profiles, or simply `transport = "sdk"`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, TypeAlias

import msgspec

from engine.providers.anthropic.settings import AnthropicSettings
from engine.providers.failures import Refusal, broken, redirected, refused, retry_after_seconds, unreadable
from engine.providers.http import CONNECT_TIMEOUT, ErrorBody, HttpService, error_in, new_client

if TYPE_CHECKING:
    import anthropic

    from engine.ports import ProviderError

    Client: TypeAlias = anthropic.AsyncAnthropic | anthropic.AsyncAnthropicBedrock | anthropic.AsyncAnthropicVertex

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

    async def events(self, body: bytes) -> AsyncGenerator[list[bytes], None]:
        """See `Transport.events`: the SDK's own events, written as JSON again for the one reader of both transports."""
        import anthropic  # noqa: PLC0415 - loaded by the client already
        import httpx2  # noqa: PLC0415 - loaded by the client already

        client = await self._made()
        started = False
        try:
            stream = await client.post(
                MESSAGES_PATH,
                cast_to=anthropic.types.Message,
                body=msgspec.json.decode(body),
                stream=True,
                stream_cls=anthropic.AsyncStream[anthropic.types.RawMessageStreamEvent],
            )
            started = True
            async with stream:
                async for event in stream:
                    yield [event.model_dump_json(warnings=False).encode()]
                    await asyncio.sleep(0)
        except anthropic.APIStatusError as error:
            raise self._refused(error) from None
        except anthropic.APIConnectionError as error:
            cause = error.__cause__
            raise self._http.failure(cause if isinstance(cause, Exception) else error, started) from None
        except (httpx2.HTTPError, OSError) as error:
            raise self._http.failure(error, started) from None
        except (ValueError, anthropic.AnthropicError) as error:
            # Half an event at the end of a cut stream is a ValueError of the JSON or UTF-8 decoder.
            raise (broken(self._service) if started else unreadable(self._service, str(error))) from None

    async def models(self) -> list[str]:
        """See `Transport.models`; Bedrock and Vertex have no such list."""
        import anthropic  # noqa: PLC0415 - 2 s of CPU; loaded in the client's thread

        client = await self._made()
        if not isinstance(client, anthropic.AsyncAnthropic):
            return []
        try:
            return [model.id async for model in client.models.list(limit=100)]
        except anthropic.APIStatusError as error:
            raise self._refused(error) from None
        except anthropic.APIConnectionError as error:
            cause = error.__cause__
            raise self._http.failure(cause if isinstance(cause, Exception) else error, started=False) from None

    async def warm(self) -> None:
        """Import the SDK and make the client."""
        await self._made()

    async def close(self) -> None:
        """Close every connection."""
        if self._client is not None:
            await self._client.close()
            self._client = None

    async def _made(self) -> Client:
        async with self._making:
            if self._client is None:
                self._client = await asyncio.to_thread(make_client, self._settings)
            return self._client

    def _refused(self, error: anthropic.APIStatusError) -> ProviderError:
        response = error.response
        if response.is_redirect:
            return redirected(self._service, response.headers.get("location", ""))
        retry_after = retry_after_seconds(response.headers.get("retry-after", ""))
        try:
            body = msgspec.convert(error.body, ErrorBody)
        except msgspec.ValidationError:
            return refused(self._service, Refusal(response.status_code, "", error.message, retry_after))
        return refused(self._service, error_in(body, response.status_code, retry_after))


def make_client(settings: AnthropicSettings) -> Client:
    """The SDK's client for the chosen backend, without retries: the engine counts those."""
    import anthropic  # noqa: PLC0415 - 2 s of CPU and 45 MB (LIBRARIES 0), so in a thread and only when chosen

    http_client = new_client(settings.base_url, settings.idle_timeout)
    timeout = anthropic.Timeout(settings.idle_timeout, connect=CONNECT_TIMEOUT)
    match settings.backend:
        case "bedrock":
            return anthropic.AsyncAnthropicBedrock(max_retries=0, timeout=timeout)
        case "vertex":
            return anthropic.AsyncAnthropicVertex(max_retries=0, timeout=timeout)
        case "direct" if settings.profile:
            return anthropic.AsyncAnthropic(
                profile=settings.profile, max_retries=0, timeout=timeout, http_client=http_client
            )
        case "direct":
            return anthropic.AsyncAnthropic(
                api_key=settings.api_key or None,
                auth_token=settings.auth_token or None,
                base_url=settings.base_url,
                max_retries=0,
                timeout=timeout,
                http_client=http_client,
            )
