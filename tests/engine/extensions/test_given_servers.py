"""MCP servers that a client brings along: for its conversation and its sub-agents, until it closes."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from engine.ports.mcp import ServerOrigin, ServerState
from engine.records import AgentFacts, SpawnMode
from tests.support.mcp_hubs import hub_in, stdio


async def test_a_given_server_is_offered_in_its_conversation_alone(tmp_path: Path) -> None:
    async with hub_in(tmp_path) as one:
        one.hub.give(one.record.id, [stdio("mine", origin=ServerOrigin.FLAG)])
        await one.hub.prepare(one.record)
        other = one.another()
        await one.hub.prepare(other)
        assert (await one.view("mine")).state is ServerState.CONNECTED
        assert "mcp__mine__echo" in one.names()
        assert one.names(other) == []


async def test_a_given_server_takes_the_place_of_one_in_a_file(tmp_path: Path) -> None:
    async with hub_in(tmp_path, stdio("kinds"), stdio("other")) as one:
        one.hub.give(one.record.id, [stdio("kinds", origin=ServerOrigin.FLAG, source="client")])
        assert [(view.name, view.source) for view in await one.hub.views(one.record)] == [
            ("kinds", "client"),
            ("other", "config.toml"),
        ]


async def test_sub_agents_have_the_servers_of_their_parents_client(tmp_path: Path) -> None:
    async with hub_in(tmp_path) as one:
        one.hub.give(one.record.id, [stdio("mine", origin=ServerOrigin.FLAG)])
        child = replace(one.another(), agent=facts(one.record.id))
        grandchild = replace(one.another(), agent=facts(child.id))
        await one.hub.prepare(child)
        await one.hub.prepare(grandchild)
        assert "mcp__mine__echo" in one.names(child)
        assert "mcp__mine__echo" in one.names(grandchild)


async def test_other_servers_take_the_place_of_those_given_before(tmp_path: Path) -> None:
    async with hub_in(tmp_path) as one:
        one.hub.give(one.record.id, [stdio("first")])
        await one.hub.prepare(one.record)
        one.hub.give(one.record.id, [stdio("second")])
        await one.hub.prepare(one.record)
        assert {name.split("__")[1] for name in one.names()} == {"second"}


async def test_a_closed_conversation_has_none(tmp_path: Path) -> None:
    async with hub_in(tmp_path) as one:
        one.hub.give(one.record.id, [stdio("mine")])
        await one.hub.prepare(one.record)
        one.hub.close_conversation(one.record.id)
        assert await one.hub.views(one.record) == ()


def facts(parent: str) -> AgentFacts:
    return AgentFacts(parent, SpawnMode.FAN_IN, "c1", 1, "t")
