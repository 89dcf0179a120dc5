"""SECURITY V5: a program planted in a folder of PATH, by a repository or another user, is never run by Phoenix."""

from __future__ import annotations

import os
import stat
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.git_repositories import empty_repository
from tests.support.outside import folder_outside_temp
from tests.support.tools import use
from tools.contract import AS_IN_A_SHELL, HELPER_SANDBOX, UNCONFINED, Command
from tools.process import programs
from tools.process.environment import SEARCH_PATHS, absolute_entries
from tools.process.start import Processes, ProcessSettings, start_processes
from tools.search import Search

PLANTED = "#!/bin/sh\ntouch {mark}\n"


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that is not temporary; the repository is `repository` in it."""
    with folder_outside_temp() as folder:
        (folder / "repository" / "sub").mkdir(parents=True)
        empty_repository(folder / "repository")
        (folder / "tools").mkdir()
        yield folder


@pytest.fixture
def use_path(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """Set PATH as if Phoenix had been started with it."""
    programs.list_trusted_entries.cache_clear()
    yield monkeypatch
    programs.list_trusted_entries.cache_clear()


@pytest.fixture
async def processes(use_path: pytest.MonkeyPatch) -> AsyncIterator[Processes]:
    started = await start_processes(ProcessSettings(environment={"PATH": ".:/usr/bin:/bin"}))
    yield started
    await started.close()


def plant(folder: Path, mark: Path, *names: str) -> None:
    for name in names:
        (folder / name).write_text(PLANTED.format(mark=mark), "ascii")
        (folder / name).chmod(0o755)


@pytest.mark.parametrize("entry", [".", "", "{repo}", "{repo}/sub", "sub", "{repo}/../repository", "{link}", "{gone}"])
async def test_ripgrep_and_git_of_the_repository_are_not_run(
    entry: str, place: Path, processes: Processes, use_path: pytest.MonkeyPatch
) -> None:
    repository, mark = place / "repository", place / "ran"
    for folder in (repository, repository / "sub"):
        plant(folder, mark, "rg", "git", "bash")
    (place / "link").symlink_to(repository)
    (repository / "text").write_text("needle\n", "ascii")
    named = entry.format(repo=repository, link=place / "link", gone=place / "gone")
    use_path.setenv("PATH", f"{named}:/usr/bin:/bin")
    use_path.chdir(repository)
    found = await use(Search(processes.runner), repository, pattern="needle")
    assert found.text == "text:1: needle"
    await processes.runner.run(Command(("git", "--version"), repository, sandbox=HELPER_SANDBOX))
    assert programs.find_program("bash", repository / "sub") in {"/usr/bin/bash", "/bin/bash"}
    assert not mark.exists()


@pytest.mark.parametrize("working_dir", ["repository", "repository/sub"])
def test_a_link_from_a_trusted_folder_into_the_repository_is_not_followed(
    working_dir: str, place: Path, use_path: pytest.MonkeyPatch
) -> None:
    plant(place / "repository", place / "ran", "rg")
    (place / "tools" / "rg").symlink_to(place / "repository" / "rg")
    use_path.setenv("PATH", str(place / "tools"))
    assert programs.find_program("rg", place / working_dir) == ""


@pytest.mark.parametrize("what", ["folder", "above", "file", "temporary"])
def test_what_everybody_may_write_is_not_used(
    what: str, place: Path, tmp_path: Path, use_path: pytest.MonkeyPatch
) -> None:
    folder = tmp_path if what == "temporary" else place / "tools" / "bin"
    folder.mkdir(exist_ok=True)
    plant(folder, place / "ran", "rg")
    use_path.setenv("PATH", str(folder))
    assert (programs.find_program("rg", place / "repository") != "") is (what != "temporary")
    programs.list_trusted_entries.cache_clear()
    opened = {"folder": folder, "above": folder.parent, "file": folder / "rg", "temporary": folder}[what]
    opened.chmod(stat.S_IMODE(opened.stat().st_mode) | stat.S_IWOTH)
    assert programs.find_program("rg", place / "repository") == ""


async def test_commands_see_no_relative_entry_in_any_search_path(place: Path) -> None:
    paths = {name: f":.:lib:{place}::" for name in SEARCH_PATHS} | {"CPATH": "."}
    processes = await start_processes(ProcessSettings(environment=paths))
    plant(place, place / "ran", "planted")
    shell = Command(("/usr/bin/env",), place, sandbox=AS_IN_A_SHELL, environment={"PATH": ".:/usr/bin:"})
    try:
        finished = await processes.runner.run(shell)
    finally:
        await processes.close()
    seen = dict(line.split("=", 1) for line in finished.captured.head.decode().splitlines())
    assert seen["PATH"] == "/usr/bin"
    assert "CPATH" not in seen
    assert {seen[name] for name in SEARCH_PATHS - {"PATH", "CPATH"}} == {str(place)}


@pytest.mark.parametrize("working_dir", ["/", "repository"])
async def test_a_program_of_the_desktop_is_not_taken_from_the_repository(
    working_dir: str, place: Path, use_path: pytest.MonkeyPatch
) -> None:
    plant(place / "repository" / "sub", place / "ran", "xclip", "xdg-open")
    use_path.chdir(place / "repository")
    processes = await start_processes(ProcessSettings())
    path = {"PATH": f"{place}/repository/sub"}
    try:
        for name in ("xclip", "xdg-open"):
            with pytest.raises(FileNotFoundError):
                await processes.runner.run(Command((name,), place / working_dir, environment=path, sandbox=UNCONFINED))
    finally:
        await processes.close()
    assert not (place / "ran").exists()


@given(st.lists(st.sampled_from(["", ".", "..", "bin", "./bin", "~/bin", "/usr/bin", "/bin", " ", "/."]), max_size=6))
def test_what_is_left_of_a_search_path_is_absolute(entries: list[str]) -> None:
    kept = absolute_entries(os.pathsep.join(entries))
    assert [entry for entry in entries if entry.startswith("/")] == (kept.split(os.pathsep) if kept else [])


async def test_a_helper_sees_no_variable_that_names_code(place: Path) -> None:
    hostile = dict.fromkeys(("LD_LIBRARY_PATH", "PYTHONPATH", "PERL5LIB", "NODE_PATH", "GIT_SSL_CAINFO"), "/opt/x")
    processes = await start_processes(ProcessSettings(environment={**hostile, "LANG": "C", "PATH": "."}))
    try:
        finished = await processes.runner.run(Command(("/usr/bin/env",), place, sandbox=HELPER_SANDBOX))
    finally:
        await processes.close()
    seen = {line.partition("=")[0] for line in finished.captured.head.decode().splitlines()}
    assert seen <= {"PATH", "LANG", "PWD", "TMPDIR", "HOME"}
