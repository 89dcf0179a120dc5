"""Prompts and resources of servers for the messages of a user."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.executor.expanding import parse_values
from engine.extensions.mcp.offering import ServerCatalogue
from engine.ports.mcp import PromptField, ServerTextError
from tests.support.mcp_hubs import hub_in, stdio
from tools.mcp_host.protocol import Item, PromptArgument

CITY, UNIT, NOTE = PromptField("city", required=True), PromptField("unit"), PromptField("note")


@pytest.mark.parametrize(
    ("typed", "values"),
    [
        ("Paris", {"city": "Paris"}),
        ("'New York' C", {"city": "New York", "unit": "C"}),
        ("Paris C one two", {"city": "Paris", "unit": "C", "note": "one two"}),
        ("note=x Paris", {"city": "Paris", "note": "x"}),
        ("a=b", {"city": "a=b"}),
        ("it's", {"city": "it's"}),
        ("", {}),
    ],
)
def test_words_become_values_in_order_or_by_name(typed: str, values: dict[str, str]) -> None:
    assert parse_values((CITY, UNIT, NOTE), typed) == values


def test_words_without_an_argument_to_take_them_are_left_out() -> None:
    assert parse_values((), "a b") == {}


async def test_prompts_are_known_after_connecting_and_the_same_object_until_a_list_changes(tmp_path: Path) -> None:
    async with hub_in(tmp_path, stdio()) as one:
        texts = one.hub.texts
        assert texts.prompts(one.record) == ()
        found = await texts.prompt(one.record, "mcp__kinds__greet")
        assert found is not None
        assert (found.server, found.prompt, found.description, found.hint) == ("kinds", "greet", "Greets.", "TONE")
        assert texts.prompts(one.record) is texts.prompts(one.record)
        assert await texts.prompt(one.record, "mcp__kinds__other") is None
        output = await texts.render(one.record, found, {"tone": "warm"})
        assert output.text == "Greet in a warm tone"
        assert await texts.values(one.record, found, "tone", "wa", {}) == ["warm", "wary"]


async def test_a_prompt_of_a_server_that_cannot_start_says_why(tmp_path: Path) -> None:
    async with hub_in(tmp_path, stdio("gone", ("/no/such/program",))) as one:
        with pytest.raises(ServerTextError, match="MCP server 'gone' is not connected: it cannot be started"):
            await one.hub.texts.prompt(one.record, "mcp__gone__x")


async def test_names_of_prompts_cannot_carry_control_characters_or_be_taken_twice(tmp_path: Path) -> None:
    odd = Item(name="a b\x1b[2J", description="one\x1b]0;x\x07\ntwo")
    twice = Item(name="a-b", description="first")
    same = Item(name="a.b", description="kept")
    other = Item(name="a/b", description="dropped")
    hidden = Item(name="c", arguments=[PromptArgument(name="x\x1b[1m")])
    async with hub_in(tmp_path, stdio()) as one:
        [server] = await one.hub.look(one.record)
        server.catalogue = ServerCatalogue(prompts=[odd, twice, same, other, hidden])
        found = {prompt.command: prompt.description for prompt in one.hub.texts.prompts(one.record)}
    assert found == {
        "mcp__kinds__a-b": "first",
        "mcp__kinds__a_b": "kept",
        "mcp__kinds__a_b__2J": "one two",
    }


async def test_resources_and_their_content_are_given_and_a_wrong_server_is_named(tmp_path: Path) -> None:
    async with hub_in(tmp_path, stdio()) as one:
        await one.hub.prepare(one.record)
        texts = one.hub.texts
        assert texts.resource_servers(one.record) == ["kinds"]
        found = await texts.resources(one.record, "kinds")
        assert [(entry.uri, entry.is_template) for entry in found] == [
            ("file:///a.txt", False),
            ("file:///{path}", True),
        ]
        assert (await texts.read(one.record, "kinds", "file:///a.txt")).text.endswith("inside")
        with pytest.raises(ServerTextError, match="no MCP server 'other' here"):
            await texts.read(one.record, "other", "file:///a.txt")
