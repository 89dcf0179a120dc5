"""Refusals of the sandbox, by the operating system and not by agreement (CONTRACT 6), and folders that it opens."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.support.outside import folder_outside_temp
from tests.support.processes import ROOT, SHAPES, Shape, Watch
from tests.support.sandboxes import CONFINED, home, limited, sandbox
from tests.support.waiting import poll
from tools.contract import UNCONFINED, Command, Enforcement, Finished, Sandbox, SandboxMode
from tools.process.plan import BUBBLEWRAP, Planner, SandboxUnavailableError
from tools.process.sandbox import SandboxPlaces, SandboxRequest, bubblewrap, bubblewrap_arguments, confine
from tools.process.scratch import make_caches
from tools.process.start import Processes, ProcessSettings, start_processes
from tools.process.zygote import landlock, wire
from tools.process.zygote.mount_places import READ_ONLY, MountPlace


@pytest.fixture
def outside() -> Iterator[Path]:
    """A folder that is neither the workspace nor temp."""
    with folder_outside_temp() as folder:
        yield folder


@pytest.fixture
def workspace(outside: Path) -> Path:
    folder = outside / "workspace"
    folder.mkdir()
    return folder


@pytest.fixture
def repository(workspace: Path) -> Path:
    subprocess.run(["git", "init", "-q", str(workspace)], check=True)
    return workspace


@contextlib.asynccontextmanager
async def sandboxed(
    mode: SandboxMode, *, network: bool = True, hidden: tuple[Path, ...] = (), protected: tuple[Path, ...] = ()
) -> AsyncIterator[Processes]:
    settings = ProcessSettings(protected, hidden)
    processes = limited(await start_processes(settings), Sandbox(mode, network))
    try:
        if not (await processes.probe()).guards_files:
            pytest.skip("no namespaces on this machine")
        yield processes
    finally:
        await processes.close()


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


async def sh(processes: Processes, script: str, folder: Path, limits: Sandbox = UNCONFINED) -> Finished:
    return await processes.runner.run(Command(("/bin/bash", "-c", script), folder, timeout=20, sandbox=limits))


async def test_a_workspace_command_writes_in_its_folder_and_temp_only(workspace: Path, outside: Path) -> None:
    async with sandboxed(SandboxMode.WORKSPACE) as processes:
        script = (
            f"echo a > inside; t=$(mktemp) && echo temp; rm $t; echo b > {outside}/no; echo c > {outside.parent}/phx-no"
        )
        finished = await sh(processes, script, workspace)
    assert (workspace / "inside").read_text("ascii") == "a\n"
    assert b"temp" in finished.captured.head
    assert finished.captured.head.count(b"Read-only file system") == 2
    assert not (outside / "no").exists()


async def test_a_read_only_command_writes_nowhere(workspace: Path) -> None:
    async with sandboxed(SandboxMode.READ_ONLY) as processes:
        script = "echo a > inside; echo b > /tmp/phx-no; echo c > /dev/shm/phx-no; echo d > /dev/null && echo read"
        finished = await sh(processes, script, workspace)
    assert finished.captured.head.count(b"Read-only file system") == 3
    assert finished.captured.head.endswith(b"read\n")
    assert names(workspace) == []


async def test_git_hooks_and_settings_stay_while_commits_work(repository: Path) -> None:
    before = (repository / ".git" / "config").read_text("utf-8")
    async with sandboxed(SandboxMode.WORKSPACE) as processes:
        script = (
            "echo evil > .git/hooks/pre-commit; git config alias.x '!evil'; mv .git .other; mv .git/hooks .git/h;"
            "rm -rf .git/hooks; echo x > x; git add x; git -c user.name=a -c user.email=b commit -q -m one && echo fine"
        )
        finished = await sh(processes, script, repository)
    assert finished.captured.head.endswith(b"fine\n")
    assert not (repository / ".git" / "hooks" / "pre-commit").exists()
    assert (repository / ".git" / "config").read_text("utf-8") == before
    assert (repository / ".git" / "hooks").is_dir()


async def test_a_hook_in_a_new_repository_is_set_aside(workspace: Path) -> None:
    async with sandboxed(SandboxMode.WORKSPACE) as processes:
        finished = await sh(processes, "git init -q . && echo evil > .git/hooks/post-checkout", workspace)
    assert finished.exit_code == 0
    assert not (workspace / ".git/hooks").exists()
    assert ".git/hooks was renamed" in finished.captured.notes[0]


async def test_phoenix_own_folder_is_protected_also_inside_the_workspace(workspace: Path) -> None:
    own = workspace / "phoenix-home"
    own.mkdir()
    (own / "rules.toml").write_text("before", "utf-8")
    missing = workspace / ".phoenix"
    async with sandboxed(SandboxMode.WORKSPACE, hidden=(own,), protected=(missing,)) as processes:
        await sh(processes, "echo x > phoenix-home/rules.toml; echo y > phoenix-home/new; mkdir .phoenix/a", workspace)
    assert (own / "rules.toml").read_text("utf-8") == "before"
    assert (names(workspace), names(own)) == (["phoenix-home"], ["rules.toml"])


async def test_a_sandboxed_command_cannot_undo_its_mounts(workspace: Path, outside: Path) -> None:
    async with sandboxed(SandboxMode.WORKSPACE) as processes:
        script = (
            f"mount -o remount,rw / ; umount {workspace}; unshare -Urm sh -c 'mount -o remount,bind,rw /';"
            f"echo x > {outside}/no"
        )
        await sh(processes, script, workspace)
    assert not (outside / "no").exists()


async def test_a_sandboxed_command_sees_and_signals_only_its_own(workspace: Path) -> None:
    async with sandboxed(SandboxMode.WORKSPACE) as processes:
        script = f"ls -d /proc/[0-9]* | wc -l; kill -0 {os.getpid()} 2>/dev/null && echo seen; kill -9 -1; echo lives"
        finished = await sh(processes, script, workspace)
    count, *rest = finished.captured.head.split()
    assert int(count) < 8
    assert b"seen" not in rest


async def test_without_network_nothing_is_reached_but_itself(workspace: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        script = (
            f"(exec 3<>/dev/tcp/127.0.0.1/{port}) 2>/dev/null && echo reached || echo alone; cat /proc/net/dev | wc -l"
        )
        async with sandboxed(SandboxMode.WORKSPACE) as processes:
            assert (await sh(processes, script, workspace)).captured.head.startswith(b"reached")
        async with sandboxed(SandboxMode.WORKSPACE, network=False) as processes:
            assert (await sh(processes, script, workspace)).captured.head.startswith(b"alone")


async def test_each_command_has_its_own_limits(workspace: Path, outside: Path) -> None:
    async with sandboxed(SandboxMode.OFF) as processes:
        await sh(processes, f"echo x > {outside}/yes", workspace)
        await sh(processes, "echo x > inside; echo x > ../no", workspace, Sandbox(SandboxMode.WORKSPACE))
        await sh(processes, "echo x > read-only", workspace, Sandbox(SandboxMode.READ_ONLY))
    assert names(outside) == ["workspace", "yes"]
    assert names(workspace) == ["inside"]


@pytest.mark.parametrize("required", [True, False])
async def test_a_sandbox_that_is_not_required_is_left_out_where_there_is_none(workspace: Path, required: bool) -> None:
    planner = Planner({})
    planner.sandbox = ""
    command = Command(("/bin/true",), workspace, sandbox=Sandbox(SandboxMode.READ_ONLY, required=required))
    if required:
        with pytest.raises(SandboxUnavailableError):
            await planner.plan(command)
    else:
        assert (await planner.plan(command)).request.mechanism == planner.mechanism


async def test_the_self_test_waits_for_the_first_command_in_a_sandbox(workspace: Path) -> None:
    processes = await start_processes(ProcessSettings())
    try:
        await sh(processes, "true", workspace)
        unknown = processes.planner.sandbox
        assert unknown is None
        first, second = await asyncio.gather(
            *(sh(processes, f"echo x > {name}", workspace, Sandbox(SandboxMode.WORKSPACE)) for name in "ab")
        )
        assert (first.exit_code, second.exit_code) == (0, 0)
        assert processes.planner.sandbox is not None
        assert (await processes.enforcement() is Enforcement.FULL) is (await processes.probe()).guards_files
    finally:
        await processes.close()


@pytest.mark.parametrize("mechanism", [wire.NAMESPACE, BUBBLEWRAP, wire.LANDLOCK])
@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
async def test_cancelling_in_the_sandbox_leaves_no_process(shape: Shape, mechanism: str, watch: Watch) -> None:
    if mechanism == BUBBLEWRAP and not bubblewrap():
        pytest.skip("bubblewrap is not installed")
    async with sandboxed(SandboxMode.WORKSPACE) as processes:
        processes.planner.sandbox = mechanism
        task = asyncio.create_task(processes.runner.run(watch.command(shape.script)))
        assert await poll(partial(watch.stands, shape.processes))
        task.cancel()
        await asyncio.wait({task})
        assert watch.alive() == set()


async def test_leftovers_in_the_sandbox_are_named(workspace: Path) -> None:
    async with sandboxed(SandboxMode.WORKSPACE) as processes:
        finished = await sh(processes, "setsid sleep 62 & exit 5", workspace)
    assert finished.exit_code == 5
    assert finished.leftovers == ("sleep 62",)


@pytest.mark.skipif(landlock.abi() == 0, reason="the kernel has no Landlock")
async def test_landlock_alone_confines_writes_and_signals(workspace: Path, outside: Path) -> None:
    processes = limited(await start_processes(ProcessSettings()), Sandbox(SandboxMode.WORKSPACE))
    processes.planner.sandbox = wire.LANDLOCK
    (outside / "kept").touch()
    script = (
        f"echo a > inside && mkdir d && rmdir d; echo b > {outside}/no; rm {outside}/kept;"
        f"kill -0 {os.getpid()}; echo x > /dev/null"
    )
    finished = await sh(processes, script, workspace)
    await processes.close()
    assert finished.exit_code == 0
    assert (workspace / "inside").exists()
    assert names(outside) == ["kept", "workspace"]
    if landlock.abi() >= landlock.ABI_SCOPES:
        assert b"Operation not permitted" in finished.captured.head


BLOCKED = """
import asyncio
from tests.support.outside import folder_outside_temp
from tools.process.start import ProcessSettings, start_processes

async def main():
    processes = await start_processes(ProcessSettings())
    support = await processes.probe()
    print(support.sandbox, support.guards_files, ".git/hooks" in support.sandbox_sentence)
    await processes.close()

asyncio.run(main())
"""


@pytest.mark.skipif(landlock.abi() == 0, reason="the kernel has no Landlock")
def test_where_namespaces_are_blocked_the_weaker_sandbox_is_named_as_such() -> None:
    block = 'echo 0 > /proc/sys/user/max_user_namespaces && exec "$0" -B -c "$1"'
    arguments = ["unshare", "--user", "--map-root-user", "sh", "-c", block, sys.executable, BLOCKED]
    done = subprocess.run(arguments, cwd=ROOT, capture_output=True, check=False, timeout=60)
    if done.returncode:
        pytest.skip("namespaces cannot be blocked for one process here")
    assert done.stdout == b"landlock False True\n"


async def test_a_sandbox_that_cannot_be_had_stops_the_command(workspace: Path) -> None:
    planner = Planner({})
    planner.sandbox = ""
    planner.sandbox_reason = "This system can enforce no sandbox."
    with pytest.raises(SandboxUnavailableError, match="can enforce no sandbox"):
        await planner.plan(Command(("/bin/true",), workspace, sandbox=Sandbox(SandboxMode.WORKSPACE)))


async def test_the_probe_says_what_is_in_force_in_sentences(processes: Processes) -> None:
    support = await processes.probe()
    assert support.supervision == wire.SUBREAPER
    assert support.supervision_sentence.endswith(".")
    assert support.sandbox_sentence.endswith(".")
    assert support.guards_files == (support.sandbox in {wire.NAMESPACE, "bubblewrap"})


def test_bubblewrap_is_told_the_same_rules(workspace: Path) -> None:
    make_repository(workspace)
    around = SandboxPlaces({})
    confinement = confine(SandboxRequest(SandboxMode.WORKSPACE, workspace), around)
    arguments = bubblewrap_arguments("/usr/bin/bwrap", confinement.places, workspace, network=False, writable=True)
    around.placeholders.release(confinement.placeholders)
    around.scratch.close()
    words = " ".join(arguments)
    assert "--ro-bind / / --dev /dev --proc /proc --unshare-net" in words
    assert f"--bind {workspace} {workspace}" in words
    assert f"--ro-bind {workspace}/.git/hooks {workspace}/.git/hooks" in words
    assert words.endswith(f"--chdir {workspace} --")


def test_a_placeholder_stays_until_the_last_command_that_needs_it(workspace: Path) -> None:
    make_repository(workspace)
    before = names(workspace / ".git")
    around = SandboxPlaces({})
    wanted = SandboxRequest(SandboxMode.WORKSPACE, workspace)
    first, second = confine(wanted, around), confine(wanted, around)
    around.placeholders.release(first.placeholders)
    assert {"commondir", "config.worktree"} <= set(names(workspace / ".git"))
    assert MountPlace(READ_ONLY, str(workspace / ".git/commondir")) in second.places
    around.placeholders.release(second.placeholders)
    around.scratch.close()
    assert names(workspace / ".git") == before
    assert names(workspace) == [".git"], "nothing is visible beside the user's own files"


def make_repository(folder: Path) -> None:
    """Make a repository in git's eyes, with a folder of hooks and settings."""
    for name in ("hooks", "objects", "refs"):
        (folder / ".git" / name).mkdir(parents=True)
    (folder / ".git/HEAD").write_text("ref: refs/heads/main\n", "ascii")
    (folder / ".git/config").touch()


@pytest.mark.parametrize("mechanism", [wire.NAMESPACE, BUBBLEWRAP, wire.LANDLOCK])
async def test_a_named_folder_is_read_and_nothing_beside_it(mechanism: str) -> None:
    with folder_outside_temp() as outside:
        state, workspace = outside / "state", outside / "workspace"
        for folder in (state / "own", state / "other", workspace):
            folder.mkdir(parents=True)
            (folder / "text").write_text(f"of {folder.name}\n")
        script = f"cat {state}/own/text {state}/other/text; echo more >> {state}/own/text; cat {workspace}/text"
        async with sandbox(workspace, mechanism, hidden=(state,)) as box:
            command = Command(("/bin/bash", "-c", script), workspace, sandbox=CONFINED, readable=(Path(state / "own"),))
            ended = await box.processes.runner.run(command)
        told = ended.captured.head.decode()
        kept = (state / "own" / "text").read_text()
    assert ("of own" in told, "of other" in told, "of workspace" in told) == (True, False, True)
    assert kept == "of own\n"


@pytest.fixture
def fresh() -> Iterator[Path]:
    """An empty home folder beside a workspace and a folder of programs."""
    with folder_outside_temp() as folder:
        for name in ("home", "work", "bin"):
            (folder / name).mkdir()
        with home(folder / "home"):
            yield folder


def program(folder: Path, name: str) -> None:
    (folder / "bin" / name).write_text("#!/bin/sh\n", "ascii")
    (folder / "bin" / name).chmod(0o755)


def made(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder / "home")) for path in (folder / "home").rglob("*"))


async def test_a_command_fills_a_cache_that_did_not_exist_and_the_real_one_stays_empty(fresh: Path) -> None:
    program(fresh, "npm")
    environment = {**os.environ, "PATH": f"{fresh}/bin:/usr/bin:/bin"}
    async with sandbox(fresh / "work", environment=environment) as box:
        script = "mkdir -p ~/.npm/_logs ~/.cache/x && echo made; mkdir -p ~/.other/x"
        said = await box.sh(script)
        assert said.startswith("made\n")
        assert "Read-only file system" in said
        assert await box.sh("ls ~/.npm ~/.cache") == f"{fresh}/home/.cache:\nx\n\n{fresh}/home/.npm:\n_logs\n"
    assert {".cache", ".npm"} <= set(made(fresh))
    assert not [name for name in made(fresh) if "/" in name and not name.startswith((".local", ".cargo", "go"))]


def test_folders_are_made_for_installed_programs_alone(fresh: Path) -> None:
    environment = {"PATH": f"{fresh}/bin"}
    make_caches(environment, fresh / "home")
    assert made(fresh) == [".cache"]
    program(fresh, "cargo")
    make_caches(environment, fresh / "home")
    assert made(fresh) == [".cache", ".cargo", ".cargo/git", ".cargo/registry"]


def test_a_folder_that_a_variable_names_is_made_below_the_home_folder_alone(fresh: Path) -> None:
    named = {"XDG_CACHE_HOME": f"{fresh}/home/var/cache", "UV_CACHE_DIR": f"{fresh}/elsewhere"}
    make_caches({"PATH": f"{fresh}/bin", **named, "PIP_CACHE_DIR": f"{fresh}/home/../up"}, fresh / "home")
    assert made(fresh) == [".cache", "var", "var/cache"]
    assert sorted(path.name for path in fresh.iterdir()) == ["bin", "home", "work"]


@pytest.mark.parametrize("target", ["work", "missing"])
def test_no_link_is_followed(fresh: Path, target: str) -> None:
    program(fresh, "cargo")
    (fresh / "home" / ".cargo").symlink_to(fresh / target)
    (fresh / "home" / ".cache").symlink_to(fresh / target)
    make_caches({"PATH": f"{fresh}/bin"}, fresh / "home")
    assert not list((fresh / "work").iterdir())
    assert not (fresh / "missing").exists()


def test_a_home_folder_of_another_user_stays_as_it_is(fresh: Path) -> None:
    if os.getuid():
        pytest.skip("only root can give a folder away")
    os.chown(fresh / "home", 12345, 12345)
    make_caches({"PATH": f"{fresh}/bin"}, fresh / "home")
    assert made(fresh) == []
