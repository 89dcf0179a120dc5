"""Servers in a sandbox: the reason of a failure names it, its choice lasts, and what a server keeps can be removed."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from engine.extensions.mcp.connection import WAY_OUT
from engine.ports.mcp import ServerOrigin, ServerState
from tests.support.mcp_hubs import Hub, hub_in, stdio
from tests.support.outside import folder_outside_temp
from tests.support.sandboxes import home, needs_full_enforcement
from tools.contract import SandboxMode
from tools.mcp_host.protocol import Failure


@pytest.fixture
async def place() -> None:
    await needs_full_enforcement()


@pytest.fixture
def folder(place: None) -> Iterator[Path]:
    """A folder with a home folder, whose documents have a server that only writes to stderr."""
    with folder_outside_temp() as made:
        (made / "home" / "docs").mkdir(parents=True)
        (made / "home" / "docs" / "server.py").write_text("import sys; sys.exit('it runs')\n", "ascii")
        with home(made / "home"):
            yield made.resolve()


def confined(one: Hub) -> None:
    one.record = replace(one.record, sandbox=SandboxMode.WORKSPACE)


async def test_a_server_in_a_hidden_folder_fails_with_the_path_and_the_way_out(folder: Path) -> None:
    script = folder / "home" / "docs" / "server.py"
    theirs = replace(stdio("kinds", (sys.executable, str(script))), origin=ServerOrigin.PROJECT)
    async with hub_in(folder, theirs) as one:
        confined(one)
        await one.hub.settle(one.record, 20)
        view = await one.view()
    assert (view.state, view.sandbox) == (ServerState.FAILED, SandboxMode.WORKSPACE)
    assert view.text.endswith(f"; the sandbox was the reason: {script} is hidden; {WAY_OUT}")


async def test_a_server_that_the_user_defines_sees_its_script(folder: Path) -> None:
    mine = stdio("kinds", (sys.executable, str(folder / "home" / "docs" / "server.py")))
    async with hub_in(folder, mine) as one:
        confined(one)
        await one.hub.settle(one.record, 20)
        view = await one.view()
    assert "it runs" in view.text
    assert "sandbox" not in view.text


@pytest.mark.parametrize("mode", [SandboxMode.OFF, SandboxMode.READ_ONLY])
async def test_a_definition_has_a_sandbox_of_its_own(folder: Path, mode: SandboxMode) -> None:
    async with hub_in(folder, stdio(sandbox=mode)) as one:
        confined(one)
        assert (await one.view()).sandbox is mode


async def test_what_a_server_keeps_is_named_and_removed(folder: Path) -> None:
    async with hub_in(folder, stdio()) as one:
        confined(one)
        assert not await one.hub.forget_kept(one.record, "kinds")
        await one.hub.settle(one.record, 20)
        view = await one.view()
        assert view.kept is not None
        assert view.kept.parent == folder / "servers"
        assert view.kept.is_dir()
        assert await one.hub.forget_kept(one.record, "kinds")
        assert not view.kept.exists()


async def test_no_sentence_names_a_server_twice(folder: Path) -> None:
    async with hub_in(folder, stdio()) as one:
        await one.hub.settle(one.record, 20)
        [server] = one.hub.connections(one.record)
        for failure in (
            Failure(kind="timeout", message="MCP server 'kinds' did not answer in time."),
            Failure(kind="server", message="MCP server 'kinds' answered with an error: no."),
            Failure(kind="internal", message="MCP server 'kinds': no."),
            Failure(kind="limit", message="no more"),
        ):
            said = server.sentence(failure)
            assert said.count("MCP server 'kinds'") == 1
            assert said.endswith(".")
