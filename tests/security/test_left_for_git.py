"""Traps of a sandboxed command for a later git outside (SECURITY V5: git's whole control part).

Each attack plants something in one command and lets the user's own git run afterwards. Before, `git status` at the top
ran `core.fsmonitor` of a planted submodule, and `git commit` wrote into `~/.bashrc` through a link in `.git`.
"""

from __future__ import annotations

import asyncio
import os
import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.permissions.place import project_of
from phoenix_tui.config.trust import find_project
from phoenix_tui.features.changes import find_uncommitted
from tests.support.outside import folder_outside_temp
from tests.support.sandboxes import CONFINED, sandbox
from tests.support.waiting import poll
from tools.bash import Caller
from tools.contract import Command, Finished
from tools.git.repository import find_repository, read_git_pointer
from tools.process.git_control import git_control, submodules
from tools.shell_output import readable

NAMES = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b"}
ALONE = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null", **NAMES}
SET_UP = " ".join(f"{name}={value}" for name, value in ALONE.items())
NEW = f"export {SET_UP}; git init -q SUB && echo x > SUB/f && git -C SUB add f && git -C SUB commit -qm s"
ADDED = f"{NEW} && git add -f SUB 2>/dev/null"


def git(folder: Path, *arguments: str) -> str:
    environment = {**os.environ, **ALONE}
    done = subprocess.run(["git", *arguments], cwd=folder, env=environment, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


@pytest.fixture
def place() -> Iterator[Path]:
    with folder_outside_temp() as folder:
        (folder / "main").mkdir()
        (folder / "victim").write_text("kept\n", "ascii")
        (folder / "main" / "file").write_text("one\n", "ascii")
        git(folder / "main", "init", "-q")
        git(folder / "main", "add", ".")
        git(folder / "main", "commit", "-qm", "one")
        yield folder


def unconfined(script: str, folder: Path) -> None:
    subprocess.run(["bash", "-c", script], cwd=folder, check=True, capture_output=True)


def planted(script: str, where: str) -> str:
    return script.replace("SUB", where)


ARMED = {
    "fsmonitor": f"{ADDED}; printf '[core]\\n\\tfsmonitor = \"echo > MARK; false\"\\n' >> SUB/.git/config",
    "section and key in one line": f"{ADDED}; printf '[core] fsmonitor = \"echo > MARK; false\"\\n' >> SUB/.git/config",
    "included file": f"{ADDED}; printf '[include]\\n\\tpath = ../../x\\n' >> SUB/.git/config;"
    " printf '[core]\\n\\tfsmonitor = \"echo > MARK; false\"\\n' > x",
    "settings of a worktree": f"{ADDED}; git -C SUB config extensions.worktreeConfig true;"
    " printf '[core]\\n\\tfsmonitor = \"echo > MARK; false\"\\n' > SUB/.git/config.worktree",
    "folder named by a file": f'{ADDED}; mv SUB/.git elsewhere; echo "gitdir: $PWD/elsewhere" > SUB/.git;'
    " printf '[core]\\n\\tfsmonitor = \"echo > MARK; false\"\\n' >> elsewhere/config",
    "folder in the folder of modules": f"{ADDED}; mkdir -p .git/modules; mv SUB/.git .git/modules/new;"
    ' echo "gitdir: $PWD/.git/modules/new" > SUB/.git;'
    " printf '[core]\\n\\tfsmonitor = \"echo > MARK; false\"\\n' >> .git/modules/new/config",
    "folder behind a link": f"{ADDED}; mv SUB/.git elsewhere; ln -s $PWD/elsewhere SUB/.git;"
    " printf '[core]\\n\\tfsmonitor = \"echo > MARK; false\"\\n' >> elsewhere/config",
    "settings of another folder": f"{ADDED}; mkdir other; mv SUB/.git/config SUB/.git/objects SUB/.git/refs other/;"
    " echo $PWD/other > SUB/.git/commondir; printf '[core]\\n\\tfsmonitor = \"echo > MARK; false\"\\n' >> other/config",
    "submodule of a submodule": f"{NEW}; {NEW.replace('SUB', 'SUB/in')} && git -C SUB add -f in 2>/dev/null;"
    " git add -f SUB 2>/dev/null; printf '[core]\\n\\tfsmonitor = \"echo > MARK; false\"\\n' >> SUB/in/.git/config",
    "closed to its owner": f"{ADDED}; printf '[core]\\n\\tfsmonitor = \"echo > MARK; false\"\\n' >> SUB/.git/config;"
    " chmod 500 SUB SUB/.git",
    "split index": f"{ADDED}; git update-index --split-index;"
    " printf '[core]\\n\\tfsmonitor = \"echo > MARK; false\"\\n' >> SUB/.git/config",
    "index of version 4": f"{ADDED}; git update-index --index-version 4;"
    " printf '[core]\\n\\tfsmonitor = \"echo > MARK; false\"\\n' >> SUB/.git/config",
}


async def test_git_at_the_top_runs_nothing_of_a_planted_submodule(place: Path) -> None:
    main, mark = place / "main", place / "mark"
    async with sandbox(main) as box:
        for number, (attack, script) in enumerate(ARMED.items()):
            where = f"sub{number}" if number else "node_modules/deep/sub"
            said = await box.sh(f"mkdir -p {where}; {planted(script, where).replace('MARK', str(mark))}")
            git(main, "status", "--short")
            assert not mark.exists(), f"{attack} ran outside: {said}"
    git(main, "diff")
    git(main, "submodule", "status")
    assert not mark.exists()


async def test_the_attack_runs_where_nobody_looks(place: Path) -> None:
    """Premise of the tests above: git does obey a submodule's settings."""
    mark = place / "mark"
    script = planted(ARMED["fsmonitor"], "sub").replace("MARK", str(mark))
    unconfined(script, place / "main")
    git(place / "main", "status", "--short")
    assert mark.exists()


async def test_a_planted_hook_is_renamed_and_told(place: Path) -> None:
    main = place / "main"
    async with sandbox(main) as box:
        before = await box.sh(f"{planted(NEW, 'sub')}")
        assert "sandbox:" not in before, "a new repository as git makes it is nobody's trap"
        await box.sh(planted(NEW, "two") + "; echo 'echo hi' > two/.git/hooks/post-checkout")
    assert not (main / "two/.git/hooks").exists()
    assert [path.name.rpartition("-")[0] for path in (main / "two/.git").glob("hooks-*")] == ["hooks-set-aside"]


LINKED = ("logs/HEAD", "COMMIT_EDITMSG", "index", "refs/heads/NOW", "ORIG_HEAD", "packed-refs", "logs/refs/heads/NOW")


async def test_git_writes_through_no_link_that_a_command_left_in_its_folder(place: Path) -> None:
    main, victim = place / "main", place / "victim"
    now = git(main, "branch", "--show-current").strip()
    paths = [f".git/{name.replace('NOW', now)}" for name in LINKED]
    async with sandbox(main) as box:
        await box.sh("; ".join(f"rm -rf {path}; ln -s {victim} {path}" for path in paths))
    assert not [path for path in paths if (main / path).is_symlink()]
    (main / "file").write_text("two\n", "ascii")
    git(main, "add", "file")
    git(main, "commit", "-qm", "; touch here ;", "--allow-empty")
    git(main, "reset", "-q", "--hard")
    git(main, "pack-refs", "--all")
    assert victim.read_text("ascii") == "kept\n"


async def test_what_stood_there_before_the_command_stays(place: Path) -> None:
    """The user's own submodule with a hook, and his own links, are his."""
    main = place / "main"
    unconfined(planted(ADDED, "sub"), main)
    (main / "sub/.git/hooks/post-checkout").write_text("mine", "ascii")
    (main / "sub/.git/config").write_text("[core]\n\tfsmonitor = true\n", "ascii")
    (main / ".git/description").unlink()
    (main / ".git/description").symlink_to(place / "victim")
    async with sandbox(main) as box:
        for _ in range(2):
            await box.sh("git status --short; echo x > new")
    assert (main / "sub/.git/hooks/post-checkout").exists()
    assert "fsmonitor" in (main / "sub/.git/config").read_text("ascii")
    assert (main / ".git/description").is_symlink()


async def test_a_folder_with_a_head_becomes_no_repository(place: Path) -> None:
    """Git takes a folder with HEAD, objects and refs for a bare repository, and obeys the `config` beside them."""
    plain, mark = place / "plain", place / "mark"
    plain.mkdir()
    (plain / "HEAD").write_text("ref: refs/heads/main\n", "ascii")
    settings = f'[core]\\n\\tbare=false\\n\\tworktree=.\\n\\tfsmonitor = "echo > {mark}; false"\\n'
    script = f"mkdir -p objects refs; printf '{settings}' > config"
    async with sandbox(plain) as box:
        await box.sh(script)
    git(plain, "status")
    assert not mark.exists()


async def test_no_command_runs_in_a_folder_that_became_a_link(place: Path) -> None:
    """A command of the folder above swaps another conversation's working directory for a link to the home folder."""
    main, home = place / "main", place / "home"
    home.mkdir()
    (main / "inner").mkdir()
    async with sandbox(main) as box:
        await box.sh(f"mv inner away; ln -s {home} inner")
        with pytest.raises(OSError, match="symbolic links"):
            await box.sh("touch here", main / "inner")
    assert not list(home.iterdir())


@given(data=st.binary(max_size=300), version=st.integers(2, 4), count=st.integers(0, 2**32 - 1))
def test_no_index_breaks_the_reader(
    data: bytes, version: int, count: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("index")
    (folder / "index").write_bytes(struct.pack(">4sII", b"DIRC", version, count) + data)
    assert all(not name.startswith("/") and ".." not in name.split("/") for name in submodules(folder))


async def test_the_result_of_the_command_says_so(place: Path) -> None:
    main = place / "main"
    async with sandbox(main) as box:
        command = Command(("/bin/bash", "-c", f"ln -s {place}/victim .git/FETCH_HEAD"), main, sandbox=CONFINED)
        ended = await box.processes.jobs.run(command, Caller("one", "call", "x"))
    assert isinstance(ended, Finished)
    assert f"[sandbox: the link .git/FETCH_HEAD to {place}/victim was removed" in readable(ended.captured)


async def test_phoenix_itself_runs_nothing_of_a_repository_that_a_command_makes(place: Path) -> None:
    """`/diff`, in the top folder and in the planted ones, while the command that planted them still runs."""
    main, mark = place / "main", place / "mark"
    armed = planted(ARMED["fsmonitor"], "sub").replace("MARK", str(mark))
    hook = f"printf '#!/bin/sh\\necho > {mark}\\n' > sub/.git/hooks/post-index-change; chmod 700 sub/.git/hooks/*"
    bare = (
        planted(NEW, "x") + "; mkdir bare; mv x/.git/* bare/; cp sub/.git/config bare/; cp sub/.git/hooks/* bare/hooks/"
    )
    async with sandbox(main) as box:
        job = asyncio.create_task(box.sh(f"{armed}; {hook}; {bare}; touch ready; until [ -e go ]; do sleep 0.02; done"))
        await poll((main / "ready").exists)
        for folder in (main, main / "sub", main / "bare"):
            await find_uncommitted(box.processes.runner, folder)
            project_of(folder)
            find_project(folder)
        (main / "go").touch()
        await job
    assert not mark.exists()


async def test_no_command_makes_the_folder_it_was_to_run_in(place: Path) -> None:
    """The placeholder of `.git` would create the folder too, and the command would run where the user has none."""
    async with sandbox(place / "main") as box:
        with pytest.raises(FileNotFoundError):
            await box.sh("pwd", place / "gone")
    assert not (place / "gone").exists()


@pytest.mark.parametrize(
    "text",
    [
        "gitdir: /x\0y",
        f"gitdir: /x\0{'y' * 9_000}",
        "gitdir: /x\n\0y",
        "gitdir:",
        "gitdir",
        "",
        "x" * 10_000,
        f"gitdir: {'../' * 3_000}",
    ],
)
def test_one_reader_of_git_files_takes_what_git_writes_alone(text: str, tmp_path: Path) -> None:
    pointer = tmp_path / ".git"
    pointer.write_text(text, "ascii")
    assert read_git_pointer(pointer) == (text[8:].partition("\0")[0] if "gitdir: /x" in text else "")
    assert find_repository(tmp_path) is None
    assert project_of(tmp_path) == tmp_path
    assert all(one.path == pointer for one in git_control(tmp_path).guarded)
