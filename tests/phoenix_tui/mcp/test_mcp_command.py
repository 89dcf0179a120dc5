"""`phoenix mcp`: definitions are added, listed, tried and removed."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from tests.support.cli import phoenix_in
from tests.support.mcp_helper import ROOT
from tests.support.mcp_phoenix import SERVER


async def test_a_users_server_is_added_tried_and_removed_and_the_rest_of_the_file_stays(tmp_path: Path) -> None:
    phoenix = phoenix_in(tmp_path)
    config = phoenix.home / "config.toml"
    before = '# mine\ntheme = ""  # dark\n'
    config.write_text(before)
    command = (str(SERVER["command"]), "-m", "tests.support.mcp_kinds")
    added = await phoenix.run("mcp", "add", "-e", f"PYTHONPATH={ROOT}", "kinds", "--", *command)
    assert added.out == f"Added kinds to {config}\n", added.err
    again = await phoenix.run("mcp", "add", "kinds", "--", "x")
    assert (again.code, again.err) == (2, f"phoenix: {config} has a server kinds; remove it first.\n")
    listed = await phoenix.run("mcp", "list", "--json")
    assert [(one["name"], one["state"], one["source"]) for one in listed.json] == [
        ("kinds", "not started", str(config))
    ]
    tried = await phoenix.run("mcp", "test")
    assert (tried.code, tried.out.partition(" · ")[0]) == (0, "kinds: connected, 25 tools")
    shown = await phoenix.run("mcp", "get", "kinds")
    assert "mcp__kinds__echo" in shown.out
    removed = await phoenix.run("mcp", "remove", "kinds")
    assert removed.out == f"Removed kinds from {config}\n"
    assert before.strip() in config.read_text()
    assert tomllib.loads(config.read_text()).get("mcp", {}) == {}


async def test_a_projects_server_goes_into_mcp_json_and_waits_for_trust(tmp_path: Path) -> None:
    phoenix = phoenix_in(tmp_path)
    definition = '{"type": "http", "url": "https://example.com/mcp", "headers": {"A": "${TOKEN}"}}'
    added = await phoenix.run("mcp", "add-json", "-s", "project", "web", definition)
    assert added.code == 0, added.err
    file = phoenix.cwd / ".mcp.json"
    assert json.loads(file.read_text()) == {"mcpServers": {"web": json.loads(definition)}}
    assert (await phoenix.run("mcp", "list", "--json")).json == []
    address = await phoenix.run("mcp", "add", "-H", "X-A: b", "other", "https://example.com/x", "-s", "project")
    assert address.code == 0, address.err
    assert json.loads(file.read_text())["mcpServers"]["other"] == {
        "type": "http",
        "url": "https://example.com/x",
        "headers": {"X-A": "b"},
    }
    assert (await phoenix.run("mcp", "remove", "web", "-s", "project")).code == 0
    assert list(json.loads(file.read_text())["mcpServers"]) == ["other"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("remove", "none"), "has no server none; `phoenix mcp list` shows all."),
        (("add-json", "a", "{"), "The definition is not valid JSON"),
        (("add-json", "a", "[]"), "must be a JSON table"),
        (("add-json", "a", '{"type": "tcp"}'), "has the unknown type 'tcp'"),
        (("add", "-e", "X", "a", "b"), "'X' must have the form NAME=VALUE."),
        (("add", "a", "https://x/y", "z"), "An address takes no further arguments"),
        (("get", "none"), "There is no MCP server none; `phoenix mcp list` shows all."),
    ],
)
async def test_a_mistake_is_a_usage_error_and_changes_no_file(
    tmp_path: Path, arguments: tuple[str, ...], said: str
) -> None:
    phoenix = phoenix_in(tmp_path)
    ran = await phoenix.run("mcp", *arguments)
    assert ran.code == 2
    assert said in ran.err
    assert not (phoenix.home / "config.toml").exists()


async def test_a_broken_file_stays_as_it_is_and_is_named(tmp_path: Path) -> None:
    phoenix = phoenix_in(tmp_path)
    file = phoenix.cwd / ".mcp.json"
    file.write_text("{broken")
    ran = await phoenix.run("mcp", "add", "-s", "project", "a", "b")
    assert (ran.code, file.read_text()) == (2, "{broken")
    assert "is not valid JSON: line 1" in ran.err


async def test_a_server_that_does_not_answer_fails_the_test_with_its_reason(tmp_path: Path) -> None:
    phoenix = phoenix_in(tmp_path)
    config = '[mcp.bad]\ncommand = "/no/such"\n[mcp.off]\ncommand = "x"\nenabled = false\n'
    (phoenix.home / "config.toml").write_text(config)
    ran = await phoenix.run("mcp", "test")
    assert ran.code == 1
    assert "bad: failed, it cannot be started" in ran.out
    doctor = await phoenix.run("doctor")
    assert "1 server defined; `phoenix mcp test` connects to them" in doctor.out
    assert "bad: sandbox off, as conversations here: it can read and write what you can" in doctor.out
    assert "off: sandbox" not in doctor.out, "it is not used"
