"""Cost of checkpoints: no copy before a tool could change something, an edit copies its file alone, all is bounded."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from random import Random

import pytest

from engine.conversation import Conversation
from engine.ports import ConversationChanges
from engine.ports.files import CheckpointLimits, StepKind
from engine.records import PermissionMode
from engine.rewind.rewind import NOT_KEPT, RewindScope
from tests.support.rewinding import Scene, scene, tree


def database(it: Scene) -> Path:
    return it.home / "data" / "checkpoints" / "contents.db"


def count(it: Scene) -> int:
    kept = sqlite3.connect(database(it))
    try:
        return int(kept.execute("SELECT COUNT(*) FROM contents").fetchone()[0])
    finally:
        kept.close()


def fill(folder: Path, files: int = 30) -> None:
    for number in range(files):
        (folder / f"{number}.txt").write_text(f"{number} " * 100)


async def last(it: Scene, conversation: Conversation) -> int:
    return (await it.rewinding.points(conversation.record)).points[0].seq


@pytest.mark.parametrize("mode", [PermissionMode.DENY, PermissionMode.PLAN])
async def test_a_run_whose_tools_are_refused_copies_nothing(tmp_path: Path, mode: PermissionMode) -> None:
    async with scene(tmp_path, "ce") as it:
        fill(it.cwd)
        conversation = await it.conversation()
        await it.engine.change(conversation.id, ConversationChanges(permission_mode=mode))
        it.editor.edits.append(("0.txt", "new"))
        await it.turn(conversation, "hello")
        assert (it.cwd / "0.txt").read_text() == "0 " * 100
        assert not database(it).exists()


async def test_a_run_with_tools_that_read_copies_nothing(tmp_path: Path) -> None:
    async with scene(tmp_path, "rr", "") as it:
        fill(it.cwd)
        conversation = await it.conversation()
        await it.turn(conversation, "hello")
        await it.turn(conversation, "and again")
        assert not database(it).exists()
        assert await it.store.turn_log.steps(conversation.id) == []


@pytest.mark.parametrize("command", ["ls -la", "git status", "cat 0.txt"])
async def test_a_command_that_only_reads_copies_nothing(tmp_path: Path, command: str) -> None:
    async with scene(tmp_path, "c") as it:
        fill(it.cwd)
        it.tool.command = command
        conversation = await it.conversation()
        await it.turn(conversation, "look", lambda _: None)
        assert not database(it).exists()


@pytest.mark.parametrize("command", ["ls > out", "git log --output=x", "sort -o a b", "ls; rm x", ""])
async def test_a_command_that_may_write_is_covered(tmp_path: Path, command: str) -> None:
    async with scene(tmp_path, "c") as it:
        fill(it.cwd)
        it.tool.command = command
        conversation = await it.conversation()
        await it.turn(conversation, "do", lambda folder: (folder / "0.txt").unlink())
        await it.rewinding.rewind(
            conversation.record, conversation.state, await last(it, conversation), RewindScope.FILES
        )
        assert (it.cwd / "0.txt").read_text() == "0 " * 100


async def test_an_edit_copies_its_own_file_alone_and_brings_it_back(tmp_path: Path) -> None:
    async with scene(tmp_path, "ee") as it:
        fill(it.cwd)
        before = tree(it.cwd)
        conversation = await it.conversation()
        it.editor.edits += [("3.txt", "new"), ("made/deep/new.txt", "new")]
        await it.turn(conversation, "edit")
        assert count(it) == 2, "as it was and as it became"
        await it.rewinding.rewind(
            conversation.record, conversation.state, await last(it, conversation), RewindScope.FILES
        )
        assert tree(it.cwd) == before, "the folders that were made for the new file are gone as well"


async def test_an_edit_in_an_ignored_folder_comes_back(tmp_path: Path) -> None:
    async with scene(tmp_path, "ce") as it:
        (it.cwd / ".gitignore").write_text("build/\n")
        (it.cwd / "build").mkdir()
        (it.cwd / "build" / "config.json").write_text("old")
        conversation = await it.conversation()
        it.editor.edits.append(("build/config.json", "new"))
        await it.turn(conversation, "edit", lambda _: None)
        await it.rewinding.rewind(
            conversation.record, conversation.state, await last(it, conversation), RewindScope.FILES
        )
        assert (it.cwd / "build" / "config.json").read_text() == "old"


async def test_a_folder_that_is_too_large_to_look_at_still_brings_edits_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.rewind.snapshots.walk.MOST_ENTRIES", 10)
    async with scene(tmp_path, "ec") as it:
        fill(it.cwd)
        conversation = await it.conversation()
        it.editor.edits.append(("3.txt", "new"))
        await it.turn(conversation, "edit", lambda folder: (folder / "4.txt").unlink())
        preview = await it.rewinding.preview(conversation.record, await last(it, conversation))
        assert [one.change.name for one in preview.files] == ["3.txt"]
        assert "only files edited by tools are restored" in preview.coverage.refusal


async def test_a_turn_that_a_crash_cut_off_behind_an_edit_still_brings_it_back(tmp_path: Path) -> None:
    async with scene(tmp_path) as it:
        fill(it.cwd)
        conversation = await it.conversation()
        await it.rewinding.recorder.before_edit(conversation.record, [it.cwd / "3.txt"])
        (it.cwd / "3.txt").write_text("half")
        it.rewinding.recorder.begun.clear()  # as a new process finds it
        await it.rewinding.recorder.settle(conversation.id)
        (step,) = await it.store.turn_log.steps(conversation.id)
        assert [(one.name, one.before is not None) for one in step.changes] == [("3.txt", True)]


async def test_an_open_step_counts_as_no_change(tmp_path: Path) -> None:
    async with scene(tmp_path) as it:
        fill(it.cwd)
        conversation = await it.conversation()
        await it.rewinding.recorder.before_edit(conversation.record, [it.cwd / "3.txt"])
        changed = await it.rewinding.read_changes(conversation.record)
        assert changed.files == ()


async def test_small_files_come_first_where_a_folder_has_more_than_its_share(tmp_path: Path) -> None:
    async with scene(tmp_path, "c", limits=CheckpointLimits(10_000, 40_000)) as it:
        (it.cwd / "a-data.bin").write_bytes(b"1" * 9_000)
        (it.cwd / "b-data.bin").write_bytes(b"2" * 9_500)
        (it.cwd / "huge.bin").write_bytes(b"3" * 10_001)
        (it.cwd / "source.py").write_text("old")
        (it.cwd / ".env").write_text("KEY=1")
        conversation = await it.conversation()
        await it.turn(conversation, "all", emptied)
        (step,) = await it.store.turn_log.steps(conversation.id)
        kept = {one.name: one.before.kept for one in step.changes if one.before is not None}
        assert kept == {
            "a-data.bin": True,
            "b-data.bin": False,
            "huge.bin": False,
            "source.py": True,
            ".env": False,
        }
        coverage = step.coverage
        assert (coverage.too_large, coverage.secret, coverage.over) == (("huge.bin",), (".env",), 1)


async def test_a_file_without_room_is_no_change_once_there_is_room(tmp_path: Path) -> None:
    async with scene(tmp_path, "c", limits=CheckpointLimits(10_000, 40_000)) as it:
        (it.cwd / "a.bin").write_bytes(b"1" * 9_000)
        (it.cwd / "b.bin").write_bytes(b"2" * 9_500)
        conversation = await it.conversation()
        await it.turn(conversation, "remove", lambda folder: (folder / "a.bin").unlink())
        (step,) = await it.store.turn_log.steps(conversation.id)
        assert [one.name for one in step.changes] == ["a.bin"]


async def test_the_oldest_goes_first_above_the_limit_and_the_preview_says_so(tmp_path: Path) -> None:
    limits = CheckpointLimits(1_000_000, 2_000_000)
    async with scene(tmp_path, *"c" * 12, limits=limits) as it:
        conversation = await it.conversation()
        for turn in range(12):
            await it.turn(conversation, str(turn), partial(write_data, noise(turn)))
            await it.rewinding.folders.tidy()
        while await it.rewinding.folders.tidy():
            pass
        assert database(it).stat().st_size <= limits.total
        points = (await it.rewinding.points(conversation.record)).points
        newest = await it.rewinding.preview(conversation.record, points[0].seq)
        oldest = await it.rewinding.preview(conversation.record, points[-2].seq)
        assert [(one.possible, one.conflict) for one in newest.files] == [(True, "")]
        assert [(one.possible, one.conflict) for one in oldest.files] == [(False, NOT_KEPT)]
        assert [one.kind for one in await it.store.turn_log.steps(conversation.id)] == [StepKind.TURN] * 12


async def test_a_deleted_folder_that_was_never_copied_is_named(tmp_path: Path) -> None:
    async with scene(tmp_path, "c") as it:
        for name in ("node_modules", "build", "stays", "__pycache__"):
            (it.cwd / name).mkdir()
            (it.cwd / name / "file").write_text("text")
        (it.cwd / ".gitignore").write_text("build/\nstays/\n")
        conversation = await it.conversation()
        gone = ("node_modules", "build", "__pycache__")
        await it.turn(conversation, "clean", partial(without, gone))
        (point,) = (await it.rewinding.points(conversation.record)).points
        assert point.coverage.gone == ("build", "node_modules")


def emptied(folder: Path) -> None:
    shutil.rmtree(folder)
    folder.mkdir()


def write_data(data: bytes, folder: Path) -> None:
    (folder / "data").write_bytes(data)


def without(names: Sequence[str], folder: Path) -> None:
    for name in names:
        shutil.rmtree(folder / name)


def noise(turn: int) -> bytes:
    """450 kB that nothing packs."""
    return Random(turn).randbytes(450_000)
