"""SECURITY S11: files that start by themselves may be written by a command, and are kept or taken back afterwards."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.support.left_behind import run_inside, run_outside
from tests.support.outside import folder_outside_temp
from tests.support.sandboxes import CONFINED, home
from tests.support.waiting import poll
from tools.contract import Command
from tools.files.self_starting import is_self_starting
from tools.process.start import Processes, ProcessSettings, start_processes
from tools.process.starting_files import MOST_CONTENT
from tools.services import ServiceCommand

STARTING = [
    "AGENTS.md", "sub/CLAUDE.md", ".claude/settings.json", ".claude/hooks/x.sh", ".mcp.json",
    ".vscode/tasks.json", "sub/.vscode/settings.json", "work.code-workspace", ".devcontainer.json",
    ".devcontainer/devcontainer.json", ".pdbrc", ".cargo/config.toml", "lefthook.yaml", ".lefthook.toml",
    ".yarnrc.yml", ".yarn/releases/yarn.cjs", ".envrc", ".github/workflows/ci.yml", ".gitlab-ci.yml",
    ".husky/pre-commit", ".idea/workspace.xml", ".zed/tasks.json", ".cursor/rules/a.mdc", ".cursor/mcp.json",
    ".roo/mcp.json", ".kilocode/mcp.json", ".amazonq/mcp.json", ".junie/guidelines.md", ".trae/rules.md",
    ".qwen/settings.json", ".crush.json", "crush.json", ".clinerules", ".windsurf/workflows/a.md",
    ".unknown-agent/config.toml", "opencode.jsonc", "mise.toml", "sitecustomize.py", ".gitmodules", "GEMINI.md",
    "agents.local.md", ".aider.conf.yml", ".pre-commit-config.yaml", ".circleci/config.yml", "Jenkinsfile",
    ".npmrc", ".envrc.local", ".bashrc.local", ".zshrc.local", "sub/.vimrc.local", ".gdbinit.local",
    ".unknownrc", ".bazelrc", ".pylintrc", ".luarc.json", ".eslintrc.js", ".nvim.local.lua",
    ".ycm_extra_conf.py", ".dir-locals-2.el", ".aider.model.settings.yml", ".roomodes", ".rubocop.yml",
    ".kateproject", ".lintr", ".gitpod.yml", ".gitpod.Dockerfile", ".build.yml", ".cirrus.star", ".idx/dev.nix",
    ".devcontainer/devcontainer.env", ".augment-guidelines", "codebuff.json", ".x/.eslintrc.json",
    ".claude/commands/a\nb.md", ".vscode/a\n.json", "a\nb.code-workspace",
]  # fmt: skip
ORDINARY = [
    "README.md", "src/main.py", "package.json", "Makefile", ".gitignore", ".prettierrc", ".eslintrc.json",
    ".env", ".env.local", ".eslintrc", ".eslintrc.yml", ".golangci.yml", ".markdownlint.yaml", ".nvmrc",
    ".pnp.cjs", "._main.py", ".rustc_info.json", ".python-version", ".editorconfig", ".coverage",
    ".pytest_cache/v/x.json", ".mypy_cache/a.json", ".venv/lib/x.py", "node_modules/a/.vscode/settings.json",
    ".next/build.json", ".storybook/main.ts", ".changeset/a.md", "docs/agents.md.txt", ".git/config",
    "conftest.py", ".terraform/x.json", "target/debug/.fingerprint/a-1/lib-a.json",
    "build/.cmake/api/v1/reply/index.json", "src/.libs/program", "target/debug/x", "node_modules/a/AGENTS.md",
    ".yarn/cache/a.zip", "data.json",
]  # fmt: skip


@pytest.mark.parametrize("path", STARTING)
def test_what_a_program_loads_unasked_is_known_by_its_shape(path: str) -> None:
    assert is_self_starting(path)


@pytest.mark.parametrize("path", ORDINARY)
def test_ordinary_files_and_results_of_tools_are_not(path: str) -> None:
    assert not is_self_starting(path)


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    with folder_outside_temp() as folder:
        yield folder


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def processes(place: Path) -> AsyncIterator[Processes]:
    started = await start_processes(ProcessSettings(taken_back=place / "kept"))
    if not (await started.probe()).guards_files:
        pytest.skip("no sandbox that guards files on this system")
    yield started
    await started.close()


BRANCHES = """git init -q . && git symbolic-ref HEAD refs/heads/main
echo one > AGENTS.md; mkdir -p .vscode .claude; echo '{}' > .vscode/settings.json; echo one > file
echo 1 > .claude/a.md
git add -A -f; git commit -qm one
git switch -qc topic; echo two > AGENTS.md; echo '{"a":1}' > .vscode/settings.json; echo new > CLAUDE.md
git rm -q .claude/a.md; git add -A -f; git commit -qm two
git switch -q main; echo more > other; git add other; git commit -qm more
"""
"""A repository with branches that differ in files that start by themselves."""


def make_project(folder: Path) -> Path:
    first = folder.parent / "first project"
    if not first.exists():
        first.mkdir()
        run_outside(first, BRANCHES, check=True)
    shutil.copytree(first, folder, symlinks=True)
    return folder


WHOLE = {
    "switch": "git switch -q topic",
    "switch and back": "git switch -q topic; git switch -q main; git switch -q topic",
    "merge": "git merge -q --no-edit topic",
    "rebase": "git rebase -q topic",
    "reset": "git reset -q --hard topic",
    "cherry-pick": "git cherry-pick topic",
    "stash and pop": "echo x > file; git stash -q; git switch -q topic; git stash pop -q",
    "checkout": "git checkout -q topic",
    "bisect": "git bisect start topic main~1 && git bisect reset topic",
}


@pytest.mark.parametrize("name", WHOLE)
@pytest.mark.asyncio(loop_scope="module")
async def test_git_over_branches_works_whole_and_asks_nothing(name: str, processes: Processes, place: Path) -> None:
    folder = make_project(place / f"whole {name}")
    alone = make_project(place / f"alone {name}")
    ended = await run_inside(processes, folder, f"set -e; {WHOLE[name]}")
    assert ended.exit_code == 0, ended.captured
    await asyncio.to_thread(run_outside, alone, f"set -e; {WHOLE[name]}")
    assert snapshot(folder) == snapshot(alone)
    assert await processes.sift_changes(folder, ended.captured.changed) == ()
    assert await asyncio.to_thread(run_outside, folder, "git status --short") == (
        " M file\n" if name == "stash and pop" else ""
    )


def snapshot(folder: Path) -> dict[str, bytes]:
    found = (path for path in folder.rglob("*") if path.is_file() and ".git" not in path.parts)
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}


@pytest.mark.asyncio(loop_scope="module")
async def test_a_patch_of_the_users_own_is_asked_about_and_can_be_kept(processes: Processes, place: Path) -> None:
    folder = make_project(place / "apply")
    await asyncio.to_thread(run_outside, folder, "git diff main topic > p.patch")
    ended = await run_inside(processes, folder, "git apply p.patch")
    assert ended.exit_code == 0
    changes = await processes.sift_changes(folder, ended.captured.changed)
    assert {(one.path, one.kind) for one in changes} == {
        ("AGENTS.md", "changed"),
        (".vscode/settings.json", "changed"),
        ("CLAUDE.md", "created"),
        (".claude/a.md", "removed"),
    }
    await processes.keep_changes(folder, changes)
    ended = await run_inside(processes, folder, "true")
    assert ended.captured.changed == ()
    assert (folder / "AGENTS.md").read_text("ascii") == "two\n"


@pytest.mark.asyncio(loop_scope="module")
async def test_what_is_taken_back_is_as_before_and_nothing_is_lost(processes: Processes, place: Path) -> None:
    folder = make_project(place / "back")
    (folder / ".envrc").symlink_to("file")
    (folder / ".husky").mkdir()
    (folder / ".husky/pre-commit").write_text("mine", "ascii")
    before = snapshot(folder)
    script = (
        "echo evil > AGENTS.md; rm -r .vscode; mkdir -p .cursor/rules; echo evil > .cursor/rules/a.mdc;"
        "ln -sfn other .envrc; chmod 755 .husky/pre-commit; mv .claude moved; echo fine > src.txt"
    )
    ended = await run_inside(processes, folder, script)
    assert {(one.path, one.kind) for one in ended.captured.changed} == {
        ("AGENTS.md", "changed"),
        (".vscode/settings.json", "removed"),
        (".cursor/rules/a.mdc", "created"),
        (".envrc", "changed"),
        (".husky/pre-commit", "changed"),
        (".claude/a.md", "removed"),
    }
    said = await processes.take_back(folder, ended.captured.changed)
    assert len(said) == 1, said
    assert {
        name: content for name, content in snapshot(folder).items() if name not in {"src.txt", "moved/a.md"}
    } == before
    assert str((folder / ".envrc").readlink()) == "file"
    assert (folder / ".husky/pre-commit").stat().st_mode & 0o111 == 0
    assert not (folder / ".cursor").exists()
    kept = [path for path in (place / "kept").rglob("*") if path.is_file()]
    contents = {path.name: path.read_text("ascii") for path in kept}
    assert contents == {"AGENTS.md": "evil\n", "a.mdc": "evil\n", "pre-commit": "mine"}
    assert (await run_inside(processes, folder, "true")).captured.changed == ()


@pytest.mark.asyncio(loop_scope="module")
async def test_a_commit_of_the_command_is_no_history_of_the_user(processes: Processes, place: Path) -> None:
    folder = make_project(place / "forged")
    script = "git switch -qc evil; echo evil > AGENTS.md; git commit -qam x"
    ended = await run_inside(processes, folder, script)
    assert [one.path for one in await processes.sift_changes(folder, ended.captured.changed)] == ["AGENTS.md"]
    made = "B=$(echo worse | git hash-object -w --stdin); git update-index --cacheinfo 100644,$B,AGENTS.md"
    await run_inside(processes, folder, f"{made}; git commit -qm y")
    ended = await run_inside(processes, folder, "git checkout -q -- AGENTS.md")
    assert [one.path for one in await processes.sift_changes(folder, ended.captured.changed)] == ["AGENTS.md"]


CHECKOUTS = {
    "worktree": ("git worktree add -q sub/wt topic", []),
    "worktree at a commit": ("git worktree add -q --detach wt main~1", []),
    "changed in a worktree": ("git worktree add -q wt topic; echo evil > wt/CLAUDE.md", ["wt/CLAUDE.md"]),
    "committed in a worktree": (
        "git worktree add -q -b new wt topic; echo evil > wt/AGENTS.md; git -C wt commit -qam x",
        ["wt/AGENTS.md"],
    ),
    "clone": ("git clone -q . sub", ["sub/.claude/a.md", "sub/.vscode/settings.json", "sub/AGENTS.md"]),
}


@pytest.mark.parametrize("name", CHECKOUTS)
@pytest.mark.asyncio(loop_scope="module")
async def test_a_new_worktree_asks_about_nothing_of_the_users_history_and_a_clone_does(
    name: str, processes: Processes, place: Path
) -> None:
    folder, (script, asked) = make_project(place / f"checkout {name}"), CHECKOUTS[name]
    ended = await run_inside(processes, folder, f"set -e; {script}")
    assert ended.exit_code == 0, ended.captured
    assert [one.path for one in await processes.sift_changes(folder, ended.captured.changed)] == asked


ASKED = {
    "removed by a commit of the command": ("", "git rm -q AGENTS.md; git commit -qm x", ["AGENTS.md"]),
    "made to run": ("", "chmod 755 .claude/a.md", [".claude/a.md"]),
    "folder behind a link": ("", "mkdir x; echo x > x/a.json; ln -s x .cursor", [".cursor"]),
    "written behind a link": ("mkdir x; ln -s x .cursor", "echo x > x/a.json", ["x/a.json"]),
    "link of the user removed": (
        "mkdir x; echo x > x/a; ln -s x .cursor",
        "rm .cursor; echo y > x/a",
        [".cursor", "x/a"],
    ),
    "file behind two links": (
        "mkdir x y; echo 1 > y/s; ln -s ../y/s x/settings.json; ln -s x .cursor",
        "echo x > y/s",
        ["y/s"],
    ),
    "folder behind two links": ("mkdir x y; ln -s ../y x/sub; ln -s x .cursor", "echo x > y/a.md", ["y/a.md"]),
    "folder behind a link that led nowhere": (
        "mkdir x; ln -s x/y .cursor",
        "mkdir x/y; echo x > x/y/a.json",
        ["x/y/a.json"],
    ),
    "words that name what no one may follow": (
        "",
        "echo x > AGENTS.md; echo 'cat: /proc/1/root/x/y: No such file or directory'; exit 1",
        ["AGENTS.md"],
    ),
    "a link that no one may follow": ("", "echo x > AGENTS.md; ln -s /proc/1/cwd .y", [".y", "AGENTS.md"]),
    "a link to itself": ("", "ln -s .x .x", [".x"]),
    "many files behind a link": (
        "mkdir x; touch x/{1000..2200}.md; ln -s x .cursor",
        "for i in {1000..2200}; do echo x > x/$i.md; done",
        [f"x/{n}.md" for n in range(1000, 2201)],
    ),
    "text behind a link": ("ln -s file CLAUDE.md", "echo evil > file", ["file"]),
    "folder in place of a file": ("", "rm AGENTS.md; mkdir AGENTS.md", ["AGENTS.md"]),
    "link in place of a folder": ("", "mv .vscode x; ln -s x .vscode", [".vscode", ".vscode/settings.json"]),
    "name that is no UTF-8": ("", "mkdir .x; echo > .x/$'caf\\xe9.md'", [".x/caf\udce9.md"]),
    "more than one request": (
        "",
        "mkdir .x; for i in {100..350}; do : > .x/$i.md; done",
        [f".x/{n}.md" for n in range(100, 351)],
    ),
}


@pytest.mark.parametrize("name", ASKED)
@pytest.mark.asyncio(loop_scope="module")
async def test_what_is_no_version_of_the_users_is_asked_about_and_restored(
    name: str, processes: Processes, place: Path
) -> None:
    folder = make_project(place / f"asked {name}")
    before, script, expected = ASKED[name]
    await asyncio.to_thread(run_outside, folder, before)
    known = snapshot(folder)
    ended = await run_inside(processes, folder, script)
    asked = await processes.sift_changes(folder, ended.captured.changed)
    assert [one.path for one in asked] == expected
    said = await processes.take_back(folder, asked)
    assert len(said) <= 1, said
    assert {path: text for path, text in snapshot(folder).items() if not path.startswith("x/")} == {
        path: text for path, text in known.items() if not path.startswith("x/")
    }


AWAITED = {
    "file": ("echo evil > deep/zshrc", ["deep/zshrc"]),
    "moved file": ("echo evil > x; mkdir deep; mv x deep/zshrc", ["deep/zshrc"]),
    "folder": ("mkdir -p deep/nvim/lua; echo evil > deep/nvim/lua/x.any", ["deep/nvim/lua/x.any"]),
    "link to a file": ("echo evil > file; ln -s ../file deep/zshrc", ["deep/zshrc"]),
    "link of the folder above": ("echo evil > src/zshrc; rm -rf deep; ln -s src deep", ["deep"]),
    "another name": ("echo ok > deep/other", []),
}


@pytest.mark.parametrize("name", AWAITED)
@pytest.mark.asyncio(loop_scope="module")
async def test_what_comes_where_a_link_of_the_home_folder_leads_is_asked_about_and_taken_back(
    name: str, processes: Processes, place: Path
) -> None:
    folder, own = make_project(place / f"awaited {name}"), place / f"home {name}"
    script, expected = AWAITED[name]
    (own / ".config").mkdir(parents=True)
    (folder / "src").mkdir()
    (own / ".zshrc").symlink_to(folder / "deep" / "zshrc")
    (own / ".config" / "nvim").symlink_to(folder / "deep" / "nvim")
    with home(own):
        ended = await run_inside(processes, folder, f"mkdir -p deep; {script}")
        assert [one.path for one in ended.captured.changed] == expected
        await processes.take_back(folder, ended.captured.changed)
        assert not (own / ".zshrc").exists()
        assert [path for path in (folder / "deep").rglob("*") if path.is_file()] == [folder / "deep" / "other"] * (
            not expected
        )


FORGE = r"""
import os, subprocess, sys, zlib
def git(*words, **given): return subprocess.run(["git", *words], capture_output=True, check=True, **given).stdout
blob = git("hash-object", "-w", "--stdin", input=b"evil\n").strip().decode()
tree, name = git("rev-parse", sys.argv[1]).strip().decode(), sys.argv[2].encode()
raw = git("cat-file", "tree", tree)
place = raw.index(name + b"\0") + len(name) + 1
raw = raw[:place] + bytes.fromhex(blob) + raw[place + 20 :]
path = f".git/objects/{tree[:2]}/{tree[2:]}"
os.remove(path)
open(path, "wb").write(zlib.compress(b"tree %d\0" % len(raw) + raw))
"""
FORGED = {
    "folder": ("python3 f.py HEAD:.vscode settings.json; echo evil > .vscode/settings.json", ".vscode/settings.json"),
    "top": (
        "git switch -qc x; echo evil > AGENTS.md; git commit -qam e; python3 f.py main^{tree} AGENTS.md",
        "AGENTS.md",
    ),
}


@pytest.mark.parametrize("name", FORGED)
@pytest.mark.asyncio(loop_scope="module")
async def test_objects_with_a_forged_name_are_no_history(name: str, processes: Processes, place: Path) -> None:
    folder = make_project(place / f"objects {name}")
    (folder / "f.py").write_text(FORGE, "ascii")
    script, path = FORGED[name]
    ended = await run_inside(processes, folder, f"set -e; {script}")
    assert ended.exit_code == 0, ended.captured
    assert [one.path for one in await processes.sift_changes(folder, ended.captured.changed)] == [path]


@pytest.mark.asyncio(loop_scope="module")
async def test_a_file_that_a_new_link_names_is_not_removed_with_the_link(processes: Processes, place: Path) -> None:
    folder = make_project(place / "named")
    ended = await run_inside(processes, folder, "echo changed > file; ln -s file CLAUDE.md; sleep 0.1")
    assert [one.path for one in ended.captured.changed] == ["CLAUDE.md"]
    await processes.take_back(folder, ended.captured.changed)
    assert ((folder / "file").read_text("ascii"), (folder / "CLAUDE.md").is_symlink()) == ("changed\n", False)


@pytest.mark.asyncio(loop_scope="module")
async def test_a_change_that_the_look_of_a_job_finds_is_asked_about(processes: Processes, place: Path) -> None:
    folder = make_project(place / "beside")
    job = Command(("/bin/bash", "-c", "sleep 60"), folder, timeout=60, sandbox=CONFINED)
    started = await processes.jobs.start(job, "one", "x")
    script = "echo evil > AGENTS.md; touch ready; until [ -e go ]; do sleep 0.02; done"
    command = asyncio.create_task(run_inside(processes, folder, script))
    await poll((folder / "ready").exists)
    await processes.trouble(folder)  # a look, by the first that runs
    (folder / "go").touch()
    assert [one.path for one in (await command).captured.changed] == ["AGENTS.md"]
    await processes.jobs.kill(started.id)


@pytest.mark.asyncio(loop_scope="module")
async def test_all_of_a_large_file_is_kept(processes: Processes, place: Path) -> None:
    folder = make_project(place / "large")
    ended = await run_inside(processes, folder, "head -c 1500000 /dev/zero > LARGE.code-workspace")
    await processes.take_back(folder, ended.captured.changed)
    assert [path.stat().st_size for path in (place / "kept").rglob("LARGE.code-workspace")] == [1_500_000]


@pytest.mark.asyncio(loop_scope="module")
async def test_a_file_that_is_too_large_to_be_restored_cannot_be_changed(processes: Processes, place: Path) -> None:
    folder = make_project(place / "too large")
    size = MOST_CONTENT + 1
    await asyncio.to_thread(
        run_outside, folder, f"git switch -q topic; head -c {size} /dev/zero > AGENTS.md; git commit -qam large"
    )
    await asyncio.to_thread(
        run_outside, folder, f"head -c {size} /dev/zero > .envrc; head -c 3000000 /dev/zero > .x.py"
    )
    script = (
        "echo evil >> .envrc; rm -f .envrc; mv .envrc x; echo evil > y; mv -f y .envrc; sed -i s/./x/ .envrc;"
        " ln -f .envrc z && echo evil >> z; git switch -q main; git status --short; echo evil > .x.py"
    )
    ended = await run_inside(processes, folder, script)
    assert [(one.path, one.restorable) for one in ended.captured.changed if one.path in {".envrc", ".x.py"}] == [
        (".x.py", True)
    ]
    said = await processes.take_back(folder, ended.captured.changed)
    assert [sentence.partition(" ")[0] for sentence in said] == ["What"], said
    output = (ended.captured.head + ended.captured.tail).decode()
    assert ".envrc: Read-only file system" in output
    assert "unable to unlink old 'AGENTS.md': Device or resource busy" in output
    assert " M AGENTS.md" in output
    assert {path.stat().st_size for path in (folder / ".envrc", folder / "AGENTS.md")} == {size}
    assert (folder / ".x.py").read_bytes() == bytes(3_000_000)


@pytest.mark.asyncio(loop_scope="module")
async def test_what_the_user_changes_meanwhile_is_not_undone(processes: Processes, place: Path) -> None:
    folder = make_project(place / "mine")
    await run_inside(processes, folder, "true")
    (folder / "AGENTS.md").write_text("my own words", "ascii")
    await asyncio.to_thread(run_outside, folder, "sleep 0.1; true")
    ended = await run_inside(processes, folder, "echo evil > CLAUDE.md")
    assert [one.path for one in ended.captured.changed] == ["CLAUDE.md"]
    (folder / "CLAUDE.md").write_text("mine since", "ascii")
    said = await processes.take_back(folder, ended.captured.changed)
    assert "was changed again since" in said[0]
    assert (folder / "CLAUDE.md").read_text("ascii") == "mine since"


@pytest.mark.asyncio(loop_scope="module")
async def test_nothing_of_phoenix_is_visible_to_a_command_in_the_folder(processes: Processes, place: Path) -> None:
    folder = place / "seen"
    folder.mkdir()
    (folder / "a.json").write_text("{}", "ascii")
    script = (
        "ls -A; cat *.json; wc -l *; mkdir .vscode && rmdir .vscode;"
        "python3 -c \"import shutil; shutil.copytree('.', '/tmp/copy')\"; cp -r . /tmp/other; ls -A /tmp/copy"
    )
    ended = await run_inside(processes, folder, f"set -e; {script}")
    assert (ended.exit_code, ended.captured.head.decode()) == (0, "a.json\n{}0 a.json\na.json\n")


@pytest.mark.asyncio(loop_scope="module")
async def test_the_next_command_reports_what_a_program_without_a_caller_changed(
    processes: Processes, place: Path
) -> None:
    folder = place / "hook"
    folder.mkdir()
    hook = ServiceCommand(("/bin/bash", "-c", "echo x > AGENTS.md"), folder, sandbox=CONFINED)
    await processes.services.run_program(hook)
    assert [one.path for one in (await run_inside(processes, folder, "true")).captured.changed] == ["AGENTS.md"]
    assert (await run_inside(processes, folder, "true")).captured.changed == ()


@pytest.mark.asyncio(loop_scope="module")
async def test_the_first_that_ends_answers_for_a_change_that_several_may_have_made(
    processes: Processes, place: Path
) -> None:
    folder = place / "first"
    folder.mkdir()
    command = Command(("/bin/bash", "-c", "until [ -e go ]; do sleep 0.02; done"), folder, timeout=60, sandbox=CONFINED)
    job = await processes.jobs.start(command, "one", "x")
    assert [one.path for one in (await run_inside(processes, folder, "echo x > AGENTS.md")).captured.changed] == [
        "AGENTS.md"
    ]
    (folder / "go").touch()
    await poll(lambda: not processes.jobs.jobs("one")[-1].running)
    assert processes.jobs.output(job.id).changed == ()
