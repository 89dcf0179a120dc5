"""`trust_hints` of a server's definition: what a tool says of itself counts only where the user says so."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.extensions.mcp.offering import ServerCatalogue, choose_tools
from engine.permissions.denials import Denials, DenyRule, parse_denial
from engine.permissions.place import PathPlace
from engine.permissions.policy import Allow, Deny, Limits, decide
from engine.ports.mcp import ServerDefinition, ServerOrigin
from engine.records import PermissionMode
from phoenix_tui.config.sources.server_definitions import DefinitionPlace, parse_definition
from tools.contract import Access, ToolClass, ToolRequest
from tools.mcp_host.protocol import Annotations, Item

LISTS = ServerCatalogue([
    Item(name="look", annotations=Annotations(read_only=True)),
    Item(name="drop", annotations=Annotations(read_only=False)),
    Item(name="silent"),
])
TRUSTED = {"command": "server", "trust_hints": True}


def defined(table: object, origin: ServerOrigin = ServerOrigin.USER) -> tuple[ServerDefinition, tuple[str, ...]]:
    return parse_definition("s", table, DefinitionPlace(origin, "config.toml", Path("/work")))


def classes(definition: ServerDefinition) -> dict[str, ToolClass]:
    return {one.tool: one.spec.tool_class for one in choose_tools(definition, LISTS, set()).tools}


def test_a_tool_that_says_it_only_reads_is_believed_where_the_user_says_so() -> None:
    run = ToolClass.RUN
    assert classes(defined({"command": "server"})[0]) == {"look": run, "drop": run, "silent": run}
    trusted, said = defined(TRUSTED)
    assert classes(trusted) == {"look": ToolClass.READ, "drop": run, "silent": run}
    assert said == ()


def test_a_project_cannot_vouch_for_its_own_servers() -> None:
    found, said = defined(TRUSTED, ServerOrigin.PROJECT)
    assert set(classes(found).values()) == {ToolClass.RUN}
    assert said == (
        "config.toml: server 's': a project cannot switch 'trust_hints' on; define the server under another name in "
        "your own config.toml.",
    )
    assert "needs true or false for 'trust_hints'" in defined({"command": "x", "trust_hints": "yes"})[0].trouble


@pytest.mark.parametrize("mode", [PermissionMode.ASK, PermissionMode.PLAN, PermissionMode.AUTO])
def test_such_a_tool_runs_without_a_question_unless_a_rule_denies_it(mode: PermissionMode) -> None:
    offered = {one.tool: one.spec for one in choose_tools(defined(TRUSTED)[0], LISTS, set()).tools}
    request = ToolRequest("s: look", access=Access.CONFINED, known_access=Access.CONFINED)
    place = PathPlace(Path("/work"))
    assert isinstance(decide(offered["look"], request, Limits(mode), place, {}), Allow)
    changing = decide(offered["drop"], request, Limits(mode), place, {})
    others = {PermissionMode.PLAN: "Deny", PermissionMode.ASK: "Ask", PermissionMode.AUTO: "Allow"}
    assert type(changing).__name__ == others[mode]
    rule = parse_denial("deny mcp__s__look(*)")
    assert rule is not None
    assert isinstance(
        decide(offered["look"], request, Limits(mode), place, {}, denials=Denials((DenyRule(rule),))), Deny
    )
