"""Words about MCP servers."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from engine.ports.mcp import ServerDefinition, ServerOrigin, confinement
from phoenix_tui.text.server_text import details, origin_words, sandbox_words, show_origin
from tests.support.fake_mcp import a_server
from tools.contract import Enforcement, SandboxMode

OFF = "it can read and write what you can"


def test_a_screen_shows_the_home_folder_of_a_file_as_a_tilde_and_json_its_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/robin")
    path = str(Path("/home/robin/.config/phoenix/config.toml"))
    server = replace(a_server(), source=path)
    assert show_origin(server) == "~/.config/phoenix/config.toml"
    assert "defined in   ~/.config/phoenix/config.toml" in details(server)
    assert origin_words(server) == path


def test_details_say_that_hosts_are_no_limit_of_a_server() -> None:
    confined = replace(a_server(), sandbox=SandboxMode.WORKSPACE)
    assert "network      every host: the hosts of commands do not limit servers" in details(confined)
    assert "network      none: sandbox_network = false" in details(replace(confined, has_network=False))
    assert "network " not in details(a_server())


@pytest.mark.parametrize(
    ("own", "chosen", "enforcement", "said"),
    [
        (None, False, Enforcement.FULL, "workspace, as conversations here"),
        (SandboxMode.READ_ONLY, False, Enforcement.FULL, "read-only, by its definition"),
        (SandboxMode.OFF, False, Enforcement.FULL, f"off, by its definition: {OFF}"),
        (SandboxMode.OFF, True, Enforcement.FILES, f"off, by your choice: {OFF}"),
        (None, False, Enforcement.FILES, "workspace, weakened: this system guards files alone"),
        (None, False, Enforcement.NONE, f"off, since this system can enforce none: {OFF}"),
    ],
)
def test_the_sandbox_of_a_server_is_named_with_its_reason(
    own: SandboxMode | None, chosen: bool, enforcement: Enforcement, said: str
) -> None:
    defined = ServerDefinition(name="a", origin=ServerOrigin.USER, source="", sandbox=own, has_chosen_sandbox=chosen)
    assert sandbox_words(*confinement(defined, SandboxMode.WORKSPACE, enforcement)) == said
