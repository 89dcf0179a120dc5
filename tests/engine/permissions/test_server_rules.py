"""Rules about tools of MCP servers hold for the definition that they were kept for."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from engine.extensions.mcp.offering import definition_mark
from engine.permissions.rules import Rule, RuledCall, allows, effect, grant, refusal, suggest
from engine.ports.mcp import ServerOrigin
from tests.support.mcp_hubs import hub_in, stdio
from tools.contract import ToolClass, ToolRequest, ToolSpec

CWD = Path("/project")
NAME = "mcp__files__read"
SPEC = ToolSpec(NAME, "Reads.", {"type": "object"}, ToolClass.RUN)


def call(server: str) -> RuledCall:
    return RuledCall(NAME, ToolClass.RUN, ToolRequest("files: read", server=server), CWD)


def test_a_kept_rule_is_void_once_the_server_is_another_program() -> None:
    rule = suggest(SPEC, call("abc").request, CWD)
    assert rule == Rule(NAME, "server:abc")
    assert allows(rule, call("abc"))
    assert not allows(rule, call("abd"))
    assert not allows(rule, call(""))
    assert not allows(Rule(NAME, "server:"), call(""))
    assert refusal(str(rule), call("abd")).startswith("This rule does not match")


def test_a_written_rule_holds_for_any_definition() -> None:
    assert allows(Rule(NAME, "*"), call("abc"))
    assert allows(Rule("mcp__files__*", "*"), call("abd"))
    assert allows(Rule("mcp__files__*", "server:abd"), call("abd"))


def test_the_effect_of_a_kept_rule_says_that_it_is_bound() -> None:
    rule = Rule(NAME, "server:abc")
    words = "every files: read, until its server is changed"
    assert effect(rule, ToolClass.RUN) == f"Allows {words}."
    assert grant(rule, ToolClass.RUN, has_paths=False) == words


@pytest.mark.parametrize(
    ("changes", "same"),
    [
        ({"command": ("other",)}, False),
        ({"cwd": "/else"}, False),
        ({"origin": ServerOrigin.PROJECT}, False),
        ({"url": "https://a.example"}, False),
        ({"timeout_ms": 5_000}, True),
        ({"environment": {"TOKEN": "new"}}, True),
    ],
)
def test_another_command_or_address_has_another_mark(changes: dict[str, object], same: bool) -> None:
    made = stdio()
    assert (definition_mark(replace(made, **changes)) == definition_mark(made)) is same


async def test_calls_of_a_server_carry_its_mark(tmp_path: Path) -> None:
    async with hub_in(tmp_path, stdio()) as one:
        await one.hub.prepare(one.record)
        request = await one.hub.tools(one.record)["mcp__kinds__echo"].request({}, tmp_path)
    assert request.server == definition_mark(stdio())
