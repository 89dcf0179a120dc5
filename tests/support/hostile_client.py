"""Asks hostile servers in a process of its own: how each answer ended, and how much the memory grew meanwhile."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Literal

from engine.machine.messages import Role, TextBlock
from engine.ports import ModelMessage, ModelReply, ModelRequest, ProviderError
from engine.providers import http, http_transport
from engine.providers.anthropic import AnthropicProvider, AnthropicSettings
from engine.providers.openai_compatible import OpenAiCompatibleProvider, OpenAiCompatibleSettings

REQUEST = ModelRequest("m", (), (ModelMessage(Role.USER, (TextBlock("Hi"),)),))
PATIENCE = 2.0
DEADLINE = 60.0


def provider(kind: str, url: str) -> AnthropicProvider | OpenAiCompatibleProvider:
    """One that speaks to `url` over the transport that is to be tried."""
    if kind == "openai":
        return OpenAiCompatibleProvider(OpenAiCompatibleSettings(base_url=url, api_key="k" * 20, idle_timeout=PATIENCE))
    transport: Literal["http", "sdk"] = "sdk" if kind == "sdk" else "http"
    return AnthropicProvider(
        AnthropicSettings(api_key="k" * 20, base_url=url, transport=transport, idle_timeout=PATIENCE)
    )


def peak() -> int:
    """The most memory that this process has had, in MB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) // 1024


def forget_peak() -> None:
    """Let the most memory be what it is now."""
    Path("/proc/self/clear_refs").write_text("5")


async def ask(kind: str, url: str) -> tuple[str, str]:
    """Kind of the answer, a reply or an error, and its words."""
    one = provider(kind, url)
    try:
        async with asyncio.timeout(DEADLINE):
            if "/models" in url:
                return "reply", str(len(await one.models()))
            async for item in one.stream(REQUEST):
                if isinstance(item, ModelReply):
                    return "reply", str(item.usage)
    except ProviderError as error:
        return error.kind, error.message
    finally:
        await one.close()
    return "nothing", ""


def _never(_: str) -> bool:
    """No way is straight, so httpx2 carries everything."""
    return False


async def main(kind: str, base: str, names: list[str]) -> None:
    """Try them all, the first one twice, so that what is loaded once does not count.

    A tenth of the pieces is allowed: 400,000 events of two letters take seconds and show the same.
    """
    vars(http_transport)["MOST_PIECES"] //= 10
    await ask(kind, f"{base}/{names[0]}")
    for name in names:
        forget_peak()
        before = peak()
        how, words = await ask(kind, f"{base}/{name}")
        sys.stdout.write(json.dumps([name, how, words, peak() - before]) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    if sys.argv[2] == "httpx":
        from engine.providers import http

        vars(http)["is_straight"] = _never
    asyncio.run(main(sys.argv[1], sys.argv[3], sys.argv[4:]))
