"""SECURITY S1, S2: whatever a command builds, git outside runs nothing of it, in any folder.

Each attack is tried twice: without a sandbox, where it must work, or the test would show nothing; and in the sandbox,
after which the user's own git runs at the top and in each folder that the attack is about.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio
from msgspec import Struct
from msgspec.structs import replace

from tests.support.left_behind import ALONE, run_inside, run_outside
from tests.support.outside import folder_outside_temp
from tests.support.waiting import poll
from tools.contract import Command, Sandbox
from tools.files.protected import describe_completed_repository, describe_protection_within
from tools.process.start import Processes, ProcessSettings, start_processes

MONITOR = r"""'[core]\n\trepositoryformatversion = 0\n\tbare = false\n%s\tfsmonitor = "echo > MARK; false"\n'"""
SETTINGS = (
    f"conf() {{ printf {MONITOR} $'\\tworktree = '\"${{2:-.}}\"$'\\n' > \"$1\"; }}\n"
    f'repo() {{ git init -q "$1"; printf {MONITOR} \'\' >> "$1/.git/config"; echo x > "$1/f"; }}\n'
    'bare() { mkdir -p "$1/objects" "$1/refs"; printf \'ref: refs/heads/x\\n\' > "$1/HEAD"; conf "$1/config"; }\n'
    'pack() { git config -f "$1" remote.origin.url .; '
    "git config -f \"$1\" remote.origin.uploadpack 'echo > MARK; false'; }\n"
    'hook() { printf \'#!/bin/sh\\necho > MARK\\n\' > "$1"; chmod 700 "$1"; }\n'
)
SETTINGS += (
    'common() { mkdir "sub/.git/$1"; cp -r sub/.git/objects sub/.git/refs sub/.git/config "sub/.git/$1";\n'
    f'printf {MONITOR} \'\' >> "sub/.git/$1/config"; printf %s "$1" > sub/.git/commondir; }}\n'
)
"""Shell functions of the attacks; MARK is a file outside that shows what ran."""

SHIPPED = "mkdir src; echo x > src/f; bare data; sed -i /worktree/d data/config"
LONG = f"for i in $(seq 25); do mkdir {'d' * 200}; cd {'d' * 200}; done"


class Attack(Struct, frozen=True):
    """One way to have git outside start a program."""

    script: str
    where: tuple[str, ...] = ()
    """Folders below the top in which git runs afterwards."""
    before: str = ""
    """Script for what the repository contained already."""
    first: str = ""
    """A command before, also in the sandbox."""


ATTACKS = {
    "top, HEAD removed": Attack("bare .; rm .git/HEAD"),
    "top, HEAD moved": Attack("bare .; mv .git/HEAD .git/H"),
    "top, HEAD spoiled": Attack("bare .; echo junk > .git/HEAD"),
    "top, HEAD a folder": Attack("bare .; rm .git/HEAD; mkdir .git/HEAD"),
    "top, HEAD a link": Attack("bare .; ln -sfn nowhere .git/HEAD"),
    "top, refs removed": Attack("bare .; rm -rf .git/refs"),
    "top, refs moved": Attack("bare .; mv .git/refs .git/r"),
    "top, refs a file": Attack("bare .; rm -rf .git/refs; echo > .git/refs; chmod 600 .git/refs"),
    "top, objects removed": Attack("bare .; rm -rf .git/objects"),
    "top, objects moved": Attack("bare .; mv .git/objects away"),
    "top, HEAD and commondir": Attack("bare away; mv away/config away/c; printf 'away\\n' > commondir;"
        " printf 'ref: refs/heads/x\\n' > HEAD; pack away/config; rm .git/HEAD"),
    "folder": Attack("bare sub", ("sub",)),
    "node_modules": Attack("bare node_modules/x", ("node_modules/x",)),
    "target": Attack("bare target/debug", ("target/debug",)),
    "venv": Attack("bare venv/lib", ("venv/lib",)),
    ".venv": Attack("bare .venv", (".venv",)),
    ".cache": Attack("bare .cache/x", (".cache/x",)),
    ".tox": Attack("bare .tox", (".tox",)),
    "__pycache__": Attack("bare __pycache__", ("__pycache__",)),
    "behind 3,100 folders": Attack("mkdir a; (cd a; mkdir $(seq 3100)); bare a/3100/x", ("a/3100/x",)),
    "sixty folders deep": Attack(f"mkdir -p {'d/' * 60}; bare {'d/' * 60}x", (f"{'d/' * 60}x",)),
    "inside .hg": Attack("bare .hg/x", (".hg/x",)),
    "odd name": Attack("bare $'a b\\n*'", ("a b\n*",)),
    "refs a link": Attack("bare sub; rmdir sub/refs; ln -s objects sub/refs", ("sub",)),
    "HEAD a link": Attack("bare sub; ln -sf refs/heads/none sub/HEAD", ("sub",)),
    "HEAD detached": Attack("bare sub; echo 4b825dc642cb6eb9a060e54bf8d69288fbee4904 > sub/HEAD", ("sub",)),
    "commondir in a folder": Attack("bare away; rm away/config; mkdir sub; cp away/HEAD sub;"
        " echo ../away > sub/commondir; pack away/config", ("sub",)),
    "built in two commands": Attack("mkdir sub/refs", ("sub",), first="bare sub; rmdir sub/refs"),
    "shipped but for one folder": Attack("mkdir sub/refs", ("sub",), before="bare sub; rmdir sub/refs"),
    "shipped, HEAD made": Attack("echo 'ref: refs/heads/x' > sub/HEAD", ("sub",), before="bare sub; : > sub/HEAD"),
    "shipped, renamed": Attack("mv sub/HEAD~ sub/HEAD", ("sub",), before="bare sub; mv sub/HEAD sub/HEAD~"),
    "shipped, moved to the top": Attack("mv sub/* .; rm .git/HEAD", before="bare sub; rmdir sub/refs; mkdir"
        " sub/refs"),
    "moved from the temporary folder": Attack("bare /tmp/$$x; mv /tmp/$$x sub", ("sub",)),
    "old times": Attack("bare sub; find sub -exec touch -h -d 2001-01-01 {} +", ("sub",)),
    "from an archive": Attack("bare sub; find sub -exec touch -d 2001-01-01 {} +; tar cf t sub; rm -r sub; tar"
        " xpf t", ("sub",)),
    "repository": Attack("repo sub", ("sub",)),
    "repository in node_modules": Attack("repo node_modules/a/b", ("node_modules/a/b",)),
    "submodule of the index": Attack("repo sub; mv sub/.git/config c; git init -q sub; git -C sub add f; git -C"
        " sub commit -qm s;"
        " git add sub 2>/dev/null; mv c sub/.git/config"),
    "pointer": Attack('repo sub; mv sub/.git away; echo "gitdir: $PWD/away" > sub/.git', ("sub",)),
    "relative pointer": Attack("repo sub; mv sub/.git away; echo 'gitdir: ../away' > sub/.git", ("sub",)),
    "pointer into .git": Attack("repo sub; mkdir -p .git/modules; mv sub/.git .git/modules/x;"
        ' echo "gitdir: $PWD/.git/modules/x" > sub/.git', ("sub",)),
    "link": Attack("repo sub; mv sub/.git away; ln -s ../away sub/.git", ("sub",)),
    "link of the folder": Attack("repo real; ln -s real sub", ("sub",)),
    "hard links": Attack("repo away; git init -q sub; rm sub/.git/config; ln away/.git/config"
        " sub/.git/config", ("sub",)),
    "commondir": Attack("repo sub; mkdir other; mv sub/.git/config sub/.git/objects sub/.git/refs other/;"
        " echo ../../other > sub/.git/commondir", ("sub",)),
    "linked worktree": Attack("bare away; rm away/config; git init -q sub; rm -rf sub/.git; mkdir -p"
        " .git/worktrees/w;"
        " cp away/HEAD .git/worktrees/w; echo ../../../away > .git/worktrees/w/commondir; conf away/config ../sub;"
        ' echo "gitdir: $PWD/.git/worktrees/w" > sub/.git', ("sub",)),
    "included settings": Attack("git init -q sub; printf '[include]\\n\\tpath = ../../x\\n' >> sub/.git/config;"
        " conf x ..", ("sub",)),
    "one line": Attack("git init -q sub; printf '[core] fsmonitor = \"echo > MARK; false\"\\n' >>"
        " sub/.git/config", ("sub",)),
    "carriage returns": Attack("repo sub; sed -i 's/$/\\r/' sub/.git/config; sed -i 's/false\"/true;false\"/'"
        " sub/.git/config", ("sub",)),
    "settings of a worktree": Attack("git init -q sub; git -C sub config extensions.worktreeConfig true;"
        " printf '[core]\\n\\tfsmonitor = \"echo > MARK; false\"\\n' > sub/.git/config.worktree", ("sub",)),
    "hook": Attack("git init -q sub; mkdir -p sub/.git/hooks; hook sub/.git/hooks/pre-commit", ("sub",)),
    "hook made to run": Attack("chmod 700 sub/.git/hooks/pre-commit", ("sub",),
        first="", before="git init -q sub; mkdir -p sub/.git/hooks; hook sub/.git/hooks/pre-commit; chmod 600"
        " sub/.git/hooks/*"),
    "folder of hooks": Attack("git init -q sub; mkdir h; hook h/pre-commit; git -C sub config core.hooksPath"
        " ../h", ("sub",)),
    "editor": Attack("git init -q sub; git -C sub config core.editor 'echo > MARK; false'", ("sub",)),
    "external diff": Attack("git init -q sub; echo 1 > sub/f; git -C sub add f; git -C sub commit -qm 1; echo 2 >"
        " sub/f;"
        " git -C sub config diff.external 'echo > MARK; true'", ("sub",)),
    "filter": Attack("git init -q sub; echo '* filter=x' > sub/.gitattributes; git -C sub config filter.x.clean"
        " 'echo > MARK; cat';"
        " echo 1 > sub/f; git -C sub add -N f", ("sub",)),
    "signing program": Attack("git init -q sub; hook sign; git -C sub config commit.gpgsign true; git -C sub"
        " config gpg.program $PWD/sign", ("sub",)),
    "ssh command": Attack("git init -q sub; git -C sub remote add origin ssh://localhost/x; git -C sub config"
        " core.sshCommand 'echo > MARK; false'", ("sub",)),
    "upload pack": Attack("git init -q sub; git -C sub remote add origin $PWD; git -C sub config"
        " remote.origin.uploadpack 'echo > MARK; false'", ("sub",)),
    "closed to its owner": Attack("repo sub; chmod 500 sub sub/.git", ("sub",)),
    "HEAD in capital letters": Attack("bare sub; echo 4B825DC642CB6EB9A060E54BF8D69288FBEE4904 > sub/HEAD", ("sub",)),
    "objects as the reader sees them": Attack("bare sub; mv sub/objects sub/o; ln -s /proc/self/cwd/o sub/objects",
        ("sub",)),
    "folder .GIT": Attack("mkdir .GIT; repo .GIT/x", (".GIT/x",)),
    "inside a .git that is none": Attack("mkdir -p x/.git; repo x/.git/in; ln -s x/.git/in sub", ("sub",)),
    "inside the git folder": Attack("mkdir -p .git/y; repo .git/y/wt; ln -s .git/y/wt sub", ("sub",)),
    "between loose objects": Attack("mkdir -p .git/objects/ab; repo .git/objects/ab/wt; ln -s .git/objects/ab/wt sub",
        ("sub",)),
    "commondir of two lines": Attack("git init -q sub; common $'.\\nx'", ("sub",)),
    "commondir with a blank": Attack("git init -q sub; common '. '", ("sub",)),
    "pointer to a shipped one": Attack("echo 'gitdir: ../data' > src/.git", ("src",), before=SHIPPED),
    "pointer with a null byte": Attack("printf 'gitdir: ../data\\0' > src/.git", ("src",), before=SHIPPED),
    "work tree behind a loop": Attack("ln -s loop loop; git init -q a; git -C a config core.worktree ../../loop;"
        " repo sub", ("sub",)),
    "work tree with a null byte": Attack("git init -q a; printf '\\tworktree = a\\0b\\n' >> a/.git/config; repo sub",
        ("sub",)),
    "path that is too long": Attack(f"repo sub; {LONG}", ("sub",)),
    "path that was too long": Attack("rm -r ddd*", ("sub",), first=f"repo sub; {LONG}"),
    "hooks behind a link that is turned": Attack("ln -sfn h links",
        before="mkdir good h; hook h/pre-commit; ln -s good links; git config core.hooksPath links"),
    "hooks in a folder that becomes a link": Attack("mv a b; ln -s evil a",
        before="mkdir -p a/good evil/good; hook evil/good/pre-commit; ln -s a/good links;"
        " git config core.hooksPath links"),
    "settings behind a link that is turned": Attack("ln -sfn b inc",
        before=f"git config include.path ../inc; : > a; printf {MONITOR} '' > b; ln -s a inc"),
    "pointer through a link that is turned": Attack("ln -sfn b link", ("src",),
        before="mkdir a; git init -q --separate-git-dir=a/g src; bare data; sed -i /worktree/d data/config; mkdir b;"
        " mv data b/g; ln -s a link; echo 'gitdir: ../link/g' > src/.git; echo x > src/f"),
    "commondir through a link that is turned": Attack("ln -sfn b sub/link", ("sub",),
        before="git init -q sub; mkdir sub/a; cp -r sub/.git sub/b; cd sub/.git;"
        f" mv config objects refs ../a/; cd ../..; printf {MONITOR} '' >> sub/b/config;"
        " ln -s a sub/link; echo ../link > sub/.git/commondir"),
    "name that is no UTF-8": Attack("repo $'caf\\xe9'", ("caf\udce9",)),
}  # fmt: skip


def told(script: str, mark: Path) -> str:
    """A script that knows the functions of the attacks."""
    return (SETTINGS + script).replace("MARK", str(mark))


GIT = (
    "git status --short",
    "git diff",
    "git add -A .",
    "git commit -qm x --allow-empty",
    "git log -1",
    "git fetch origin",
    "git stash list",
)
"""Everyday commands of a user."""


def use_git(top: Path, attack: Attack, mark: Path) -> None:
    """Work with git in all folders of an attack, until one command ran what it planted."""
    edits = "core.editor" in attack.script
    words = ("git commit --allow-empty",) if edits else GIT
    ended = f"[ -e {mark} ] && exit"
    each = "".join(f"{word} </dev/null; {ended}; " for word in words)
    script = f'for folder; do ( cd "$folder" || exit; {each} ); {ended}; done'
    folders = [str(top / folder) for folder in (attack.where if edits else ("", *attack.where))]
    given = {name: value for name, value in os.environ.items() if name not in {"GIT_EDITOR", "VISUAL"}} | ALONE
    command = ["bash", "-c", script, "bash", *folders]
    subprocess.run(command, env=given | {"EDITOR": "true"}, capture_output=True, check=False, timeout=60)


def make_project(folder: Path, attack: Attack, mark: Path) -> Path:
    first = folder.parent / "first project"
    if not first.exists():
        first.mkdir()
        run_outside(first, "git init -q .; echo one > file; git add .; git commit -qm one", check=True)
    shutil.copytree(first, folder, symlinks=True)
    if attack.before:  # what is older than the tick of the file system's clock was there before
        run_outside(folder, told(f"{attack.before}; sleep 0.03", mark))
    return folder


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    with folder_outside_temp() as folder:
        yield folder


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def processes() -> AsyncIterator[Processes]:
    started = await start_processes(ProcessSettings())
    if not (await started.probe()).guards_files:
        pytest.skip("no sandbox that guards files on this system")
    yield started
    await started.close()


@pytest.mark.parametrize("name", ATTACKS)
@pytest.mark.asyncio(loop_scope="module")
async def test_git_outside_runs_nothing_that_a_command_built(name: str, processes: Processes, place: Path) -> None:
    attack, number = ATTACKS[name], list(ATTACKS).index(name)
    mark = place / f"mark{number}"
    free = make_project(place / f"free{number}", attack, mark)
    await asyncio.to_thread(run_outside, free, told(f"{attack.first}\n{attack.script}", mark))
    await asyncio.to_thread(use_git, free, attack, mark)
    assert mark.exists(), "the attack does not work without a sandbox"
    mark.unlink()
    held = make_project(place / f"held{number}", attack, mark)
    if attack.first:
        await run_inside(processes, held, told(attack.first, mark))
    ended = await run_inside(processes, held, told(attack.script, mark))
    await asyncio.to_thread(use_git, held, attack, mark)
    assert not mark.exists(), (ended.captured, list(held.iterdir()))


OTHERS = {
    "Mercurial": ("mkdir .hg; printf '[hooks]\\nstatus = evil\\n' > .hg/hgrc", ".hg/hgrc"),
    "Mercurial, shared": ("mkdir -p sub/.hg; echo ../x > sub/.hg/sharedpath", "sub/.hg/sharedpath"),
    "Jujutsu": ("mkdir -p .jj/repo; echo 'ui.pager = \"evil\"' > .jj/repo/config.toml", ".jj/repo/config.toml"),
    "Darcs": (
        "mkdir -p a/_darcs/prefs; echo 'status posthook evil' > a/_darcs/prefs/defaults",
        "a/_darcs/prefs/defaults",
    ),
    "Pijul": ("mkdir -p a/.pijul; echo 'record = [\"evil\"]' > a/.pijul/config", "a/.pijul/config"),
    "Mercurial, behind a link": ("mkdir h; echo '[hooks]' > h/hgrc; ln -s h .hg", ".hg"),
    "Breezy": ("mkdir -p .bzr/branch; echo 'post_commit = evil' > .bzr/branch/branch.conf", ".bzr/branch/branch.conf"),
}


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.asyncio(loop_scope="module")
async def test_settings_of_other_version_systems_are_set_aside(name: str, processes: Processes, place: Path) -> None:
    script, path = OTHERS[name]
    folder = place / f"other {name}"
    folder.mkdir()
    ended = await run_inside(processes, folder, told(script, place / "mark"))
    assert not (folder / path).exists()
    assert any(path in note for note in ended.captured.notes)


STOPPED = {
    "list with a program": ("printf 'x\\tevil\\n' > .git/rebase-merge/git-rebase-todo", "git-rebase-todo"),
    "long list": ("head -c 300000 /dev/zero > .git/rebase-merge/git-rebase-todo", "git-rebase-todo"),
    "strategy that is a path": ("echo ../../evil > .git/rebase-merge/strategy", "strategy"),
    "options of a cherry-pick": (
        "mkdir .git/sequencer; printf '[options]\\n\\tstrategy = ../../evil\\n' > .git/sequencer/opts",
        "opts",
    ),
}


@pytest.mark.parametrize("name", STOPPED)
@pytest.mark.asyncio(loop_scope="module")
async def test_what_continuing_would_run_is_set_aside(name: str, processes: Processes, place: Path) -> None:
    script, file = STOPPED[name]
    folder = make_project(place / f"stopped {name}", Attack(""), place / "mark")
    ended = await run_inside(processes, folder, told(f"mkdir .git/rebase-merge; {script}", place / "mark"))
    assert f"{file} was renamed" in ended.captured.notes[0]


HARMLESS = {
    "init": "git init -q sub; git -C sub commit -q --allow-empty -m x; git -C sub status",
    "clone": "git clone -q . sub; git -C sub log -1",
    "shared clone": "git clone -q --shared . sub; git -C sub log -1",
    "bare clone": "git clone -q --bare . sub.git; git -C sub.git log -1",
    "sparse clone": "git clone -q --sparse . sub; git -C sub sparse-checkout set x",
    "remote": "git init -q sub; git -C sub remote add origin https://localhost/x; git -C sub config user.name a",
    "worktree setting": "git init -q --separate-git-dir=away sub; git -C sub commit -q --allow-empty -m x",
    "submodule": "git init -q a; git -C a commit -q --allow-empty -m x; git -c protocol.file.allow=always clone -q a b",
    "rebase": "echo 2 > file; git commit -qam 2; git rebase -q --exec true HEAD~1",
    "removed": "git init -q sub; rm -rf sub",
}


@pytest.mark.parametrize("name", HARMLESS)
@pytest.mark.asyncio(loop_scope="module")
async def test_what_git_itself_makes_stays(name: str, processes: Processes, place: Path) -> None:
    folder = make_project(place / f"fine {name}", Attack(""), place / "mark")
    ended = await run_inside(processes, folder, told(f"set -e; {HARMLESS[name]}", place / "mark"))
    assert (ended.exit_code, ended.captured.notes) == (0, ())
    assert not list(folder.rglob("*set-aside*"))


@pytest.mark.asyncio(loop_scope="module")
async def test_what_the_user_had_before_stays(processes: Processes, place: Path) -> None:
    mark = place / "mark"
    mine = "git init -q sub; mkdir -p sub/.git/hooks; hook sub/.git/hooks/pre-commit; bare old; repo node_modules/x"
    folder = make_project(place / "mine", Attack("", before=mine), mark)
    for script in ("echo x > new", "echo y > sub/new; echo z > old/new; touch node_modules/x/y"):
        ended = await run_inside(processes, folder, told(script, mark))
        assert ended.captured.notes == ()
    await asyncio.to_thread(
        run_outside, folder, told("git init -q later; hook later/.git/hooks/pre-commit || true; sleep 0.1", mark)
    )
    ended = await run_inside(processes, folder, told("echo x > newer", mark))
    assert ended.captured.notes == ()
    assert "fsmonitor" in (folder / "old/config").read_text("ascii")
    assert (folder / "sub/.git/hooks/pre-commit").exists()


@pytest.mark.asyncio(loop_scope="module")
async def test_what_a_running_job_plants_is_set_aside_before_a_program_starts_outside(
    processes: Processes, place: Path
) -> None:
    mark = place / "late"
    folder = make_project(place / "job", Attack(""), mark)
    script = "until [ -e go ]; do sleep 0.02; done; repo sub; touch done; sleep 60"
    job = asyncio.create_task(run_inside(processes, folder, told(script, mark)))
    await poll((folder / ".git/commondir").exists)
    (folder / "go").touch()
    await poll((folder / "done").exists)
    outside = Command(("/bin/bash", "-c", "git -C sub status"), folder, timeout=60, environment=ALONE)
    with pytest.raises(OSError, match="a command that still runs"):
        await processes.runner.run(outside)
    assert not (folder / "sub/.git/config").exists()
    await processes.runner.run(replace(outside, sandbox=Sandbox(unseen=True)))
    assert not mark.exists()
    job.cancel()
    await asyncio.wait({job})


@pytest.mark.asyncio(loop_scope="module")
async def test_what_a_long_command_plants_is_set_aside_while_it_runs(
    processes: Processes, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tools.process.supervision.WATCH_PAUSE", 0.05)
    folder = make_project(place / "long", Attack(""), place / "mark")
    script = "repo sub; until [ ! -e sub/.git/config ]; do sleep 0.02; done; echo gone"
    ended = await run_inside(processes, folder, told(script, place / "mark"))
    assert ended.captured.head.endswith(b"gone\n")
    assert "sub/.git/config was renamed" in ended.captured.notes[0]


@pytest.mark.asyncio(loop_scope="module")
async def test_a_look_that_is_cut_short_says_so_and_keeps_programs_inside(
    processes: Processes, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mark = place / "mark"
    folder = make_project(place / "cut", Attack(""), mark)
    watch = processes.planner.watch
    monkeypatch.setattr(watch, "_limit", -1.0)
    ended = await run_inside(processes, folder, told("repo sub", mark))
    assert "could not be finished: it took too long" in ended.captured.notes[-1]
    assert "could not be finished" in await processes.trouble(folder)
    outside = Command(("/bin/bash", "-c", "git -C sub status"), folder, timeout=60, environment=ALONE)
    with pytest.raises(OSError, match="not started outside the sandbox"):
        await processes.runner.run(outside)
    monkeypatch.undo()
    assert await processes.trouble(folder) == "", "the next look is finished, and sets aside what it finds"
    assert not (folder / "sub/.git/config").exists()
    ended = await run_inside(processes, folder, told("true", mark))
    assert "sub/.git/config was renamed" in ended.captured.notes[0]


@pytest.mark.asyncio(loop_scope="module")
async def test_a_helper_that_died_forgives_nothing(
    processes: Processes, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, mark = make_project(place / "died", Attack(""), place / "mark"), place / "mark"
    watch = processes.planner.watch
    await run_inside(processes, folder, told("true", mark))
    monkeypatch.setattr(watch.helper, "_timeout", 0.0)
    ended = await run_inside(processes, folder, told("repo sub", mark))
    assert "its helper process failed" in ended.captured.notes[-1]
    monkeypatch.undo()
    ended = await run_inside(processes, folder, told("true", mark))
    assert "sub/.git/config was renamed" in ended.captured.notes[0]
    assert await processes.trouble(folder) == ""


WRITES = {
    "bare repository, HEAD last": (("x/objects/a", "x/refs/a"), "x/HEAD"),
    "bare repository, refs last": (("x/HEAD", "x/objects/a"), "x/refs/heads/a"),
    "HEAD and commondir": (("x/HEAD",), "x/commondir"),
    "settings of one that is there": (("x/HEAD", "x/objects/a", "x/refs/a"), "x/config"),
    "hook of one that is there": (("x/HEAD", "x/objects/a", "x/refs/a"), "x/hooks/pre-commit"),
    "at the top": (("HEAD", "objects/a"), "refs/a"),
}


@pytest.mark.parametrize("name", WRITES)
def test_a_file_that_completes_a_repository_is_protected(name: str, tmp_path: Path) -> None:
    written, last = WRITES[name]
    for path in written:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).touch()
    assert describe_protection_within(tmp_path / last, tmp_path, Path("/nowhere"))


@pytest.mark.parametrize("path", ["config", "src/config/x.py", "hooks/useThing.ts", "objects/a", "HEAD", "info/x"])
def test_names_that_git_also_uses_are_ordinary_elsewhere(path: str, tmp_path: Path) -> None:
    (tmp_path / "refs").mkdir()
    assert describe_completed_repository(tmp_path / path, tmp_path) == ""


@pytest.mark.parametrize("name", ["remotes", "branches"])
async def test_addresses_of_old_that_a_command_made_are_set_aside(processes: Processes, place: Path, name: str) -> None:
    top = place / f"address in {name}"
    run_outside(place, f"git init -q '{top}'; mkdir '{top}/.git/branches'; sleep 0.03")
    script = f"git init -q sub; mkdir -p .git/{name} sub/.git/{name}; echo URL: /evil > sub/.git/{name}/origin"
    ended = await run_inside(processes, top, f"{script}; cp sub/.git/{name}/origin .git/{name}")
    said = [f"{folder}.git/{name} was renamed" for folder in (("", "sub/") if name == "remotes" else ("sub/",))]
    assert sorted(note.partition(" to ")[0] for note in ended.captured.notes) == said
    assert run_outside(top, "git ls-remote origin; git -C sub ls-remote origin").count("fatal: 'origin' does not") == 2


async def test_a_link_into_the_private_folder_of_the_sandbox_is_removed(processes: Processes, place: Path) -> None:
    top, mark = place / "linked into private", place / "mark linked"
    make_project(top, Attack(""), mark)
    script = (
        """real=$(awk '$5 == "/tmp" {print $4}' /proc/self/mountinfo | tail -1); repo /tmp/src; ln -s $real/src src"""
    )
    ended = await run_inside(processes, top, told(f"{script}; ln -s /tmp/src within; ls src/f", mark))
    assert [note.partition(" to ")[0] for note in ended.captured.notes] == ["the link src"], ended.captured
    assert (top / "within").is_symlink(), "outside it leads to another folder"


async def test_settings_that_a_program_outside_replaced_are_looked_at(processes: Processes, place: Path) -> None:
    mark, top = place / "mark replaced", place / "replaced"
    make_project(top, Attack(""), mark)
    planting = f"{MONITOR.replace('MARK', str(mark))} ''"
    trying = f"until (printf {planting} >> .git/config) 2> /dev/null; do sleep 0.05; done"
    job = asyncio.create_task(run_inside(processes, top, f"echo > begun; {trying}"))
    await poll((top / "begun").exists)
    await asyncio.to_thread(run_outside, top, "git config branch.x.remote y")
    ended = await job
    assert [note.partition(" to ")[0] for note in ended.captured.notes] == [".git/config was renamed"]
    await asyncio.to_thread(use_git, top, Attack(""), mark)
    assert not mark.exists()
    assert "file" in run_outside(top, "git ls-files"), "the settings of before are there again"
