"""SECURITY S4: servers and hooks of the user find nothing of a project that the user does not trust."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from engine.ports.mcp import ServerOrigin
from phoenix_tui.config.sources.project_sources import ProjectSources
from phoenix_tui.config.trust import TrustFile
from tests.support.hooked import PYTHON, bash, hooked_engine, says, script, write_hooks
from tests.support.mcp_hubs import hub_in, stdio
from tests.support.outside import folder_outside_temp
from tests.support.sandboxes import needs_full_enforcement
from tests.support.waiting import poll
from tools.contract import SandboxMode

TOKEN = "TOKEN-OF-THE-SERVER"
PY = "import os; open({mark!r}, 'w').write(os.environ.get('SERVER_TOKEN', 'no token'))\n"
JS = "require('fs').writeFileSync({mark!r}, process.env.SERVER_TOKEN || 'no token')\n"
SH = '#!/bin/sh\nprintf %s "$SERVER_TOKEN" > {mark!r}\n'


def python_module(project: Path, mark: Path) -> tuple[str, ...]:
    (project / "server.py").write_text(PY.format(mark=str(mark)))
    return ("python3", "-m", "server")


def python_package(project: Path, mark: Path) -> tuple[str, ...]:
    (project / "server").mkdir()
    (project / "server" / "__main__.py").write_text(PY.format(mark=str(mark)))
    return ("python3", "-m", "server")


def shadowed_library(project: Path, mark: Path) -> tuple[str, ...]:
    """A module that an installed one imports: `python -m` puts the folder before the library."""
    (project / "json").mkdir()
    (project / "json" / "__init__.py").write_text(PY.format(mark=str(mark)))
    return ("python3", "-m", "timeit", "import json")


def code_of_python(project: Path, mark: Path) -> tuple[str, ...]:
    (project / "helper.py").write_text(PY.format(mark=str(mark)))
    return ("python3", "-c", "import helper")


def python_path(project: Path, mark: Path) -> tuple[str, ...]:
    """`env` looks for the interpreter, and a variable of the definition names a folder relative to the start."""
    (project / "lib").mkdir()
    (project / "lib" / "sitecustomize.py").write_text(PY.format(mark=str(mark)))
    return ("env", "PYTHONPATH=lib", "python3", "-c", "pass")


def script_by_name(project: Path, mark: Path) -> tuple[str, ...]:
    (project / "server.sh").write_text(SH.format(mark=str(mark)))
    return ("/bin/sh", "server.sh")


def makefile(project: Path, mark: Path) -> tuple[str, ...]:
    (project / "Makefile").write_text(f"serve:\n\t@printf %s \"$$SERVER_TOKEN\" > '{mark}'\n")
    return ("make", "serve")


def node_script(project: Path, mark: Path) -> tuple[str, ...]:
    (project / "server.js").write_text(JS.format(mark=str(mark)))
    return ("node", "server.js")


def node_module(project: Path, mark: Path) -> tuple[str, ...]:
    (project / "node_modules" / "server").mkdir(parents=True)
    (project / "node_modules" / "server" / "index.js").write_text(JS.format(mark=str(mark)))
    return ("node", "-e", "require('server')")


def npx_package(project: Path, mark: Path) -> tuple[str, ...]:
    script(project / "node_modules" / ".bin" / "mcp-server", SH.format(mark=str(mark)))
    return ("npx", "--offline", "-y", "mcp-server")


def npx_settings(project: Path, mark: Path) -> tuple[str, ...]:
    """`.npmrc` can name the shell that runs a package, and so any program."""
    (project / ".npmrc").write_text(f"script-shell={script(project / 'shell', SH.format(mark=str(mark)))}\n")
    (project / "package.json").write_text('{"name": "x", "scripts": {"serve": "true"}}')
    return ("npm", "run", "serve")


ATTACKS = [
    python_module,
    python_package,
    shadowed_library,
    code_of_python,
    python_path,
    script_by_name,
    makefile,
    node_script,
    node_module,
    npx_package,
    npx_settings,
]


@pytest.mark.parametrize("confined", [False, True], ids=["off", "workspace"])
@pytest.mark.parametrize("attack", ATTACKS, ids=lambda one: one.__name__)
async def test_a_users_server_runs_nothing_of_a_project_before_it_is_trusted(
    attack: object, confined: bool, tmp_path: Path
) -> None:
    assert callable(attack)
    if confined:
        await needs_full_enforcement()
    with folder_outside_temp() as folder:
        (project := folder / "work").mkdir()
        mark = project / "mark"
        command = attack(project, mark)
        if shutil.which(command[0]) is None:
            pytest.skip(f"there is no {command[0]} here")
        server = stdio("own", command, environment={"SERVER_TOKEN": TOKEN})
        async with hub_in(folder, replace(server, environment={"SERVER_TOKEN": TOKEN}), wait=60.0) as one:
            one.record = replace(one.record, sandbox=SandboxMode.WORKSPACE if confined else SandboxMode.OFF)
            await one.hub.prepare(one.record)
            assert not mark.exists()
            view = await one.view("own")
            assert Path(view.folder).is_relative_to(folder / "neutral")
            assert "/trust" in view.text
            one.definitions.trusted = True  # the premise: there it does run
            await one.hub.prepare(one.record)
            assert await poll(lambda: mark.exists() and mark.read_text() == TOKEN, 60.0)


async def test_a_server_starts_again_in_the_project_once_it_is_trusted(tmp_path: Path) -> None:
    async with hub_in(tmp_path, stdio()) as one:
        await one.hub.prepare(one.record)
        before = await one.view()
        one.definitions.trusted = True
        await one.hub.settle(one.record, 30.0)
        after = await one.view()
        assert (Path(before.folder).parent, after.folder) == (tmp_path / "neutral", str(tmp_path / "work"))
        assert await poll(lambda: not Path(f"/proc/{before.pid}").exists())
        assert after.pid not in {0, before.pid}


@pytest.mark.parametrize(
    ("more", "in_project"),
    [
        ({"cwd": "{work}"}, True),
        ({"origin": ServerOrigin.PROJECT}, True),
        ({"origin": ServerOrigin.USER}, False),
        ({"origin": ServerOrigin.FLAG}, False),
    ],
    ids=["cwd", "project", "user", "flag"],
)
async def test_the_users_cwd_and_a_trusted_file_of_the_project_name_the_folder(
    more: dict[str, object], in_project: bool, tmp_path: Path
) -> None:
    work = tmp_path / "work"
    told = "import json, os; json.dump([os.getcwd(), os.environ['CLAUDE_PROJECT_DIR'], os.listdir()], open({!r}, 'w'))"
    given = {name: value.format(work=work) if isinstance(value, str) else value for name, value in more.items()}
    command = (sys.executable, "-c", told.format(str(tmp_path / "told")))
    async with hub_in(tmp_path, stdio("own", command, **given), wait=30.0) as one:
        (work / "a").write_text("")
        await one.hub.prepare(one.record)
        folder, project, names = json.loads((tmp_path / "told").read_text())
        assert (folder == str(work), project) == (in_project, str(work))
        assert names == (["a"] if in_project else [])


@pytest.mark.parametrize("name", ["./server.py", "server.py"])
async def test_a_script_that_the_command_line_names_means_the_project(tmp_path: Path, name: str) -> None:
    command = (sys.executable, name)
    async with hub_in(tmp_path, stdio("own", command, origin=ServerOrigin.FLAG), wait=30.0) as one:
        (tmp_path / "work" / "server.py").write_text(PY.format(mark=str(tmp_path / "mark")))
        await one.hub.prepare(one.record)
        assert (tmp_path / "mark").exists()


async def test_only_a_yes_for_this_very_folder_counts(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    sources = ProjectSources(tmp_path / "config", tmp_path / "home", TrustFile(tmp_path / "trust.json"))
    found = [sources.is_trusted(project)]
    for trusted in (True, False, True):
        sources.answer(project, trusted=trusted)
        found.append(sources.is_trusted(project))
    assert found == [False, True, False, True]
    again = ProjectSources(tmp_path / "config", tmp_path / "home", TrustFile(tmp_path / "trust.json"))
    assert again.is_trusted(project)
    (tmp_path / "other").mkdir()
    assert not again.is_trusted(tmp_path / "other")
    project.rename(tmp_path / "moved")
    project.mkdir()
    assert not again.is_trusted(project)


TELLS = PYTHON + "json.dump([os.getcwd(), os.environ['CLAUDE_PROJECT_DIR'], given['cwd']], open({told!r}, 'w'))\n"


async def test_a_users_hook_starts_in_the_project_only_where_it_is_trusted(tmp_path: Path) -> None:
    told, mark = tmp_path / "told", tmp_path / "mark"
    script(tmp_path / "own" / "tells.py", TELLS.format(told=str(told)))
    line = f"python3 -m planted 2>/dev/null; make 2>/dev/null; python3 {tmp_path}/own/tells.py"
    write_hooks(tmp_path / "config" / "hooks.json", PreToolUse=line)
    async with hooked_engine(tmp_path, bash("ls"), says("done"), bash("ls"), says("done")) as hooked:
        project = str(hooked.project)
        (hooked.project / "planted.py").write_text(PY.format(mark=str(mark)))
        (hooked.project / "Makefile").write_text(f"all:\n\ttouch {mark}\n")
        conversation = await hooked.harness.run("go")
        assert json.loads(told.read_text()) == [str(tmp_path / "neutral"), project, project]
        assert not mark.exists()
        hooked.sources.answer(hooked.project, trusted=True)
        await conversation.say("again")
        await conversation.wait_idle()
        assert json.loads(told.read_text()) == [project, project, project]
        assert mark.exists()
