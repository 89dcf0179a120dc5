"""Many tools are named and loaded on demand; what is loaded stays, and a search ranks names before descriptions."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from tests.support.mcp_hubs import hub_in, stdio
from tools.contract import ToolClass, ToolSpec
from tools.tool_search import find_tools

FEW = ("echo",)


async def test_above_thirty_tools_only_names_are_sent_until_they_are_loaded(tmp_path: Path) -> None:
    async with hub_in(tmp_path, stdio("a"), stdio("b"), stdio("keep", tools=FEW, always_load=True)) as one:
        await one.hub.prepare(one.record)
        assert one.names() == ["mcp__keep__echo", "tool_search"]
        (section,) = [text for text in one.hub.prompts(one.record) if text.name == "Tools to load"]
        assert section.text.splitlines()[1:3] == ["mcp__a__audio", "mcp__a__big"]
        search = await one.call("tool_search", {"query": "select:mcp__b__echo,mcp__a__echo,none"})
        assert search.text.startswith("2 tools loaded; call them from your next message on.\n{")
        loaded = ["mcp__keep__echo", "tool_search", "mcp__b__echo", "mcp__a__echo"]
        assert one.names() == loaded
        assert (await one.call("mcp__a__echo", {"text": "hi"})).text == "hi"
        assert [text for text in one.hub.prompts(one.record) if text.name == "Tools to load"] == [section]
        await one.call("tool_search", {"query": "weather", "max_results": 1})
        assert one.names()[:4] == loaded
        stored = one.kept.names[one.record.id]
        reopened = replace(one.another(), mcp_loaded=stored)
        await one.hub.prepare(reopened)
        assert one.names(reopened) == one.names()
        assert (await one.call("tool_search", {"query": "nothing like it"})).is_error


async def test_few_tools_are_deferred_where_the_window_is_small(tmp_path: Path) -> None:
    async with hub_in(tmp_path, stdio()) as one:
        await one.hub.prepare(one.record)
        assert "tool_search" not in one.hub.tools(one.record)
        assert one.names(replace(one.record, context_window=4_000)) == ["tool_search"]


async def test_a_server_that_is_off_in_a_conversation_offers_nothing_there(tmp_path: Path) -> None:
    async with hub_in(tmp_path, stdio("a", tools=FEW), stdio("b", tools=FEW)) as one:
        off = replace(one.record, mcp_off=("a",))
        await one.hub.prepare(off)
        assert one.names(off) == ["mcp__b__echo"]
        await one.hub.prepare(one.another())
        await one.hub.prepare(replace(off, mcp_off=()))
        assert one.names(off) == ["mcp__a__echo", "mcp__b__echo"]


def test_words_rank_by_name_and_a_plus_must_be_in_it() -> None:
    def spec(name: str, description: str) -> ToolSpec:
        return ToolSpec(name, description, {}, ToolClass.RUN)

    specs = [spec("mcp__a__send_mail", "Writes."), spec("mcp__a__list", "Lists mail."), spec("mcp__b__list", "Lists.")]

    def found(query: str, most: int = 5) -> list[str]:
        return [one.name for one in find_tools(specs, query, most)]

    assert found("mail") == ["mcp__a__send_mail", "mcp__a__list"]
    assert found("+list mail") == ["mcp__a__list", "mcp__b__list"]
    assert found("list", 1) == ["mcp__a__list"]
    assert found("select: mcp__b__list , mcp__b__list, x") == ["mcp__b__list"]
    assert found("+") == found("select:") == found("  ") == []
