"""Claude's server that searches the web, on loopback: the blocks of a search, and an engine in front of it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.executor.engine_settings import EngineSettings
from engine.providers.anthropic import AnthropicProvider, AnthropicSettings
from tests.support.engine import EngineHarness, engine_harness
from tests.support.loopback import Answer, Loopback, Talk, serve
from tests.support.loopback_anthropic import Event, plays, recording, start, stop, text, tool
from tests.support.one_provider import OneProvider
from tools.contract import Tool
from tools.web_pages import WebSearch

MODEL = "claude-sonnet-5-5"
SERVER_TOOL = "web_search_20250305"
QUIET = EngineSettings(auto_title=False)


def found(index: int, *results: tuple[str, str]) -> list[Event]:
    """A search of the server and its results, as address and title."""
    content = [
        {"type": "web_search_result", "url": url, "title": title, "encrypted_content": "x" * 40, "page_age": "2 days"}
        for url, title in results
    ]
    return searched(index, content)


def searched(index: int, content: Any) -> list[Event]:
    """A search of the server with any content as its result."""
    use = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}
    result = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": content}
    return [
        {"type": "content_block_start", "index": index, "content_block": use},
        {
            "type": "content_block_delta",
            "index": index,
            "delta": {"type": "input_json_delta", "partial_json": '{"query": "q"}'},
        },
        {"type": "content_block_stop", "index": index},
        {"type": "content_block_start", "index": index + 1, "content_block": result},
        {"type": "content_block_stop", "index": index + 1},
    ]


def ended(searches: int) -> list[Event]:
    """The end of a reply with the count of searches."""
    end = stop()
    end[0]["usage"]["server_tool_use"] = {"web_search_requests": searches}
    return end


def search_reply(*results: tuple[str, str], said: str = "Found it.", searches: int = 1) -> Answer:
    """A whole reply to a request for a search, refused where that is not as the real server wants it."""
    return checked(plays(recording(start(), found(0, *results), text(2, said), ended(searches))))


def checked(answer: Callable[[Talk], Awaitable[None]]) -> Answer:
    """Refuse what the real server refuses about searches, then answer."""

    async def strict(talk: Talk) -> None:
        faults = search_faults(talk.seen.json)
        if faults:
            error = {"type": "error", "error": {"type": "invalid_request_error", "message": "; ".join(faults)}}
            await talk.plain(400, json.dumps(error).encode())
        else:
            await answer(talk)

    return strict


def search_faults(body: dict[str, Any]) -> list[str]:
    """Reasons for which a request with a server tool is refused."""
    (tool,) = body["tools"]
    faults = [] if tool["type"] == SERVER_TOOL and tool["name"] == "web_search" else ["tools: no server tool"]
    faults += [f"tools: unknown {name}" for name in set(tool) - ALLOWED]
    if "allowed_domains" in tool and "blocked_domains" in tool:
        faults.append("tools: both lists of domains")
    if body.get("tool_choice") and body.get("thinking"):
        faults.append("Thinking may not be enabled when tool_choice forces tool use.")
    return faults


ALLOWED = {"type", "name", "max_uses", "allowed_domains", "blocked_domains", "user_location", "cache_control"}


def calls(name: str, **args: Any) -> Answer:
    """A reply with one call of a tool."""
    return plays(recording(start(), tool(0, name, json.dumps(args)), stop("tool_use")))


def says(words: str) -> Answer:
    """A reply of text."""
    return plays(recording(start(), text(0, words), stop()))


@dataclass
class Searching:
    """An engine whose Claude is on loopback."""

    harness: EngineHarness
    loopback: Loopback


@asynccontextmanager
async def searching(
    home: Path,
    *answers: Answer,
    tools: Sequence[Tool] = (WebSearch(),),
    settings: EngineSettings = QUIET,
) -> AsyncIterator[Searching]:
    async with serve(*answers) as loopback:
        provider = AnthropicProvider(AnthropicSettings(api_key="sk-test", base_url=loopback.url))
        async with engine_harness(home, providers=OneProvider(provider), tools=tools, settings=settings) as harness:
            yield Searching(harness, loopback)
