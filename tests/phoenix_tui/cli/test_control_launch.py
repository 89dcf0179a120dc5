"""`--await-initialize`: settings, denied tools, MCP servers and plugins of the handshake count like flags."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from phoenix_tui.cli.control.flags import control_flags
from phoenix_tui.cli.control.launch_fields import FirstLine, confirmed, first_line, launched
from phoenix_tui.cli.control.lines import LONGEST
from tests.phoenix_tui.cli.test_control_plugins import plugin
from tests.phoenix_tui.cli.test_control_servers import bodies
from tests.support.cli import with_claude
from tests.support.control_host import Frame, hosted
from tests.support.loopback import serve
from tests.support.loopback_agents import calls, says
from tests.support.mcp_phoenix import SERVER

ARGV = ("--input-format", "stream-json", "--output-format", "stream-json", "--await-initialize")
NOT_APPLIED = ("settings_applied", "disallowed_tools_applied", "mcp_servers_applied", "plugins_applied")


def fields(root: Path) -> Frame:
    """One of each; the plugin without its servers."""
    return {
        "settings": {"permissions": {"deny": ["Bash(echo two)"]}},
        "disallowedTools": ["Write"],
        "mcpServers": {"kinds": SERVER},
        "plugins": [{"type": "local", "path": str(root), "skipMcpDiscovery": True}],
    }


async def test_fields_of_the_handshake_count_like_flags_and_are_confirmed(tmp_path: Path) -> None:
    launch, two = fields(plugin(tmp_path)), calls("bash", {"command": "echo two"})
    async with serve(two, says("Done.")) as server:
        phoenix = with_claude(tmp_path, server.url)
        flags = ("--await-initialize", "--initialize-fields=settings,disallowedTools", "--allowedTools", "Bash")
        async with hosted(phoenix, *flags) as host:
            answer = (await host.ask("initialize", **launch))["response"]
            init = (await host.turn("Go"))[0]
            again = (await host.ask("initialize", **launch | {"disallowedTools": []}))["response"]
        _, second = bodies(server)
    assert [answer[name] for name in NOT_APPLIED] == [True] * 4
    assert [again[name] for name in NOT_APPLIED] == [True, False, True, True]
    assert "rule" in json.dumps(second["messages"][-1])
    assert "two\\n" not in json.dumps(second["messages"][-1]), "it was refused"
    assert "Write" not in init["tools"]
    assert [(one["name"], one["status"]) for one in init["mcp_servers"]] == [("kinds", "connected")]
    assert init["skills"] == ["tools:web"]
    assert b"unknown here" not in bytes(host.err)


async def test_without_the_flag_they_are_not_confirmed_and_do_nothing(tmp_path: Path) -> None:
    async with serve(says("Done.")) as server, hosted(with_claude(tmp_path, server.url)) as host:
        answer = (await host.ask("initialize", hooks={"Stop": []}, **fields(plugin(tmp_path))))["response"]
        init = (await host.turn("Go"))[0]
    assert [answer[name] for name in NOT_APPLIED] == [False] * 4
    assert answer["hooks_applied"] is True
    assert ("Write" in init["tools"], init["mcp_servers"], init["skills"]) == (True, [], [])


@pytest.mark.parametrize(
    "odd",
    [
        {"settings": "x", "disallowedTools": "x", "mcpServers": [], "plugins": {}},
        {"settings": [], "disallowedTools": ["Bash", 7], "mcpServers": 7, "plugins": ["x"]},
        {"plugins": [{"type": "local"}, {"type": "far", "path": "x"}]},
        {"plugins": [{"type": "local", "path": "x"}] * 201, "disallowedTools": ["Bash"] * 5_001},
    ],
)
def test_fields_of_another_shape_are_left_out_and_not_confirmed(odd: Any) -> None:
    flags = launched(control_flags(ARGV), FirstLine(odd, b""))
    assert (flags.settings, flags.disallowed, flags.run.mcp_config, flags.plugin_dirs) == ("", (), (), ())
    assert set(confirmed(odd, flags.launch).values()) == {False}


def test_settings_of_the_command_line_are_not_replaced() -> None:
    given: Frame = {"settings": {"model": "opus"}}
    flags = launched(control_flags((*ARGV, "--settings", "{}")), FirstLine(given, b""))
    assert (flags.settings, confirmed(given, flags.launch)) == ("{}", {"settings_applied": False})


HANDSHAKE = b'{"type":"control_request","request_id":"1","request":{"subtype":"initialize","a":1}}\n'


@pytest.mark.parametrize(
    ("pieces", "request_"),
    [
        ([b"\n \n" + HANDSHAKE[:20], HANDSHAKE[20:] + b'{"type":"user"'], {"subtype": "initialize", "a": 1}),
        ([HANDSHAKE.rstrip()], {"subtype": "initialize", "a": 1}),
        ([b'{"type":"user","message":{}}\n' + HANDSHAKE], {}),
        ([b"nonsense\n"], {}),
        ([b'{"type":"control_request","request":["initialize"]}\n'], {}),
        ([], {}),
    ],
)
def test_the_first_line_is_read_once_and_nothing_behind_it_is_lost(pieces: list[bytes], request_: Frame) -> None:
    given: Iterator[bytes] = iter([*pieces, b""])
    first = first_line(lambda: next(given))
    assert (first.request, first.ahead) == (request_, b"".join(pieces))


def test_a_first_line_without_end_is_given_up(tmp_path: Path) -> None:
    read = os.urandom(1 << 10).hex().encode() * 64
    first = first_line(lambda: read)
    assert first.request == {}
    assert LONGEST < len(first.ahead) <= LONGEST + len(read)
