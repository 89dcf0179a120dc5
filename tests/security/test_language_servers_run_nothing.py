"""No server, formatter or setting of a repository runs by an edit before the user's yes, wherever PATH leads."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from phoenix_tui.wiring.edit_services import FILE, AllowedFolders
from tests.support.cli import Phoenix, with_claude
from tests.support.git_repositories import empty_repository
from tests.support.journeys import calls, says
from tests.support.loopback import serve
from tests.support.outside import folder_outside_temp
from tools.lsp.definitions import KNOWN_SERVERS

FOLDERS = (".venv/bin", "venv/bin", "node_modules/.bin", "bin")
FILES = {"python": "a.py", "typescript": "a.ts", "go": "a.go", "rust": "a.rs", "shellscript": "a.sh", "json": "a.json"}


def planted(phoenix: Phoenix) -> Path:
    """Put every known server and a formatter into a repository; each would leave a mark."""
    mark = phoenix.home.parent / "ran"
    empty_repository(phoenix.cwd)
    for folder in FOLDERS:
        (phoenix.cwd / folder).mkdir(parents=True)
        for name in {*(server.command[0] for server in KNOWN_SERVERS), "node", "python", "python3", "neat"}:
            program = phoenix.cwd / folder / name
            program.write_text(f"#!/bin/sh\ntouch {mark}\ncat >/dev/null\n")
            program.chmod(0o755)
    return mark


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that is not temporary, so that nothing but the repository keeps its programs out."""
    with folder_outside_temp() as folder:
        yield folder


async def edited(place: Path, *, allowed: bool, project: str = "", flags: tuple[str, ...] = ()) -> tuple[bool, str]:
    """Edit a file of each language; True where something that was planted ran, and what the model read."""
    writes = [calls("write_file", f"t{name}", path=name, content="x\n") for name in FILES.values()]
    async with serve(*writes, calls("bash", "end", command="true"), says("Done.")) as server:
        path = ":".join(f"{place}/work/{folder}" for folder in FOLDERS)
        phoenix = with_claude(place, server.url, PATH=f"{path}:bin:.:/usr/bin:/bin")
        mark = planted(phoenix)
        (phoenix.home / "config.toml").write_text('[format]\n"*" = "neat"\n')
        if project:
            (phoenix.cwd / ".phoenix").mkdir()
            (phoenix.cwd / ".phoenix" / "config.toml").write_text(project)
        if allowed:
            AllowedFolders(phoenix.home / FILE).answer(phoenix.cwd, allowed=True)
        await phoenix.run("-p", "--permission-mode", "auto", *flags, "go")
        asked = [one.body for one in server.requests if one.method == "POST"]
        return mark.exists(), json.dumps(json.loads(asked[-1])) if asked else ""


async def test_nothing_that_a_repository_contains_runs_by_an_edit(place: Path) -> None:
    ran, told = await edited(place, allowed=False)
    assert not ran
    assert "its program lies in the project; /lsp allows that in this folder" in told
    assert "its program was not found outside of the project" in told
    assert not any(words in told for words in ("starting; what", "it has ended", "cannot be started"))


async def test_it_runs_after_the_yes(place: Path) -> None:
    ran, _ = await edited(place, allowed=True)
    assert ran


@pytest.mark.parametrize("flags", [(), ("--trust",)])
@pytest.mark.parametrize("table", ['[lsp.x]\ncommand = "bin/neat"\nfiles = "*"\n', '[format]\n"*" = "bin/neat"\n'])
async def test_settings_of_a_project_name_nothing_that_runs(place: Path, table: str, flags: tuple[str, ...]) -> None:
    ran, _ = await edited(place, allowed=False, project=table, flags=flags)
    assert not ran
