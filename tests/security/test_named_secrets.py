"""A key under a variable of any name is kept from commands and servers, and out of logs, notes and reports."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from engine.ports.mcp import ServerOrigin
from phoenix_tui.cli import logs
from phoenix_tui.config.credentials import Credentials, save_key
from phoenix_tui.config.load import user_layer
from phoenix_tui.config.sources.server_definitions import DefinitionPlace, parse_definition
from tests.support.cli import with_claude
from tests.support.journeys import calls, says
from tests.support.loopback import serve
from tools.known_secrets import LONGEST, MOST, KnownSecrets
from tools.process.desktop import for_desktop
from tools.process.environment import scrub_environment
from tools.process.programs import without_keys

CONFIG = """
[web]
search = "brave"
key_env = "LC_SEARCH"
[providers.one]
base_url = "https://one.example/v1"
api_key_env = "LC_ONE"
headers = { "X-Team" = "${LC_TEAM}", "X-Person" = "${USER}", "X-Api-Key" = "written-in-the-file" }
query = { part = "${LC_PART}" }
"""
NAMES = ("LC_SEARCH", "LC_ONE", "LC_TEAM", "LC_PART")
ENVIRONMENT = {name: f"value of {name}" for name in NAMES} | {"USER": "somebody", "LC_ALL": "C.UTF-8"}


@pytest.fixture
def known(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text(CONFIG)
    user_layer(tmp_path / "config.toml")


@pytest.mark.usefixtures("known")
@pytest.mark.parametrize("environment_for", [scrub_environment, without_keys, for_desktop])
def test_no_program_gets_a_variable_that_the_settings_name_for_a_key(
    environment_for: Callable[[Mapping[str, str]], dict[str, str]],
) -> None:
    given = environment_for(ENVIRONMENT)
    assert not given.keys() & set(NAMES)
    assert (given["USER"], given["LC_ALL"]) == ("somebody", "C.UTF-8")


@pytest.mark.usefixtures("known")
def test_their_values_are_secrets() -> None:
    secrets = set(Credentials(ENVIRONMENT | {"ANTHROPIC_AUTH_TOKEN": "gateway-token"}, {}).secrets())
    assert secrets >= {*(ENVIRONMENT[name] for name in NAMES), "written-in-the-file", "gateway-token"}
    assert "somebody" not in secrets


def test_what_becomes_known_later_is_out_of_an_open_log(tmp_path: Path) -> None:
    handler = logs.start_log(tmp_path / "log.jsonl", (), debug=False)
    assert handler is not None
    place = DefinitionPlace(ServerOrigin.USER, "config.toml", Path("/"), {"GH_TOKEN": "variable-of-a-server"})
    env = {"GH": "${GH_TOKEN}", "DB_PASSWORD": "literal-of-a-server", "MODE": "quick-and-plain"}
    parse_definition("one", {"command": "x", "env": env}, place)
    headers = {"Authorization": "Bearer opaque-of-a-server"}
    parse_definition("two", {"type": "http", "url": "https://example.com", "headers": headers}, place)
    save_key(tmp_path / "credentials.toml", "one", "typed-by-the-user")
    try:
        logging.getLogger("tests").warning(
            "variable-of-a-server literal-of-a-server opaque-of-a-server typed-by-the-user quick-and-plain"
        )
    finally:
        logging.getLogger().removeHandler(handler)
        handler.close()
    text = (tmp_path / "log.jsonl").read_text()
    assert f'"{" ".join([logs.BLOT] * 4)} quick-and-plain"' in text


def test_a_definition_of_a_project_names_no_secrets(tmp_path: Path) -> None:
    """Else its words would vanish from the log."""
    place = DefinitionPlace(ServerOrigin.PROJECT, ".mcp.json", Path("/"), {})
    parse_definition("one", {"command": "x", "env": {"A_TOKEN": "refused-by-the-policy"}}, place)
    assert "refused-by-the-policy" not in Credentials({}, {}).secrets()


def test_values_are_bounded() -> None:
    known = KnownSecrets()
    for number in range(MOST + 10):
        known.add_value(f"secret number {number}")
    known.add_value("short")
    known.add_value("x" * (LONGEST + 1))
    known.add_names(["", "ODD"])
    assert len(known.values({"": "empty"})) == MOST
    assert len(known.values({"ODD": "one more"})) == MOST + 1


async def test_a_command_of_a_run_does_not_see_the_key_of_the_search(tmp_path: Path) -> None:
    async with serve(calls("bash", command="env | sort"), says("done")) as server:
        phoenix = with_claude(tmp_path, server.url, LC_SEARCH="planted-in-the-environment", LC_TIME="C.UTF-8")
        (phoenix.home / "config.toml").write_text(CONFIG)
        ran = await phoenix.run("-p", "--permission-mode", "auto", "look")
        assert ran.code == 0, ran.err
        told = server.requests[1].body
    assert b"LC_TIME=C.UTF-8" in told
    assert b"planted-in-the-environment" not in told
