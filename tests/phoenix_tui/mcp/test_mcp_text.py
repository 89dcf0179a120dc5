"""Words about MCP servers."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from phoenix_tui.text.mcp_text import details, origin_words, shown_origin
from tests.support.fake_mcp import a_server


def test_a_screen_shows_the_home_folder_of_a_file_as_a_tilde_and_json_its_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/robin")
    path = str(Path("/home/robin/.config/phoenix/config.toml"))
    server = replace(a_server(), source=path)
    assert shown_origin(server) == "~/.config/phoenix/config.toml"
    assert "defined in   ~/.config/phoenix/config.toml" in details(server)
    assert origin_words(server) == path
