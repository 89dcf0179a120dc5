"""SECURITY V10: no conversation reads what commands of another project printed, and a browser gets no key."""

from __future__ import annotations

import contextlib
import os
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from engine.permissions.place import PathPlace
from phoenix_tui.terminal.driver import QuietDriver
from tests.support.outside import folder_outside_temp
from tests.support.sandboxes import CONFINED, sandbox
from tests.support.waiting import poll_blocking
from tools.bash import Bash
from tools.contract import ToolClass, ToolContext, ToolRequest, ToolSpec
from tools.files.location import spills_of
from tools.process.private_home import list_sockets

READ = ToolSpec("read_file", "", {}, ToolClass.READ)
SAYS = "echo a-key-of-this-project; head -c 300000 /dev/zero | tr '\\0' x"


@pytest.fixture
def place() -> Iterator[Path]:
    with folder_outside_temp() as folder:
        for name in ("one", "two", "state"):
            (folder / name).mkdir()
        yield folder


async def test_long_outputs_of_one_project_are_hidden_from_commands_of_another(place: Path) -> None:
    state = place / "state"
    async with sandbox(place / "one", hidden=(state,)) as box:
        bash = Bash(box.processes.jobs, state / "outputs")

        async def run(folder: str, command: str, call: str) -> str:
            context = ToolContext("c", call, place / folder, False, lambda _: None, sandbox=CONFINED)
            return (await bash.run({"command": command}, context)).text

        await run("one", SAYS, "first")
        (spill,) = spills_of(state / "outputs", place / "one").iterdir()
        assert "a-key-of-this-project" in await run("one", f"head -c 30 {spill}", "again")
        found = await run("two", f"cat {spill}; grep -r a-key {state}; ls {state}/outputs", "other")
    assert "a-key-of-this" not in found


def test_reading_tools_are_refused_the_outputs_of_another_project(place: Path) -> None:
    outputs = place / "outputs"
    mine = PathPlace(place / "one", (spills_of(outputs, place / "one"),), (outputs,))
    for name, refused in (("one", False), ("two", True)):
        request = ToolRequest("x", (spills_of(outputs, place / name) / "output-1.txt",))
        assert bool(mine.own_path(READ, request)) is refused


def test_a_browser_gets_no_key_and_starts_elsewhere(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program, said = place / "browser", place / "said"
    program.write_text(f'#!/bin/sh\n(pwd; echo "$1"; env) > {said}.new; mv {said}.new {said}\n', "ascii")
    program.chmod(0o700)
    keys = {"ANTHROPIC_API_KEY": "k-1", "MY_TOKEN": "k-2", "PROXY": "http://a:k-3@b", "PHOENIX_X": "k-4"}
    for name, value in {**keys, "BROWSER": str(program), "XAUTHORITY": "/x/y"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(place / "one")
    (place / "one" / "webbrowser.py").write_text(f"open({str(place / 'ran')!r}, 'w')", "ascii")
    QuietDriver.open_url(object.__new__(QuietDriver), "https://example.org/?a=b")
    assert poll_blocking(said.exists)
    folder, address, *environment = said.read_text().splitlines()
    assert (folder, address) == ("/", "https://example.org/?a=b")
    assert "XAUTHORITY=/x/y" in environment
    assert not [line for line in environment if "k-" in line and line.partition("=")[0] in keys]
    assert not (place / "ran").exists()
    assert "ANTHROPIC_API_KEY" in os.environ


async def test_a_workspace_of_temporary_files_shows_no_private_folder_of_a_conversation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The copies of caches lie there: who writes them decides what commands of another conversation run."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    async with sandbox(tmp_path) as box:
        await box.sh("echo secret > /var/tmp/mine", conversation="one")
        said = await box.sh(
            "cd phoenix-sandbox-*; find . | head; echo x > lock; touch new; cd ..; echo y > mine",
            conversation="two",
        )
        base = box.processes.planner.scratch_folder
        assert base is not None
        assert "conversation-" not in said
        assert (base / "lock").read_bytes() == b""
        assert not (base / "new").exists()
    assert (tmp_path / "mine").exists()


async def test_no_number_of_sockets_in_the_workspace_uncovers_one_elsewhere(place: Path) -> None:
    with contextlib.ExitStack() as stack:
        for name in [*(f"one/{number}" for number in range(400)), "victim"]:
            server = stack.enter_context(socket.socket(socket.AF_UNIX))
            server.bind(str(place / name))
            server.listen()
        assert place / "victim" in list_sockets()
        connect = f"import socket as s; s.socket(s.AF_UNIX).connect('{place}/victim'); print('connected')"
        limits = replace(CONFINED, network=True)
        async with sandbox(place / "one") as box:
            said = await box.sh(f'{sys.executable} -c "{connect}" 2>&1 | tail -1', limits=limits)
    assert "connected" not in said
