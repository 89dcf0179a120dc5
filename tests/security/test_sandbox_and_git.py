"""SECURITY V5: git works in the sandbox, in repositories, worktrees and submodules; its control part stays."""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.outside import folder_outside_temp
from tests.support.sandboxes import CONFINED, sandbox
from tools.contract import Command, SandboxMode
from tools.process.git_control import git_control
from tools.process.link import spawn_zygote
from tools.process.placeholders import Placeholders, is_left_over
from tools.process.sandbox import SandboxPlaces, SandboxRequest, confine
from tools.process.supervision import Supervision

DAILY = """
set -e
echo $RANDOM > one; git add one; git commit -qm one; git status --short
git checkout -q -b side; echo 2 > two; git add -A; git commit -qm two
git checkout -q -; echo 3 > one; git stash -q; git stash pop -q; git commit -qam three
git merge -q --no-edit side; git rebase -q HEAD~1; git tag v1; git cherry-pick --no-commit HEAD~1 || git reset -q --hard
git reset -q --hard; git gc -q; git repack -adq; git fsck; git reflog | wc -l; git notes add -m x; git clean -fdxq
git bisect start -q; git bisect reset; git switch -q -c other; git restore .; git log --oneline | wc -l
echo all of it
"""
ATTACK = """
G=$(git rev-parse --absolute-git-dir); C=$(cd $(git rev-parse --git-common-dir); pwd)
for f in $C/config $G/config.worktree $C/hooks/pre-commit $G/commondir $C/info/attributes $C/objects/info/alternates
do echo evil >> $f; rm -f $f; echo evil > x; mv -f x $f; ln -sf /etc/passwd $f; done
git config core.fsmonitor evil; git config --worktree core.fsmonitor evil; mv $C/hooks $C/h; mv $C/info $C/i; mv $C $C.x
"""


def git(folder: Path, *words: str) -> str:
    settings = ("user.name=a", "user.email=a@b", "protocol.file.allow=always")
    options = [word for setting in settings for word in ("-c", setting)]
    done = subprocess.run(["git", "-C", str(folder), *options, *words], check=True, capture_output=True, text=True)
    return done.stdout


@pytest.fixture
def place() -> Iterator[Path]:
    """`main`, a linked worktree `linked` and a submodule `main/sub`, each with a commit."""
    with folder_outside_temp() as folder:
        for name in ("main", "library"):
            git(folder, "init", "-q", name)
            (folder / name / "one").write_text("1", "ascii")
            git(folder / name, "add", "one")
            git(folder / name, "commit", "-qm", "zero")
        git(folder / "main", "submodule", "--quiet", "add", "../library", "sub")
        git(folder / "main", "commit", "-qm", "sub")
        git(folder / "main", "worktree", "add", "-q", "../linked", "HEAD")
        for name in ("main", "main/sub"):
            git(folder / name, "config", "user.name", "a")
            git(folder / name, "config", "user.email", "a@b")
        yield folder


def control(folder: Path) -> dict[str, bytes | None]:
    """Files below `.git` folders that make git run a program."""
    names = ("config", "config.worktree", "commondir", "info/attributes", "objects/info/alternates", "hooks")
    places = [path.parent for path in folder.rglob("HEAD") if "logs" not in path.parts and "refs" not in path.parts]
    found: dict[str, bytes | None] = {}
    for path in (place / name for place in places for name in names):
        content = b" ".join(sorted(os.fsencode(entry) for entry in path.iterdir())) if path.is_dir() else None
        found[str(path)] = path.read_bytes() if path.is_file() else content
    return found


@pytest.mark.parametrize("name", ["main", "linked", "main/sub"])
async def test_daily_git_works_and_nothing_that_runs_is_changed(name: str, place: Path) -> None:
    before = control(place)
    async with sandbox(place / name) as box:
        said = await box.sh(DAILY)
        assert said.endswith("all of it\n"), said
        assert "??" not in said, "placeholders are nothing to git"
        await box.sh(ATTACK)
    assert control(place) == before
    assert git(place / name, "status", "--short", "--ignored") in {"", "?? x\n"}
    assert not (place / name / ".vscode").exists()


@pytest.mark.parametrize("target", ["{outside}", "{outside}/.git", "{outside}/.git/worktrees/x", "..", "/"])
def test_a_pointer_of_the_repository_opens_no_other_folder(target: str, place: Path) -> None:
    """The contents of `.git` are the repository's: what they name must name them back."""
    hostile = place / "hostile"
    hostile.mkdir()
    other = place / "main" / ".git"
    (other / "worktrees" / "x").mkdir(parents=True)
    (other / "worktrees" / "x" / "HEAD").write_text("ref: refs/heads/x\n", "ascii")
    (other / "worktrees" / "x" / "gitdir").write_text(f"{place}/elsewhere/.git\n", "ascii")
    (other / "worktrees" / "x" / "commondir").write_text("../..\n", "ascii")
    (hostile / ".git").write_text("gitdir: " + target.format(outside=place / "main") + "\n", "ascii")
    assert git_control(hostile).writable == ()
    assert git_control(place / "linked").writable != ()


async def test_programs_of_settings_and_hooks_are_read_only(place: Path) -> None:
    top, names = place / "main", ("fsm", "clean", "hook", "included", "log", "alias", "more", "hooks", "free")
    (top / "scripts").mkdir()
    with (top / ".git/config").open("a", encoding="ascii") as settings:
        settings.write("[uploadpack] packObjectsHook = scripts/hooks\n")
    for name in names:
        (top / "scripts" / name).write_text("exit 0\n", "ascii")
    git(top, "config", "core.fsmonitor", "scripts/fsm")
    git(top, "config", "filter.x.clean", "sh -e 'scripts/clean' %f")
    git(top, "config", "pager.log", "scripts/log")
    git(top, "config", "alias.name", "!f() { scripts/alias $1; }; f")
    git(top, "config", "commit.template", "scripts/free")
    (top / ".git/more").write_text("[diff]\n\texternal = scripts/included\n[alias]\n\tx = !true; \\\n scripts/more\n")
    git(top, "config", "include.path", "more")
    (top / ".git/hooks").mkdir(exist_ok=True)
    (top / ".git/hooks/pre-commit").symlink_to("../../scripts/hook")
    async with sandbox(top) as box:
        await box.sh(
            "cd scripts; for name in *; do echo evil > $name; rm -f $name; echo evil > $name; done; cd ..; mv scripts s"
        )
    assert [name for name in names if (top / "scripts" / name).read_text() != "exit 0\n"] == ["free"]


@pytest.mark.parametrize("linked", [False, True])
async def test_files_that_the_users_own_settings_of_git_name_are_read_only(
    linked: bool, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    top, home = place / "main", place / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(home / "named"))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    (home / "top").symlink_to(top)
    for name in ("work.inc", "more.inc", "free"):
        (top / name).write_text("[user]\n\tname = a\n", "ascii")
    for name in ("fsm", "log", "named"):
        (top / name).write_text("exit 0\n", "ascii")
    settings = home / ("dotfile" if linked else ".gitconfig")
    settings.write_text(
        f"[include]\n\tpath = {top}/work.inc\n[core]\n\tfsmonitor = {top}/fsm\n[include]\n\tpath = {top}/absent\n"
        "[pager]\n\tlog = ~/top/log\n"
    )
    if linked:
        (home / ".gitconfig").symlink_to("dotfile")
    (home / "named").write_text("[alias]\n\tx = !$HOME/top/named\n", "ascii")
    (home / ".config/git").mkdir(parents=True)
    (home / ".config/git/config").write_text(f'[includeIf "gitdir:{top}/"]\n\tpath = {top}/more.inc\n', "ascii")
    names = {"fsm", "log", "named", "free", "work.inc", "more.inc"}
    async with sandbox(top) as box:
        await box.sh(f"for name in {' '.join(names)}; do echo evil > $name; rm -f $name; done; ls")
    assert {path.name for path in top.iterdir()} & names == names - {"free"}
    assert not (top / "absent").exists()


BARE = "mkdir -p objects refs; printf 'ref: refs/heads/x\\n' > HEAD; printf '[core]\\n fsmonitor = evil\\n' > config"


@pytest.mark.parametrize("name", ["plain", "bare", "main/deep"])
async def test_the_workspace_does_not_become_a_bare_repository(name: str, place: Path) -> None:
    """Git takes a folder with HEAD, objects and refs for a repository, before it looks for `.git` further up."""
    folder = place / name
    folder.mkdir()
    if name == "bare":
        git(folder, "init", "-q", "--bare")
    settings = (folder / "config").read_bytes() if name == "bare" else b""
    async with sandbox(folder) as box:
        await box.sh(f"rm -f HEAD; {BARE}; mkdir -p hooks; echo evil > hooks/post-checkout")
    if name == "bare":
        assert (folder / "config").read_bytes() == settings
        assert not (folder / "hooks" / "post-checkout").exists()
    else:
        assert not (folder / "config").exists()
        assert not (folder / "hooks").exists()


@pytest.mark.parametrize("swapped", ["lib", "lib/inner", "lib/inner/.git"])
async def test_a_folder_that_becomes_a_link_behind_the_plan_is_not_followed(swapped: str, place: Path) -> None:
    """A job swaps a folder for a link between the plan of the next command and its mounts."""
    workspace, victim = place / "main", place / "victim"
    git(workspace, "init", "-q", "lib/inner")
    git(place, "init", "-q", "victim/inner")
    script = (
        f"echo x > {victim}/no; echo x > {victim}/inner/no; echo x > {victim}/inner/.git/no; echo x > {victim}/hooks/no"
    )
    command = Command(("/bin/sh", "-c", script), workspace, sandbox=CONFINED)
    async with sandbox(workspace) as box:
        supervision = Supervision(spawn_zygote(), box.processes.planner)
        plan = await box.processes.planner.plan(command)
        aim = {"lib": victim, "lib/inner": victim / "inner", "lib/inner/.git": victim / "inner" / ".git"}[swapped]
        before = sorted(path for path in victim.rglob("*"))
        (workspace / swapped).rename(workspace / "was")
        (workspace / swapped).symlink_to(aim)
        with contextlib.suppress(OSError):
            running = await supervision.start_planned(command, plan)
            await supervision.see_through(running, 20, asyncio.Event())
    assert sorted(path for path in victim.rglob("*")) == before


def test_what_a_killed_phoenix_left_is_known_and_removed(place: Path) -> None:
    workspace = place / "main"
    killed, after = SandboxPlaces({}), SandboxPlaces({})
    left = confine(SandboxRequest(SandboxMode.WORKSPACE, workspace), killed).placeholders
    assert all(map(is_left_over, left))
    again = confine(SandboxRequest(SandboxMode.WORKSPACE, workspace), after)
    after.placeholders.release(again.placeholders)
    assert not any(path.exists() for path in left)
    for around in (killed, after):
        around.scratch.close()


@pytest.mark.parametrize("name", [".envrc", ".mcp.json", ".vscode"])
def test_what_is_the_users_own_is_never_taken_for_a_placeholder(name: str, place: Path) -> None:
    path = place / name
    path.mkdir(mode=0o755) if name == ".vscode" else path.write_text("mine", "ascii")
    if name == ".mcp.json":
        path.chmod(0o400)
    placeholders = Placeholders()
    assert not placeholders.is_claimed(path)
    placeholders.release([path])
    assert path.exists()
