"""Paths without the user's permission: a sandboxed command sees no documents and no other project of the home."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tools.contract import HELPER_SANDBOX, Command, Sandbox, SandboxMode
from tools.process import private_home
from tools.process.private_home import private_entries, tool_folders
from tools.process.start import ProcessSettings, start_processes

LIMIT = 30.0
OUTSIDE = "nothing of this may be read"


@pytest.fixture(params=["in a temporary folder", "beside the real home"])
def home(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A home folder with documents, two projects, a tool and a cache; where all is covered anyway, and elsewhere."""
    made = tmp_path
    if request.param == "beside the real home":
        made = Path(tempfile.mkdtemp(prefix="phoenix-home-", dir=Path.home()))
    for name in ("Documents/taxes.txt", "src/other/.env", "src/proj/mine.txt", "diary.txt", ".config/tool.ini"):
        (made / name).parent.mkdir(parents=True, exist_ok=True)
        (made / name).write_text(OUTSIDE if "proj" not in name and "tool" not in name else "mine\n")
    for name in ("tools/bin", "tools/lib", "go/pkg", ".cache"):
        (made / name).mkdir(parents=True)
    (made / "tools" / "lib" / "part").write_text("part\n")
    program = made / "tools" / "bin" / "mytool"
    program.write_text('#!/bin/sh\ncat "$(dirname "$0")/../lib/part"\n')
    program.chmod(0o755)
    monkeypatch.setenv("HOME", str(made))
    yield made.resolve()
    if made != tmp_path:
        shutil.rmtree(made, ignore_errors=True)


async def run(home: Path, script: str, sandbox: Sandbox, folder: str = "src/proj") -> tuple[int | None, str]:
    environment = {"HOME": str(home), "PATH": f"{home}/tools/bin:/usr/local/bin:/usr/bin:/bin"}
    processes = await start_processes(ProcessSettings(environment=environment))
    try:
        if not (await processes.probe()).guards_files:
            pytest.skip("no sandbox with a view of its own on this system")
        command = Command(("/bin/bash", "-c", script), home / folder, timeout=LIMIT, sandbox=sandbox)
        ended = await processes.runner.run(command)
        return ended.exit_code, (ended.captured.head + ended.captured.tail).decode()
    finally:
        await processes.close()


@pytest.mark.parametrize("mode", [SandboxMode.WORKSPACE, SandboxMode.READ_ONLY])
@pytest.mark.parametrize("network", [False, True])
async def test_documents_and_other_projects_are_out_of_sight(home: Path, mode: SandboxMode, network: bool) -> None:
    script = "cat ~/Documents/* ~/src/other/.env ~/diary.txt ../other/.env; ls ~/src; grep -rs 'may be read' ~/"
    _, output = await run(home, script, Sandbox(mode, network=network))
    assert OUTSIDE not in output
    assert "proj" in output
    assert "other\n" not in output


async def test_the_working_directory_tools_caches_and_settings_stay(home: Path) -> None:
    is_temporary = home.is_relative_to(tempfile.gettempdir())
    outer = "" if is_temporary else " && cat ~/.config/tool.ini && echo x > ~/go/pkg/x && cat ~/go/pkg/x"
    script = f"cat mine.txt && mytool && echo new > made{outer}"
    code, output = await run(home, script, Sandbox(SandboxMode.WORKSPACE, network=False))
    assert (code, output) == (0, "mine\npart\n" if is_temporary else "mine\npart\nmine\nx\n")
    assert (home / "src" / "proj" / "made").read_text() == "new\n"
    assert not (home / "go" / "pkg" / "x").exists()
    assert not (home / "Documents" / "made").exists()


async def test_a_home_folder_of_too_many_entries_is_covered_as_a_whole(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(private_home, "MOST_ENTRIES", 1)
    await test_documents_and_other_projects_are_out_of_sight(home, SandboxMode.WORKSPACE, network=False)
    await test_the_working_directory_tools_caches_and_settings_stay(home)


async def test_a_virtual_environment_of_the_working_directory_stays_writable(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    venv = home / "src" / "proj" / ".venv"
    (venv / "bin").mkdir(parents=True)
    assert tool_folders({"VIRTUAL_ENV": str(venv), "PATH": f"{venv}/bin:/bin"}, home) == (venv, venv / "bin")
    monkeypatch.setenv("VIRTUAL_ENV", str(venv))
    code, output = await run(home, "touch .venv/x && echo done", Sandbox(SandboxMode.WORKSPACE, network=False))
    assert (code, output) == (0, "done\n")


async def test_a_home_that_is_the_working_directory_stays_whole_but_for_keys(home: Path) -> None:
    code, output = await run(home, "cat diary.txt", Sandbox(SandboxMode.WORKSPACE, network=False), folder="")
    assert (code, output) == (0, OUTSIDE)


async def test_a_helper_of_phoenix_reads_what_a_call_was_allowed_to_read(home: Path) -> None:
    if home.is_relative_to(tempfile.gettempdir()):
        pytest.skip("temporary folders are covered for everybody")
    _, output = await run(home, "cat ~/src/other/.env", HELPER_SANDBOX)
    assert output == OUTSIDE


def test_only_plain_entries_without_anything_needed_are_private(tmp_path: Path) -> None:
    for name in ("Documents", "go/pkg", ".local", "src/proj"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "notes.txt").touch()
    (tmp_path / "link").symlink_to("/usr")
    found = private_entries(tmp_path, (tmp_path / "go" / "pkg",))
    assert found == (tmp_path / "Documents", tmp_path / "notes.txt", tmp_path / "src")
