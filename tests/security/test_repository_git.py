"""SECURITY V2: nothing in a repository decides what runs when Phoenix itself looks at it, and the diff stays right."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from phoenix_tui.features.changes import find_uncommitted
from phoenix_tui.widgets.completions import FileIndex
from tests.support.plain_runner import PlainRunner
from tools.contract import Command, Finished, ProcessRunner
from tools.git import repository
from tools.git.repository import find_repository
from tools.process.start import ProcessSettings, start_processes

HOOKS = re.findall(
    r"[a-z0-9-]+",
    "applypatch-msg pre-applypatch post-applypatch pre-commit pre-merge-commit prepare-commit-msg commit-msg "
    "post-commit pre-rebase post-checkout post-merge pre-push pre-receive update proc-receive post-receive post-update "
    "reference-transaction push-to-checkout pre-auto-gc post-rewrite sendemail-validate fsmonitor-watchman "
    "p4-changelist p4-prepare-changelist p4-post-changelist p4-pre-submit post-index-change query-watchman",
)
NOT_LISTED = re.findall(
    r"\S+",
    "filter.planted.clean filter.planted.smudge filter.planted.process diff.planted.command diff.planted.textconv "
    "merge.planted.driver alias.diff alias.ls-files alias.config pager.diff pager.ls-files core.alternateRefsCommand "
    "difftool.planted.cmd trailer.planted.command uploadpack.packObjectsHook remote.origin.vcs hook.planted.command "
    "credential.helper core.gitProxy core.askPass remote.origin.url remote.origin.partialclonefilter",
)


def git(folder: Path, *arguments: str) -> None:
    mine = {"HOME": str(folder.parent), "GIT_CONFIG_NOSYSTEM": "1", "PATH": os.environ["PATH"]}
    who = ("-c", "user.name=n", "-c", "user.email=e", "-c", "init.defaultBranch=main")
    subprocess.run(("git", *who, *arguments), cwd=folder, env=mine, check=True, capture_output=True)


def keys() -> list[str]:
    """Every key that this git knows, with a name for each placeholder, and those that its list leaves out."""
    listed = subprocess.run(("git", "help", "-c"), capture_output=True, text=True, check=True).stdout.split("\n")
    named = [re.sub(r"<[^>]*>|\*", "planted", key).strip() for key in listed]
    return sorted({key for key in (*named, *NOT_LISTED) if re.fullmatch(r"[\w-]+(\.\S+)?\.[\w-]+", key)})


def as_config(values: dict[str, str]) -> str:
    lines: list[str] = []
    for key, value in values.items():
        section, _, name = key.rpartition(".")
        group, _, inner = section.partition(".")
        lines += [f'[{group} "{inner}"]' if inner else f"[{group}]", f'\t{name} = "{value}"']
    return "\n".join(lines) + "\n"


@pytest.fixture(params=["plain", "sandboxed"])
async def runner(request: pytest.FixtureRequest) -> AsyncIterator[ProcessRunner]:
    if request.param == "plain":
        yield PlainRunner()
        return
    processes = await start_processes(ProcessSettings(environment=dict(os.environ)))
    yield processes.runner
    await processes.close()


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A repository with a changed file, a new one, an ignored one and a submodule."""
    folder = tmp_path / "work"
    (folder / "below").mkdir(parents=True)
    git(folder, "init", "-q")
    for name in ("changed", "below/same", "gone"):
        (folder / name).write_text("one\ntwo\n", "ascii")
    (folder / ".gitignore").write_text("ignored\n", "ascii")
    inner = folder / "module"
    inner.mkdir()
    git(inner, "init", "-q")
    (inner / "file").write_text("1\n", "ascii")
    git(inner, "add", ".")
    git(inner, "commit", "-qm", "inner")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "first")
    (folder / "changed").write_text("one\n2\n", "ascii")
    (folder / "gone").unlink()
    (folder / "below/new").write_text("new\n", "ascii")
    (folder / "ignored").write_text("x\n", "ascii")
    (inner / "file").write_text("2\n", "ascii")
    return folder


RIGHT = [("below/new", 1, 0, True), ("changed", 1, 1, False), ("gone", 0, 2, False)]


async def shown(runner: ProcessRunner, folder: Path) -> list[tuple[str, int, int, bool]]:
    found = await find_uncommitted(runner, folder)
    assert found is not None
    ours = {".gitattributes", "below/.gitattributes", "hooks/x"}
    return [(one.path, one.added, one.removed, one.created) for one in found.files if one.path not in ours]


def plant(work: Path, where: str, values: dict[str, str]) -> None:
    """Put a configuration where git would read it."""
    text, folder = as_config(values), work / ".git"
    config = folder / "config"
    before = config.read_text("utf-8")
    match where:
        case "config":
            config.write_text(before + text, "utf-8")
        case "config.worktree":
            version = before.replace("repositoryformatversion = 0", "repositoryformatversion = 1")
            config.write_text(f"{version}[extensions]\n\tworktreeConfig = true\n", "utf-8")
            (folder / "config.worktree").write_text(text, "utf-8")
        case "included":
            (work.parent / "included").write_text(text, "utf-8")
            config.write_text(f'{before}[include]\n\tpath = "{work.parent}/included"\n', "utf-8")
        case _:
            (folder / "elsewhere").write_text(f'[includeIf "gitdir:**"]\n\tpath = "{work.parent}/included"\n', "utf-8")
            (work.parent / "included").write_text(text, "utf-8")
            config.write_text(f"{before}[include]\n\tpath = elsewhere\n", "utf-8")
    module = work / "module" / ".git" / "config"  # git reads a submodule's format, and a false one stops it
    valid = {key: value for key, value in values.items() if key in {*NOT_LISTED, "core.fsmonitor", "core.hooksPath"}}
    module.write_text(module.read_text("utf-8") + as_config(valid), "utf-8")
    (work / "module" / ".gitattributes").write_text("* filter=planted diff=planted\n", "ascii")


@pytest.mark.parametrize("where", ["config", "config.worktree", "included", "included twice"])
async def test_no_key_of_any_configuration_runs_or_breaks_anything(
    where: str, work: Path, runner: ProcessRunner
) -> None:
    program, mark = work.parent / "program", work.parent / "mark"
    program.write_text(f"#!/bin/sh\necho $0 $* >> {mark}\ncat\n", "ascii")
    program.chmod(0o755)
    for name in HOOKS:
        hook = work / ".git" / "hooks" / name
        hook.write_text(program.read_text("ascii"), "ascii")
        hook.chmod(0o755)
    for place in (".gitattributes", "below/.gitattributes", ".git/info/attributes"):
        attributes = "* filter=planted diff=planted merge=planted text\n"
        (work / place).parent.mkdir(exist_ok=True)
        (work / place).write_text(attributes, "ascii")
    plant(work, where, {key: str(program) for key in keys()})
    (work / "below/same").write_text("one\ntwo\n", "ascii")
    assert await shown(runner, work) == RIGHT
    assert not mark.exists(), mark.read_text("utf-8")


async def test_completion_starts_no_program(work: Path) -> None:
    index = FileIndex(work)
    await index.refresh()
    names = {one.text.removeprefix("@") for one in await index.completions("")} | {
        one.text.removeprefix("@") for one in await index.completions("new")
    }
    assert "below/new" in names
    assert "ignored" not in names


class Recording:
    """Passes commands on and keeps them."""

    def __init__(self) -> None:
        self.commands: list[Command] = []

    async def run(self, command: Command, report: object = None) -> Finished:
        self.commands.append(command)
        return await PlainRunner().run(command)


async def test_every_git_runs_as_a_helper_with_a_folder_of_phoenix(work: Path) -> None:
    recording = Recording()
    assert await find_uncommitted(recording, work) is not None
    own = str(Path(repository.__file__).parent / "empty" / "sha1")
    assert {command.environment["GIT_DIR"] for command in recording.commands} == {own}
    assert all(not command.sandbox.network for command in recording.commands)
    assert all(command.timeout and command.keep_head <= 4 * 1024 * 1024 for command in recording.commands)


@pytest.mark.parametrize("value", ["core.fileMode=false", "core.autocrlf=input"])
async def test_settings_of_comparing_still_count(value: str, work: Path, runner: ProcessRunner) -> None:
    git(work, "config", *value.split("="))
    (work / "below/same").chmod(0o755)
    if "autocrlf" in value:
        git(work, "config", "core.fileMode", "false")
        (work / "below/same").write_bytes(b"one\r\ntwo\r\n")
    assert await shown(runner, work) == RIGHT


async def test_linked_worktrees_packed_references_and_sha256_are_read(tmp_path: Path, work: Path) -> None:
    git(work, "pack-refs", "--all")
    assert await shown(PlainRunner(), work) == RIGHT
    git(work, "worktree", "add", "-q", str(tmp_path / "linked"))
    (tmp_path / "linked" / "changed").write_text("one\n3\n", "ascii")
    assert await shown(PlainRunner(), tmp_path / "linked") == [("changed", 1, 1, False)]
    longer = tmp_path / "longer"
    longer.mkdir()
    git(longer, "init", "-q", "--object-format=sha256")
    (longer / "file").write_text("1\n", "ascii")
    git(longer, "add", ".")
    git(longer, "commit", "-qm", "first")
    (longer / "file").write_text("2\n", "ascii")
    assert await shown(PlainRunner(), longer) == [("file", 1, 1, False)]


@pytest.mark.parametrize(
    "name", ["HEAD", "commondir", "config", "packed-refs", "info/exclude", "refs/heads/main", "index"]
)
@pytest.mark.parametrize("kind", ["pipe", "device", "folder", "huge", "bytes", "loop"])
async def test_odd_files_in_the_git_folder_hold_nothing_up(name: str, kind: str, work: Path) -> None:
    path = work / ".git" / name
    path.unlink(missing_ok=True)
    match kind:
        case "pipe":
            os.mkfifo(path)
        case "device":
            path.symlink_to("/dev/zero")
        case "folder":
            path.mkdir()
        case "huge":
            path.write_bytes(b"ref: refs/heads/x\n" * 100_000)
        case "bytes":
            path.write_bytes(b"ref: refs/heads/\xff\0../..\n\xfe")
        case _:
            path.symlink_to(path.name)
    if name == "index" and kind in {"pipe", "device"}:
        return  # git reads it itself, within its time limit
    found = find_repository(work)
    assert found is None or found.worktree == work


@pytest.mark.parametrize("said", [b"ref: ../../outside", b"ref: refs/../../../outside", b"ref: /etc/passwd", b"ref: a"])
def test_a_reference_leads_nowhere_else(said: bytes, work: Path) -> None:
    (work.parent / "outside").write_text("a" * 40, "ascii")
    (work / ".git" / "HEAD").write_bytes(said)
    found = find_repository(work)
    assert found is None or (found.worktree, found.head) == (work, "")


def test_a_folder_that_is_itself_a_bare_repository_is_none(tmp_path: Path) -> None:
    bare = tmp_path / "bare"
    bare.mkdir()
    git(bare, "init", "-q", "--bare")
    found = find_repository(bare)
    assert found is None or found.worktree != bare


async def test_tables_of_references_are_said(work: Path) -> None:
    (work / ".git" / "reftable").mkdir()
    found = await find_uncommitted(PlainRunner(), work)
    assert found is not None
    assert "reftable" in found.note
