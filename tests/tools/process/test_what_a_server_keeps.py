"""Files that a server writes below the home folder in a sandbox are there at its next start, and nowhere else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.outside import folder_outside_temp
from tests.support.sandboxes import Box, home, sandbox
from tools.contract import KeptPlaces, Sandbox, SandboxMode
from tools.services import ServiceCommand

CONFINED = Sandbox(SandboxMode.WORKSPACE, network=False)


@pytest.fixture
def place() -> Iterator[Path]:
    """A home folder with documents, dot folders and Phoenix's own, which has the kept ones; a server in `mcp`."""
    with folder_outside_temp() as folder:
        for name in (
            "home/docs",
            "home/.config/x",
            "home/.local/share",
            "home/.local/state/phoenix",
            "home/mcp",
            "work",
        ):
            (folder / name).mkdir(parents=True)
        for name in ("docs/a.txt", ".config/x/set", ".profile", "mcp/server.py", ".local/state/phoenix/phoenix.db"):
            (folder / "home" / name).write_text("real\n", "ascii")
        (folder / "home" / ".link").symlink_to(".profile")
        with home(folder / "home"):
            yield folder.resolve()


def kept(place: Path, name: str = "one") -> KeptPlaces:
    return KeptPlaces(place / "home" / ".local" / "state" / "phoenix" / "servers" / name, (place / "home" / "mcp",))


async def run(box: Box, script: str, kept: KeptPlaces | None, sandbox: Sandbox = CONFINED) -> str:
    command = ServiceCommand(("/bin/sh", "-c", script), box.folder, sandbox=sandbox, kept=kept)
    ended = await box.processes.services.run_program(command)
    return (ended.stdout.head + ended.stderr.head).decode()


def real(place: Path) -> dict[str, str]:
    found = [path for path in (place / "home").rglob("*") if path.is_file() and "servers" not in path.parts]
    return {str(path.relative_to(place / "home")): path.read_text("ascii") for path in found}


WRITE = """
mkdir -p ~/mem ~/.npm/deep ~/.local/share/tool && echo one > ~/mem/memory.jsonl && echo two > ~/.config/x/new
echo three > ~/.config/x/set && echo four > ~/.local/share/tool/data && echo five > ~/mcp/state && echo six > ~/.new
echo seven > ~/.local/other && echo eight > ~/.npm/deep/file && echo written
"""
READ = """cd; cat mem/memory.jsonl .config/x/new .config/x/set .local/share/tool/data mcp/state mcp/server.py .new \
.local/other .npm/deep/file .profile .link"""

KEPT = ["one", "two", "three", "four", "five", "real", "six", "seven", "eight", "real", "real"]


async def test_all_of_it_is_there_at_the_next_start_and_nothing_of_it_outside(place: Path) -> None:
    before = real(place)
    for turn in (WRITE, READ):
        async with sandbox(place / "work", hidden=(place / "home" / ".local" / "state" / "phoenix",)) as box:
            said = await run(box, turn, kept(place))
            assert said == (
                "written\n" if turn is WRITE else "one\ntwo\nthree\nfour\nfive\nreal\nsix\nseven\neight\nreal\nreal\n"
            )
    assert real(place) == before


async def test_documents_keys_and_files_of_phoenix_stay_out_of_sight(place: Path) -> None:
    (place / "home" / ".ssh").mkdir()
    (place / "home" / ".ssh" / "id").write_text("key\n", "ascii")
    async with sandbox(place / "work", hidden=(place / "home" / ".local" / "state" / "phoenix",)) as box:
        said = await run(
            box, "cat ~/docs/a.txt ~/.ssh/id ~/.local/state/phoenix/phoenix.db 2>/dev/null; ls ~", kept(place)
        )
    assert said == "mcp\n"


async def test_another_server_and_a_read_only_sandbox_see_none_of_it(place: Path) -> None:
    async with sandbox(place / "work") as box:
        await run(box, WRITE, kept(place))
        assert "No such file" in await run(box, "cat ~/mem/memory.jsonl", kept(place, "other"))
        read_only = Sandbox(SandboxMode.READ_ONLY, network=False)
        assert "No such file" in await run(box, "cat ~/mem/memory.jsonl", kept(place), read_only)
        assert await run(box, "cat ~/mcp/server.py", kept(place), read_only) == "real\n"
        assert "Read-only" in await run(box, "echo x > ~/mcp/state", kept(place), read_only)


async def test_a_second_process_of_a_server_shares_new_files_and_sees_those_in_folders_of_the_user(place: Path) -> None:
    async with sandbox(place / "work") as box:
        await run(box, WRITE, kept(place))
        command = ServiceCommand(("/bin/cat",), place / "work", sandbox=CONFINED, kept=kept(place))
        async with await box.processes.services.open(command):
            said = await run(
                box,
                "cat ~/mem/memory.jsonl ~/.config/x/new; echo more >> ~/mem/memory.jsonl; echo x > ~/.config/x/y",
                kept(place),
            )
            assert said == "one\ntwo\n"
        said = await run(box, "cat ~/mem/memory.jsonl ~/.config/x/y", kept(place))
    assert said.startswith("one\nmore\n")
    assert "No such file" in said
