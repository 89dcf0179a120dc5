"""Hosts that a command reaches are asked about one by one, by keys; a kept rule asks no more, a no is named."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.cli import with_claude
from tests.support.journeys import calls, result_text, says
from tests.support.loopback import serve
from tests.support.program import program
from tests.support.proxying import web_server
from tests.support.sandboxes import needs_full_enforcement
from tests.support.waiting import typing_guard

pytestmark = pytest.mark.pty
HOSTS = json.dumps({f"{name}.example": [["127.0.0.1"]] for name in ("one", "two", "three")})


def fetches(port: int, *names: str) -> str:
    """A command that fetches a page of each host, one after the other."""
    return "; ".join(f"curl -sS -m 60 http://{name}.example:{port}/" for name in names)


async def test_each_host_is_asked_about_and_a_rule_is_kept_for_the_next_command(tmp_path: Path) -> None:
    await needs_full_enforcement()
    async with web_server([]) as port:
        first, second = fetches(port, "one", "two"), fetches(port, "one")
        answers = (
            calls("bash", command=first),
            says("First."),
            calls("bash", "toolu_2", command=second),
            says("Second."),
        )
        async with serve(*answers) as server:
            phoenix = with_claude(tmp_path, server.url, PHOENIX_SANDBOX="", TEST_HOSTS=HOSTS)
            (phoenix.home / "config.toml").write_text('network = []\npermission_mode = "auto"\n')
            async with program(phoenix, module="tests.support.hosts_screen", columns=120) as running:
                await running.ready()
                await running.send("Do it")
                await running.shows(f"wants to reach one.example:{port}", "Always in this project", "Any host")
                await typing_guard()
                running.type("3")
                await running.shows(f"wants to reach two.example:{port}")
                await typing_guard()
                running.type("5")
                await running.shows("First.", f"net(one.example:{port})", "the user did not allow two.example")
                assert "hello" in result_text(server.requests[1])
                assert f"the user did not allow two.example:{port}" in result_text(server.requests[1])
                await running.send("Again")
                await running.shows("Second.")
                assert "hello" in result_text(server.requests[3])
