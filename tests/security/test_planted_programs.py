"""SECURITY V5, S3: a program that an agent, a repository or another user can write is none that Phoenix starts."""

from __future__ import annotations

import ast
import json
import os
import stat
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.conversation import Conversation
from engine.engine import ConversationOptions
from engine.executor.requests import ApprovalAnswer, ApprovalChoice
from engine.machine.states import AwaitingApproval, Idle
from engine.permissions.rules import KeptRule
from engine.records import PermissionMode
from engine.updates import Question, ToolEnded
from tests.support.engine import EngineHarness, engine_harness, until
from tests.support.git_repositories import empty_repository
from tests.support.outside import ROOT, folder_outside_temp
from tests.support.sandboxes import needs_full_enforcement
from tests.support.scripted_provider import Reply, ScriptedCall, Text
from tests.support.tools import use
from tools.bash import Bash
from tools.contract import AS_IN_A_SHELL, HELPER_SANDBOX, LEAVING, UNCONFINED, Command, PathOrder, SandboxMode
from tools.process import programs
from tools.process.desktop import for_desktop
from tools.process.environment import SEARCH_PATHS, absolute_entries
from tools.process.programs import without_keys
from tools.process.start import Processes, ProcessSettings, start_processes
from tools.search import Search
from tools.services import ServiceCommand

SYSTEM = "/usr/bin:/bin"
DOCKER = "bash(docker ps)"


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that is not temporary: `project` is the working directory, `system` has the real programs; `repository`,
    beside them, is one of git.
    """
    with folder_outside_temp() as folder:
        for name in ("project/.venv/bin", "system", "repository/sub"):
            (folder / name).mkdir(parents=True)
        empty_repository(folder / "repository")
        yield folder


@pytest.fixture
def use_path(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    programs.list_trusted_entries.cache_clear()
    yield monkeypatch
    programs.list_trusted_entries.cache_clear()


@pytest.fixture
async def processes(place: Path, use_path: pytest.MonkeyPatch) -> AsyncIterator[Processes]:
    """Process control of a Phoenix whose PATH begins in the project."""
    use_path.setenv("PATH", f"{place}/project/.venv/bin:{place}/system:{SYSTEM}")
    started = await start_processes(ProcessSettings())
    yield started
    await started.close()


def plant(program: Path, says: str, interpreter: str = "/bin/sh") -> Path:
    program.parent.mkdir(parents=True, exist_ok=True)
    program.write_text(f"#!{interpreter}\necho {says}\n")
    program.chmod(0o755)
    return program


def plant_marking(folder: Path, mark: Path, *names: str) -> None:
    """Plant programs that leave a mark where one of them ran."""
    for name in names:
        plant(folder / name, f"ran > {mark}")


async def said(processes: Processes, folder: Path, *argv: str, **variables: str) -> str:
    """Output of a program of Phoenix itself, started as a hook or a server is."""
    try:
        ended = await processes.services.run_program(ServiceCommand(argv, folder, variables))
    except OSError as error:
        return str(error.strerror)
    return (ended.stdout.head + ended.stderr.head).decode().strip()


def in_venv(project: Path) -> str:
    plant(project / ".venv" / "bin" / "jqx", "planted")
    return str(project / ".venv" / "bin")


def in_node_modules(project: Path) -> str:
    plant(project / "node_modules" / ".bin" / "jqx", "planted")
    return str(project / "node_modules" / ".bin")


def at_the_top(project: Path) -> str:
    plant(project / "jqx", "planted")
    return str(project)


def by_a_link_outside(project: Path) -> str:
    plant(project / "bin" / "jqx", "planted")
    (project.parent / "tools").symlink_to(project / "bin")
    return str(project.parent / "tools")


def by_a_link_of_links(project: Path) -> str:
    plant(project / "bin" / "jqx", "planted")
    (project.parent / "b").symlink_to(project.parent / "a")
    (project.parent / "a").symlink_to(project)
    return str(project.parent / "b" / "bin")


def by_a_link_inside_that_leads_out(project: Path) -> str:
    """An agent can turn the link elsewhere, so the folder behind it does not count either."""
    plant(project.parent / "elsewhere" / "jqx", "planted")
    (project / "bin").symlink_to(project.parent / "elsewhere")
    return str(project / "bin")


def by_a_linked_program(project: Path) -> str:
    (project.parent / "own").mkdir()
    (project.parent / "own" / "jqx").symlink_to(plant(project / "jqx", "planted"))
    return str(project.parent / "own")


def by_the_interpreter(project: Path) -> str:
    interpreter = plant(project / ".venv" / "bin" / "python", "planted")
    plant(project.parent / "own" / "jqx", "real", str(interpreter))
    return str(project.parent / "own")


def in_a_folder_of_everybody(project: Path) -> str:
    plant(project.parent / "open" / "jqx", "planted")
    (project.parent / "open").chmod(0o777)
    return str(project.parent / "open")


def with_dots(project: Path) -> str:
    plant(project / "jqx", "planted")
    return f"{project}/.venv/../../{project.name}"


PLANTS: list[Callable[[Path], str]] = [
    in_venv,
    in_node_modules,
    at_the_top,
    by_a_link_outside,
    by_a_link_of_links,
    by_a_link_inside_that_leads_out,
    by_a_linked_program,
    by_the_interpreter,
    in_a_folder_of_everybody,
    with_dots,
]


@pytest.mark.parametrize("planting", PLANTS, ids=lambda one: one.__name__)
async def test_a_program_of_phoenix_is_not_the_planted_one(
    planting: Callable[[Path], str], place: Path, processes: Processes
) -> None:
    project = place / "project"
    entry = planting(project)
    plant(place / "system" / "jqx", "system")
    path = f"{entry}:{place}/system:{SYSTEM}"
    assert await said(processes, project, "jqx", PATH=path) == "system"
    (place / "system" / "jqx").unlink()
    refused = await said(processes, project, "jqx", PATH=path)
    assert "planted" not in refused.splitlines()
    assert "can be changed by an agent" in refused


@pytest.mark.parametrize("planting", [one for one in PLANTS if one not in {by_a_linked_program, by_the_interpreter}])
async def test_nothing_that_such_a_program_starts_is_the_planted_one(
    planting: Callable[[Path], str], place: Path, processes: Processes
) -> None:
    """A hook that calls jqx, a script whose first line asks `env` for it, a shell below a shell."""
    project = place / "project"
    entry = planting(project)
    path = f"{entry}:{place}/system:{SYSTEM}"
    script = place / "system" / "hook"
    script.write_text("#!/usr/bin/env jqx\n")
    script.chmod(0o755)
    for line in ("jqx", "sh -c jqx", "env jqx", "command jqx", "hook"):
        assert "planted" not in await said(processes, project, "/bin/bash", "-c", line, PATH=path)
        (place / "system" / "jqx").unlink(missing_ok=True)
        plant(place / "system" / "jqx", "system")
        assert await said(processes, project, "/bin/bash", "-c", line, PATH=path) == "system"


async def test_an_entry_that_appears_after_the_start_gives_no_program(place: Path, processes: Processes) -> None:
    project = place / "project"
    path = f"{project}/later:{place}/system:{SYSTEM}"
    assert "No such file" in await said(processes, project, "jqx", PATH=path)
    plant(project / "later" / "jqx", "planted")
    assert "planted" not in (await said(processes, project, "jqx", PATH=path)).splitlines()


async def test_a_folder_in_which_a_command_wrote_gives_no_program_elsewhere(place: Path, processes: Processes) -> None:
    other = place / "other"
    plant(other / "bin" / "jqx", "planted")
    path = f"{other}/bin:{SYSTEM}"
    before = await said(processes, place / "project", "jqx", PATH=path)
    await processes.runner.run(Command(("/bin/true",), other, sandbox=AS_IN_A_SHELL))
    after = await said(processes, place / "project", "jqx", PATH=path)
    assert (before, "can be changed by an agent" in after) == ("planted", True)


async def test_a_folder_under_another_name_is_the_same_folder(place: Path) -> None:
    """A bind mount, or a file system that ignores case, gives a folder names that no text comparison knows."""
    project = place / "project"
    folders = programs.agent_folders(project)
    renamed = programs.AgentFolders(frozenset({"/another/name"}), folders.identities)
    assert renamed.has(str(project / ".venv" / "bin"))
    assert not renamed.has(str(place / "system"))


async def test_a_command_without_a_sandbox_finds_programs_as_the_users_shell_does(
    place: Path, processes: Processes
) -> None:
    plant(place / "project" / ".venv" / "bin" / "jqx", "venv")
    plant(place / "system" / "jqx", "system")
    found = {}
    for limits in (UNCONFINED, LEAVING, AS_IN_A_SHELL):
        command = Command(("/bin/bash", "-c", "jqx; echo $PATH"), place / "project", sandbox=limits)
        ended = await processes.runner.run(command)
        found[limits] = ended.captured.head.decode().split()
    venv, system = f"{place}/project/.venv/bin", f"{place}/system"
    assert found == {
        UNCONFINED: ["system", f"{system}:{SYSTEM}"],
        LEAVING: ["system", f"{system}:{SYSTEM}:{venv}"],
        AS_IN_A_SHELL: ["venv", f"{venv}:{system}:{SYSTEM}"],
    }


VARIABLES = {
    "PYTHONPATH": "{ws}/lib",
    "PERL5LIB": "{out}:{ws}/lib",
    "NODE_PATH": "{ws}/node_modules",
    "LD_LIBRARY_PATH": "{ws}",
    "GOFLAGS": "-toolexec={ws}/tool",
    "MAKEFLAGS": "-f ./evil.mk",
    "CC": "./cc",
    "RUSTFLAGS": "-Clinker={ws}/ld",
    "CXX": "tools/cc",
    "XDG_CONFIG_HOME": "{ws}/config",
    "JAVA_HOME": "{link}/java",
    "CARGO_HOME": "{ws}/../project/cargo",
}
BEYOND = {
    "BASH_ENV": "{ws}/env",
    "ENV": "./env",
    "GIT_SSH_COMMAND": "ssh -F {ws}/ssh",
    "GIT_CONFIG_GLOBAL": "{ws}/gitconfig",
    "GIT_EXTERNAL_DIFF": "../x",
    "LD_PRELOAD": "{ws}/a.so",
    "NODE_OPTIONS": "--require {ws}/x.js",
    "PAGER": "{ws}/pager",
    "PYTHONSTARTUP": ".pythonrc",
    "PERL5OPT": "-I{ws} -Mx",
    "BROWSER": "{ws}/open",
    "LESSOPEN": "|{ws}/less %s",
}


@pytest.mark.parametrize("name", [*VARIABLES, *BEYOND])
def test_no_inherited_variable_leads_to_a_file_of_the_folder(
    name: str, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = place / "project"
    for made in ("tools/cc", ".pythonrc"):
        (project / made).parent.mkdir(exist_ok=True)
        (project / made).write_text("")
    (place / "link").symlink_to(project)
    monkeypatch.chdir(project)
    value = (VARIABLES | BEYOND)[name].format(ws=project, out=place / "system", link=place / "link")
    kept = programs.outside_variables(
        {name: value, "LANG": "C", "TZ": "Europe/Berlin"}, programs.agent_folders(project)
    )
    expected = {"PERL5LIB": str(place / "system")} if name == "PERL5LIB" else {}
    assert kept == {"LANG": "C", "TZ": "Europe/Berlin"} | expected
    around = {name: value, "PATH": f"{project}/.venv/bin:{SYSTEM}", "HOME": str(project)}
    for environment in (for_desktop(around), without_keys(around)):
        assert environment == {"PATH": SYSTEM, "HOME": str(project)} | expected


@pytest.mark.parametrize("editor", ["./ed", "tools/ed", "{ws}/tools/ed", "{link}/tools/ed"])
def test_an_editor_in_the_folder_is_not_started(editor: str, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = place / "project"
    plant(project / "tools" / "ed", "planted")
    (place / "link").symlink_to(project)
    monkeypatch.chdir(project)
    with pytest.raises(FileNotFoundError):
        programs.foreground_start((editor.format(ws=project, link=place / "link"), "x"), {"PATH": SYSTEM})
    plant(project / "vi", "planted")
    plant(place / "system" / "vi", "system")
    around = {"PATH": f"{project}:{place}/system"}
    assert programs.foreground_start(("vi", "x"), around) == (f"{place}/system/vi", "x")


@pytest.mark.parametrize("home", [True, False])
def test_programs_of_the_home_folder_come_behind_the_systems_where_it_is_the_working_directory(
    home: bool, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(place if home else "/nonexistent"))
    path = programs.order_path(f"{place}/bin:{SYSTEM}", programs.agent_folders(place), PathOrder.LEFT_OUT)
    assert path == (f"{SYSTEM}:{place}/bin" if home else SYSTEM)


# Helpers, and what everybody can write.


@pytest.mark.parametrize("entry", [".", "", "{repo}", "{repo}/sub", "sub", "{repo}/../repository", "{link}", "{gone}"])
async def test_ripgrep_and_git_of_the_repository_are_not_run(
    entry: str, place: Path, use_path: pytest.MonkeyPatch
) -> None:
    repository, mark = place / "repository", place / "ran"
    for folder in (repository, repository / "sub"):
        plant_marking(folder, mark, "rg", "git", "bash")
    (place / "link").symlink_to(repository)
    (repository / "text").write_text("needle\n", "ascii")
    named = entry.format(repo=repository, link=place / "link", gone=place / "gone")
    use_path.setenv("PATH", f"{named}:/usr/bin:/bin")
    use_path.chdir(repository)
    processes = await start_processes(ProcessSettings(environment={"PATH": ".:/usr/bin:/bin"}))
    try:
        found = await use(Search(processes.runner), repository, pattern="needle")
        await processes.runner.run(Command(("git", "--version"), repository, sandbox=HELPER_SANDBOX))
    finally:
        await processes.close()
    assert found.text == "text:1: needle"
    assert programs.find_program("bash", repository / "sub") in {"/usr/bin/bash", "/bin/bash"}
    assert not mark.exists()


@pytest.mark.parametrize("working_dir", ["repository", "repository/sub"])
def test_a_link_from_a_trusted_folder_into_the_repository_is_not_followed(
    working_dir: str, place: Path, use_path: pytest.MonkeyPatch
) -> None:
    plant_marking(place / "repository", place / "ran", "rg")
    (place / "system" / "rg").symlink_to(place / "repository" / "rg")
    use_path.setenv("PATH", str(place / "system"))
    assert programs.find_program("rg", place / working_dir) == ""


@pytest.mark.parametrize("what", ["folder", "above", "file", "temporary"])
def test_what_everybody_may_write_is_not_used(
    what: str, place: Path, tmp_path: Path, use_path: pytest.MonkeyPatch
) -> None:
    folder = tmp_path if what == "temporary" else place / "system" / "bin"
    folder.mkdir(exist_ok=True)
    plant_marking(folder, place / "ran", "rg")
    use_path.setenv("PATH", str(folder))
    assert (programs.find_program("rg", place / "repository") != "") is (what != "temporary")
    programs.list_trusted_entries.cache_clear()
    opened = {"folder": folder, "above": folder.parent, "file": folder / "rg", "temporary": folder}[what]
    opened.chmod(stat.S_IMODE(opened.stat().st_mode) | stat.S_IWOTH)
    assert programs.find_program("rg", place / "repository") == ""


async def test_commands_see_no_relative_entry_in_any_search_path(place: Path) -> None:
    paths = {name: f":.:lib:{place}::" for name in SEARCH_PATHS} | {"CPATH": "."}
    processes = await start_processes(ProcessSettings(environment=paths))
    plant_marking(place, place / "ran", "planted")
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
    plant_marking(place / "repository" / "sub", place / "ran", "xclip", "xdg-open")
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


# Questions.


def call(command: str, **more: str) -> Reply:
    return Reply((ScriptedCall("bash", json.dumps({"command": command, **more}), "t1"),))


@asynccontextmanager
async def asked(
    place: Path, processes: Processes, command: str, sandbox: SandboxMode, *, rule: str = "", **more: str
) -> AsyncIterator[tuple[EngineHarness, Conversation]]:
    bash = Bash(processes.jobs, place / "spill")
    replies = (call(command, **more), Reply((Text("done"),)))
    probe = processes if sandbox is not SandboxMode.OFF else None
    async with engine_harness(place, *replies, tools=(bash,), probe=probe) as harness:
        if rule:
            harness.rules.add(KeptRule(rule, 0.0, ""))
        options = ConversationOptions(
            place / "project", "scripted/main", permission_mode=PermissionMode.ASK, sandbox=sandbox
        )
        conversation = await harness.engine.create(options)
        await conversation.subscribe(harness.updates.append)
        await conversation.say("go")
        await until(lambda: isinstance(conversation.state, AwaitingApproval | Idle))
        yield harness, conversation


async def yes(conversation: Conversation) -> Question | None:
    """Say yes and give the next question, None where the run went on to its end."""
    before = conversation.question
    await conversation.answer("t1", ApprovalAnswer(ApprovalChoice.ONCE))
    await until(
        lambda: (
            isinstance(conversation.state, Idle)
            or (isinstance(conversation.state, AwaitingApproval) and conversation.question not in {None, before})
        )
    )
    return conversation.question


def results(harness: EngineHarness) -> str:
    return "\n".join(ended.result.text for ended in harness.seen(ToolEnded))


async def test_an_approved_command_runs_the_systems_program_and_the_question_names_it(
    place: Path, processes: Processes
) -> None:
    await needs_full_enforcement()
    planted = plant(place / "project" / ".venv" / "bin" / "docker", "planted")
    real = plant(place / "system" / "docker", "real")
    async with asked(place, processes, "docker ps", SandboxMode.WORKSPACE) as (harness, conversation):
        assert conversation.question is not None
        assert f"it runs {real}, not {planted}" in conversation.question.reason
        assert await yes(conversation) is None
        assert "real" in results(harness) and "planted" not in results(harness)


async def test_a_program_of_the_folder_is_named_and_no_rule_covers_it(place: Path, processes: Processes) -> None:
    await needs_full_enforcement()
    planted = plant(place / "project" / ".venv" / "bin" / "docker", "planted")
    async with asked(place, processes, "docker ps", SandboxMode.WORKSPACE, rule=DOCKER) as (_, conversation):
        assert conversation.question is not None
        assert f"docker is {planted}, which an agent can change" in conversation.question.reason


@pytest.mark.parametrize("swap", ["another program", "a program before it", "its content"])
async def test_a_program_that_changes_between_question_and_yes_is_asked_about_again(
    swap: str, place: Path, processes: Processes
) -> None:
    await needs_full_enforcement()
    real = plant(place / "system" / "docker", "real")
    first = place / "first"
    first.mkdir()
    os.environ["PATH"] = f"{first}:{os.environ['PATH']}"
    async with asked(place, processes, "docker ps", SandboxMode.WORKSPACE) as (harness, conversation):
        match swap:
            case "another program":
                real.unlink()
                plant(place / "project" / ".venv" / "bin" / "docker", "planted")
            case "a program before it":
                plant(first / "docker", "other")
            case _:
                plant(place / "new", "other").rename(real)
        again = await yes(conversation)
        assert again is not None and "changed after your approval" in again.reason
        assert not results(harness)


async def test_without_a_sandbox_a_program_that_shadows_another_one_asks_in_spite_of_a_rule(
    place: Path, processes: Processes
) -> None:
    planted = plant(place / "project" / ".venv" / "bin" / "jqx", "planted")
    rule = "bash(jqx .)"
    async with asked(place, processes, "jqx .", SandboxMode.OFF, rule=rule) as (harness, conversation):
        assert "planted" in results(harness)  # nothing else has this name: it is what the rule was given for
    plant(place / "system" / "jqx", "real")
    (place / "phoenix.db").unlink()
    async with asked(place, processes, "jqx .", SandboxMode.OFF, rule=rule) as (harness, conversation):
        assert conversation.question is not None
        assert f"jqx is {planted}" in conversation.question.reason
        assert not results(harness)


async def test_a_typed_line_leaves_the_sandbox_for_a_program_of_the_system_alone(
    place: Path, processes: Processes
) -> None:
    await needs_full_enforcement()
    mark = place / "outside"
    docker = plant(place / "project" / ".venv" / "bin" / "docker", "planted")
    docker.write_text(f"#!/bin/sh\necho ran > {mark}\n")
    async with asked(place, processes, "true", SandboxMode.WORKSPACE) as (_, conversation):
        await conversation.wait_idle()
        await conversation.shell("docker ps", send_to_model=False)
        await conversation.wait_idle()
        assert not mark.exists()
        plant(place / "system" / "docker", "real").write_text(f"#!/bin/sh\necho ran > {mark}\n")
        await conversation.wait_idle()
        await conversation.shell("docker ps", send_to_model=False)
        await conversation.wait_idle()
        assert mark.exists()


# A new place that starts programs has to pass the same door.

OWNERS = {"os", "subprocess", "asyncio", "pty", "webbrowser"}
STARTS = {"Popen", "run", "call", "check_call", "check_output", "create_subprocess_exec", "create_subprocess_shell"}
STARTS |= {"system", "popen", "posix_spawn", "posix_spawnp", "fork", "forkpty", "startfile"}
DOORS = {
    "tools/process/link.py": "the zygote: Python by its path, an environment of its own",
    "tools/process/helper.py": "helpers of Python by its path, an environment of their own, in /",
    "tools/process/zygote/main.py": "forks supervisors",
    "tools/process/zygote/supervisor.py": "starts what the plan decided",
    "tools/process/zygote/namespace.py": "forks the first process of a namespace",
    "tools/process/zygote/scan.py": "ps of the system's own PATH",
    "tools/process/desktop.py": "foreground_environment, in /",
    "phoenix_tui/terminal/lending.py": "foreground_start, behind a look",
    "phoenix_tui/cli/files_commands.py": "foreground_start, in a Phoenix that runs no command",
    "phoenix_tui/terminal/serving/server.py": "Python by its path; the tab leaves out the folder itself",
}
DECIDING = {"desktop.py": "foreground_environment", "lending.py": "foreground_start"}
DECIDING |= {"files_commands.py": "foreground_start"}
LOOKING = {"lending.py": "trouble_at(", "desktop.py": 'cwd="/"', "helper.py": 'cwd="/"'}
"""Words of a place that keep its programs from git's settings in a folder in which commands ran."""


def starts_programs(source: str) -> bool:
    """True for a module that calls a function which starts a program, of `os`, `subprocess`, `asyncio` or `pty`."""
    calls = [node.func for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    named = [(ast.unparse(one.value), one.attr) for one in calls if isinstance(one, ast.Attribute)]
    owned = [one for one in named if one[0] in OWNERS and one != ("asyncio", "run")]
    return any(name in STARTS or name.startswith(("exec", "spawn")) for _, name in owned)


def test_every_place_that_starts_a_program_is_one_that_decides_which() -> None:
    found = {
        str(path.relative_to(ROOT)): path.read_text("utf-8")
        for folder in ("tools", "engine", "phoenix_tui")
        for path in sorted((ROOT / folder).rglob("*.py"))
        if starts_programs(path.read_text("utf-8"))
    }
    assert set(found) == set(DOORS)
    for name, function in DECIDING.items():
        assert any(path.endswith(name) and f"{function}(" in text for path, text in found.items())
    for name, words in LOOKING.items():
        assert any(path.endswith(name) and words in text for path, text in found.items())


def test_only_commands_and_what_a_trusted_project_starts_see_programs_of_the_folder() -> None:
    """Others get a PATH without it: that is the default of `Sandbox.path`."""
    named = {
        str(path.relative_to(ROOT))
        for folder in ("tools", "engine", "phoenix_tui")
        for path in (ROOT / folder).rglob("*.py")
        if any(word in path.read_text("utf-8") for word in ("PathOrder.", "AS_IN_A_SHELL"))
    }
    assert named == {
        "tools/contract.py",
        "tools/process/plan.py",
        "tools/process/programs.py",
        "engine/permissions/made_programs.py",
        "engine/permissions/policy.py",
        "engine/executor/ready_calls.py",
        "engine/executor/event_hooks.py",
        "phoenix_tui/features/hook_board.py",
        "engine/extensions/mcp/hub.py",
        "tools/lsp/checker.py",
        "phoenix_tui/wiring/edit_services.py",
    }


def test_phoenix_itself_looks_for_programs_outside_of_the_folder(place: Path) -> None:
    """Libraries start programs too, such as the `credential_process` of AWS."""
    project = place / "project"
    code = (
        f"import sys; sys.path.insert(0, {str(ROOT)!r});"
        "from phoenix_tui.lifecycle.process_start import leave_out_working_directory as leave; leave(); leave();"
        "import os; from tools.process.environment import scrub_environment;"
        "print(os.environ['PATH'], scrub_environment(os.environ)['PATH'])"
    )
    given = f"{project}/.venv/bin:{SYSTEM}"
    ended = subprocess.run(
        [sys.executable, "-I", "-c", code], cwd=project, env={"PATH": given}, capture_output=True, text=True, check=True
    )
    assert ended.stdout.split() == [SYSTEM, given]
