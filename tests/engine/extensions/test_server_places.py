"""Places that a definition names: what a server sees of the home folder, and what it may change for itself."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from engine.extensions.mcp.server_start import NamedPlaces, find_data_folder, find_named_places
from engine.ports.mcp import ServerOrigin
from tests.support.mcp_hubs import stdio
from tests.support.outside import folder_outside_temp
from tests.support.sandboxes import home


@pytest.fixture
def user() -> Iterator[Path]:
    with folder_outside_temp() as folder:
        for name in ("mcp", "apps/one/dist", "apps/one/node_modules/two/dist", "venv/bin", "docs"):
            (folder / name).mkdir(parents=True)
        for name in ("mcp/server.py", "apps/one/package.json", "apps/one/dist/index.js", "alone.py", "venv/bin/python"):
            (folder / name).touch()
        (folder / "apps/one/node_modules/two/dist/index.js").touch()
        with home(folder):
            yield folder.resolve()


CASES = [
    (("python3", "{home}/mcp/server.py"), {}, ("mcp",), ()),
    (("node", "{home}/apps/one/dist/index.js"), {}, ("apps/one",), ()),
    (("node", "{home}/apps/one/node_modules/two/dist/index.js"), {}, ("apps/one",), ()),
    (("{home}/venv/bin/python", "-m", "server"), {}, ("venv",), ()),
    (("x", "--root={home}/docs", "~/docs"), {}, (), ("docs",)),
    (("x", "{home}/alone.py", "{home}", "/", "/tmp"), {}, (), ("alone.py",)),
    (("x",), {"MEMORY": "{home}/mcp/new.jsonl"}, ("mcp",), ()),
    (("x",), {"PYTHONPATH": "{home}/docs:{home}/mcp"}, (), ("docs", "mcp")),
    (("x", "{home}/none/at/all"), {}, (), ()),
]


@pytest.mark.parametrize(("command", "environment", "programs", "folders"), CASES)
def test_programs_and_folders_are_told_apart(
    user: Path,
    command: tuple[str, ...],
    environment: dict[str, str],
    programs: tuple[str, ...],
    folders: tuple[str, ...],
) -> None:
    words = tuple(word.replace("{home}", str(user)) for word in command)
    values = {name: value.replace("{home}", str(user)) for name, value in environment.items()}
    found = find_named_places(replace(stdio(command=words), environment=values))
    mine = NamedPlaces(
        tuple(path for path in found.programs if path.is_relative_to(user)),
        tuple(path for path in found.folders if path.is_relative_to(user)),
    )
    assert mine == NamedPlaces(tuple(user / name for name in programs), tuple(user / name for name in folders))
    assert user not in found.programs
    assert Path("/usr/bin") not in found.programs


def test_a_project_shows_nothing(user: Path) -> None:
    definition = replace(stdio(command=("x", str(user / "docs"))), origin=ServerOrigin.PROJECT)
    assert find_named_places(definition) == NamedPlaces()


def test_a_server_of_a_project_keeps_its_files_for_that_project(tmp_path: Path) -> None:
    mine = stdio("a/b")
    theirs = replace(mine, origin=ServerOrigin.PROJECT)
    roots = (Path("/one"), Path("/two"))
    assert len({find_data_folder(tmp_path, mine, root) for root in roots}) == 1
    assert len({find_data_folder(tmp_path, theirs, root) for root in roots}) == 2
    assert find_data_folder(tmp_path, mine, roots[0]).parent == tmp_path
