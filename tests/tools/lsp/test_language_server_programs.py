"""Programs, roots and environments of language servers: nothing of a project before the yes, and its own after it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.git_repositories import empty_repository
from tests.support.language_servers import PYTHON, scripted
from tools.lsp.definitions import program_of, root_of, server_environment, with_packages


def executable(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    empty_repository(tmp_path / "project")
    monkeypatch.setenv("PATH", f"{tmp_path}/project/tools:/usr/bin:/bin")
    return tmp_path / "project"


def test_a_program_of_the_project_is_found_after_the_yes_alone(project: Path) -> None:
    server = scripted("pull", command=("checker", "--stdio"), project_command=(".venv/bin",))
    for place in (".venv/bin/checker", "tools/checker"):
        planted = executable(project / place)
        assert program_of(server, project, project, allowed=False) == ()
        assert program_of(server, project, project, allowed=True) == (str(planted), "--stdio")
        planted.unlink()
    assert program_of(server, project, project, allowed=True) == ()


def test_an_absolute_path_counts_where_it_leads_out_of_the_project(project: Path) -> None:
    planted = executable(project / "checker")
    link = project.parent / "link"
    link.symlink_to(planted)
    for path in (str(planted), str(link), "./checker", "tools/checker"):
        assert program_of(scripted("pull", command=(path,)), project, project, allowed=False) == ()
    executable(project / ".venv" / "bin" / Path(PYTHON).name)
    for allowed in (False, True):
        server = scripted("pull", command=(PYTHON,), project_command=(".venv/bin",))
        assert program_of(server, project, project, allowed=allowed) == (PYTHON,)
    assert program_of(scripted("pull", command=(str(planted),)), project, project, allowed=True) == (str(planted),)


def test_no_list_of_folders_leads_into_the_project_before_the_yes(project: Path) -> None:
    given = {"PATH": f"{project}/tools:/usr/bin", "NODE_PATH": f"{project}/node_modules:/usr/lib/node", "HOME": "/h"}
    confined = server_environment(given, project, allowed=False)
    assert confined["NODE_PATH"] == "/usr/lib/node"
    assert str(project) not in "".join(confined.values())
    assert server_environment(given, project, allowed=True) == {}


def test_packages_of_the_project_are_used_after_the_yes_and_not_missed_before(project: Path) -> None:
    server = scripted("pull", unresolved=("missing",), settings={"python": {"analysis": {"a": 1}}})
    assert with_packages(server, project, project, allowed=True) == server
    (project / ".venv").mkdir()
    (project / ".venv" / "pyvenv.cfg").touch()
    assert with_packages(server, project, project, allowed=False).passed_over == ("missing",)
    allowed = with_packages(server, project, project, allowed=True)
    assert allowed.settings["python"] == {"pythonPath": f"{project}/.venv/bin/python", "analysis": {"a": 1}}
    assert with_packages(scripted("pull"), project, project, allowed=False).passed_over == ()


def test_the_root_is_the_outermost_folder_with_a_mark(project: Path) -> None:
    server = scripted("pull", roots=("mark",))
    file = project / "a" / "b" / "c.py"
    assert root_of(server, file, project) == project
    (project / "a" / "b").mkdir(parents=True)
    (project / "a" / "b" / "mark").touch()
    assert root_of(server, file, project) == project / "a" / "b"
    (project / "a" / "mark").touch()
    assert root_of(server, file, project) == project / "a"
