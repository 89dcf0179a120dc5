"""Shares of MCP servers in a request, in words."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from engine.ports.mcp import ServerState
from phoenix_tui.text.server_text import row, share_words, state_words
from tests.support.fake_mcp import a_server
from tests.support.mcp_hubs import hub_in, stdio


def test_servers_are_named_with_their_tokens_the_largest_first() -> None:
    small, large = replace(a_server("a\x1b[2J"), tokens=5), a_server("b")
    named_only = replace(a_server("c"), tokens=0, deferred=2)
    off = replace(a_server("d", ServerState.OFF), is_on=False)
    assert share_words([small, large, named_only, off]) == (
        "MCP servers in each request: b ~1,234, a ~5, c ~0 (2 tools named only)"
    )
    assert share_words([off]) == ""
    assert share_words([a_server(f"s{number}") for number in range(9)]).endswith("and 1 more")


def test_a_server_that_does_not_work_says_its_name_and_state_once() -> None:
    ended = a_server("notes", ServerState.FAILED, "MCP server 'notes' ended: it closed its output: no database")
    assert row(ended) == "notes, failed, stdio: it closed its output: no database"
    assert state_words(ended) == "failed: it closed its output: no database"
    assert row(a_server("web", ServerState.FAILED)).endswith("web, failed, stdio")


async def test_tools_that_are_named_only_cost_nothing(tmp_path: Path) -> None:
    async with hub_in(tmp_path, stdio("a"), stdio("b")) as one:
        await one.hub.prepare(one.record)
        view = await one.view("a")
        assert (len(view.tools), view.deferred) == (25, 25), "50 tools are more than 30"
        words = view.tokens
        await one.hub.load(one.record, [view.tools[0]])
        loaded = await one.view("a")
    assert words == len("Use with care.") // 4
    assert (loaded.deferred, loaded.tokens > words) == (24, True)
