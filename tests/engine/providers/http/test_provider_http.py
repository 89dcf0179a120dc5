"""Common properties of all HTTP providers: cheap imports, a hidden key, a loop that stays free, proxies, one TLS
context.
"""

from __future__ import annotations

import asyncio
import logging
import subprocess
import sys
import time
import traceback
from email.utils import formatdate

import pytest

from engine.machine.messages import Role, TextBlock
from engine.ports import ModelMessage, ModelReply, ModelRequest, Provider, ProviderError
from engine.providers.anthropic import AnthropicProvider, AnthropicSettings
from engine.providers.direct_transport import tls_context
from engine.providers.failures import Service, retry_after_seconds
from engine.providers.http import HttpService
from engine.providers.http_transport import is_loopback
from engine.providers.httpx_transport import new_client
from engine.providers.openai_compatible import OpenAiCompatibleProvider, OpenAiCompatibleSettings
from tests.support import loopback_anthropic, loopback_openai
from tests.support.loopback import Talk, serve
from tests.support.scripted_provider import ScriptedProvider

KEY = "sk-PLANTED-9876543210"
HELLO = ModelRequest("claude-sonnet-5-5", (), (ModelMessage(Role.USER, (TextBlock("Hi"),)),))
HEAVY = ("httpx2", "anthropic", "genai_prices", "openai", "pydantic", "PIL", "textual")


def providers(url: str, key: str = KEY) -> list[Provider]:
    return [
        AnthropicProvider(AnthropicSettings(api_key=key, base_url=url)),
        AnthropicProvider(AnthropicSettings(auth_token=key, base_url=url)),
        AnthropicProvider(AnthropicSettings(api_key=key, base_url=url, transport="sdk")),
        OpenAiCompatibleProvider(OpenAiCompatibleSettings(api_key=key, base_url=url)),
    ]


def test_a_request_without_a_proxy_loads_nothing_heavy() -> None:
    code = (
        "import asyncio, sys\n"
        "from engine.ports import ProviderError\n"
        "from engine.providers.anthropic import AnthropicProvider, AnthropicSettings\n"
        "async def ask():\n"
        "    try: await AnthropicProvider(AnthropicSettings(api_key='k', base_url='http://127.0.0.1:9')).models()\n"
        "    except ProviderError as error: print(error.kind)\n"
        "asyncio.run(ask())\n"
        f"print([name for name in {(*HEAVY, 'anyio', 'email')!r} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["network", "[]"]


def test_importing_every_provider_loads_nothing_heavy() -> None:
    code = (
        "import sys\n"
        "import engine.providers.anthropic, engine.providers.openai_compatible, tests.support.scripted_provider\n"
        "import engine.providers.catalogue, engine.providers.catalogue\n"
        "from engine.providers.anthropic import AnthropicProvider, AnthropicSettings\n"
        "AnthropicProvider(AnthropicSettings(api_key='k'))\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_every_provider_fits_the_port() -> None:
    names = [provider.name for provider in [*providers("http://127.0.0.1:9"), ScriptedProvider({})]]
    assert names == ["anthropic", "anthropic", "anthropic", "openai", "scripted"]


async def test_the_key_is_in_no_message_no_traceback_no_log_and_no_repr(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    said: list[str] = []

    async def echo(talk: Talk) -> None:
        status = (401, 403, 400, 500, 302)[len(said) % 5]
        body = f'{{"error": {{"type": "x", "message": "bad key {KEY} in header"}}}}'
        await talk.plain(status, body.encode(), f"location: http://elsewhere.invalid/{KEY}\r\n")

    async with serve(echo, echo, echo, echo, Talk.reset) as loopback:
        for provider in [*providers(loopback.url), *providers(loopback.url)]:
            try:
                async for _ in provider.stream(HELLO):
                    pass
            except ProviderError as error:
                said += ["".join(traceback.format_exception(error)), repr(error), repr(error.args), repr(provider)]
            await provider.close()
    assert len(said) == 8 * 4
    said += [record.getMessage() for record in caplog.records]
    said += [repr(AnthropicSettings(api_key=KEY)), repr(AnthropicSettings(auth_token=KEY))]
    said += [repr(OpenAiCompatibleSettings(api_key=KEY)), repr(Service("u", "V", (KEY,)))]
    assert [text for text in said if KEY in text] == []


@pytest.mark.parametrize("end", ["\r", "\nnext", "\udcff"])
async def test_a_key_that_no_header_can_hold_is_said_once_and_not_quoted(end: str) -> None:
    async with serve() as loopback:
        for provider in providers(loopback.url, f"{KEY}{end}"):
            with pytest.raises(ProviderError) as caught:
                async for _ in provider.stream(HELLO):
                    pass
            await provider.close()
            assert "cannot be sent" in str(caught.value)
            assert (caught.value.kind, caught.value.retryable) == ("auth", False)
            assert KEY not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize("variable", ["ANTHROPIC_API_KEY", "OPENAI_API_KEY"])
async def test_a_missing_key_is_said_before_anything_is_sent(variable: str) -> None:
    provider: Provider = (
        AnthropicProvider(AnthropicSettings())
        if variable.startswith("ANTHROPIC")
        else OpenAiCompatibleProvider(OpenAiCompatibleSettings())
    )
    with pytest.raises(ProviderError, match=f"No API key is set; set {variable}") as caught:
        async for _ in provider.stream(HELLO):
            pass
    assert (caught.value.kind, caught.value.retryable) == ("auth", False)


async def test_a_burst_of_events_leaves_the_loop_free() -> None:
    burst = loopback_anthropic.recording(
        loopback_anthropic.start(), loopback_anthropic.text(0, *(["word "] * 20_000)), loopback_anthropic.stop()
    )

    async def answer(talk: Talk) -> None:
        await talk.begin()
        body = b"".join(burst)
        for at in range(0, len(body), 32_000):
            await talk.send(body[at : at + 32_000])
        await talk.end()

    turns = 0

    async def keyboard() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    async with serve(answer) as loopback:
        provider = providers(loopback.url)[0]
        await provider.warm()
        typing = asyncio.create_task(keyboard())
        reply = None
        async for item in provider.stream(HELLO):
            reply = item
        typing.cancel()
        await provider.close()
    assert isinstance(reply, ModelReply)
    assert reply.blocks == (TextBlock("word " * 20_000),)
    assert turns > 20


async def test_a_login_page_of_the_network_is_told_as_one() -> None:
    async def page(talk: Talk) -> None:
        await talk.begin("text/html; charset=utf-8")
        await talk.send(b"<html>Please log in</html>")
        await talk.end()

    async with serve(page) as loopback:
        keyed, _, _, compatible = providers(loopback.url)
        for provider in (keyed, compatible):
            with pytest.raises(ProviderError, match="answered with a web page") as caught:
                async for _ in provider.stream(HELLO):
                    pass
            assert (caught.value.kind, caught.value.retryable) == ("network", True)
            await provider.close()


async def test_a_remote_host_is_asked_through_the_proxy_and_this_machine_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with serve(loopback_openai.plays([loopback_openai.chunk({"content": "x"}, "stop")])) as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        monkeypatch.setenv("http_proxy", proxy.url)
        for name in ("NO_PROXY", "no_proxy"):
            monkeypatch.delenv(name, raising=False)
        remote = OpenAiCompatibleProvider(OpenAiCompatibleSettings(api_key=KEY, base_url="http://models.invalid/v1"))
        items = [item async for item in remote.stream(HELLO)]
        await remote.close()
        assert isinstance(items[-1], ModelReply)
        assert proxy.requests[0].path == "http://models.invalid/v1/chat/completions"
        async with serve(loopback_openai.plays([loopback_openai.chunk({"content": "x"}, "stop")])) as server:
            local = OpenAiCompatibleProvider(OpenAiCompatibleSettings(base_url=f"{server.url}/v1"))
            assert [item async for item in local.stream(HELLO)]
            await local.close()
            assert len(server.requests) == 1
    assert len(proxy.requests) == 1


async def test_warming_up_opens_the_connection_that_the_first_request_uses(monkeypatch: pytest.MonkeyPatch) -> None:
    async def head(talk: Talk) -> None:
        talk.writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
        await talk.writer.drain()

    async with serve(head, loopback_openai.plays([loopback_openai.chunk({"content": "x"}, "stop")])) as proxy:
        monkeypatch.setenv("http_proxy", proxy.url)
        for name in ("NO_PROXY", "no_proxy"):
            monkeypatch.delenv(name, raising=False)
        remote = OpenAiCompatibleProvider(OpenAiCompatibleSettings(api_key=KEY, base_url="http://models.invalid/v1"))
        await remote.warm()
        assert [item async for item in remote.stream(HELLO)]
        await remote.close()
        assert [(seen.method, seen.connection) for seen in proxy.requests] == [("HEAD", 1), ("POST", 1)]
        assert "authorization" not in proxy.requests[0].headers


async def test_warming_up_is_silent_when_nobody_answers(caplog: pytest.LogCaptureFixture) -> None:
    http = HttpService(Service("http://models.invalid", "X"), {}, 1.0)
    with caplog.at_level("WARNING"):
        await http.warm()
        await http.close()
    assert not caplog.records


async def test_all_clients_share_one_tls_context_and_plain_loopback_needs_none() -> None:
    assert tls_context() is tls_context()
    client = new_client("http://127.0.0.1:9", 1.0)
    assert not client.trust_env
    await client.aclose()


@pytest.mark.parametrize(
    ("url", "here"),
    [
        ("http://127.0.0.1:80/v1", True),
        ("http://[::1]:80", True),
        ("http://localhost:11434/v1", True),
        ("https://api.anthropic.com", False),
        ("http://127.0.0.1.nip.io", False),
    ],
)
def test_this_machine_is_told_by_its_address(url: str, here: bool) -> None:
    assert is_loopback(url) is here


def test_a_retry_after_is_a_number_or_a_date() -> None:
    soon = formatdate(time.time() + 100, usegmt=True)
    assert 90 < retry_after_seconds(soon) <= 100
    assert 90 < retry_after_seconds(soon.removesuffix(" GMT")) <= 100
    past = "Wed, 21 Oct 2015 07:28:00 GMT"
    odd = ("7", "0.5", "-3", past, "Wed, 21 Oct", "soon", "", "nan", "9" * 999, "Wed, 21 Oct 9999 07:28:00 GMT")
    assert [retry_after_seconds(value) for value in odd] == [7.0, 0.5, 0, 0, 0, 0, 0, 0, 86_400.0, 86_400.0]
