"""kill -9 in the middle of a restore: what is left can be finished, and it can be taken back."""

from __future__ import annotations

import asyncio
import shutil
import signal
import sys
from pathlib import Path

import pytest

from engine.rewind.rewind import UNFINISHED, CannotRewind, RewindScope
from tests.support.rewinding import scene, tree

ROOT = Path(__file__).parents[3]


def before(folder: Path) -> None:
    (folder / "kept").mkdir()
    (folder / "kept" / "one.txt").write_text("one\n")
    (folder / "kept" / "two.txt").write_text("two\n")
    (folder / "script.sh").write_text("echo\n")
    (folder / "script.sh").chmod(0o755)
    (folder / "link").symlink_to("kept/one.txt")


def deed(folder: Path) -> None:
    shutil.rmtree(folder / "kept")
    (folder / "kept").write_text("a file now\n")
    (folder / "script.sh").write_text("echo changed\n")
    (folder / "script.sh").chmod(0o644)
    (folder / "link").unlink()
    (folder / "new" / "deep").mkdir(parents=True)
    (folder / "new" / "deep" / "made.txt").write_text("made\n")


@pytest.mark.parametrize("number", [0, 3, 5, 8])
async def test_a_restore_that_was_killed_is_finished_or_taken_back(tmp_path: Path, number: int) -> None:
    async with scene(tmp_path, 1) as it:
        before(it.cwd)
        old = tree(it.cwd)
        conversation = await it.conversation()
        await it.turn(conversation, "first", deed)
        new = tree(it.cwd)
        seq = (await it.rewinding.points(conversation.record)).points[0].seq
    child = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.support.rewind_child",
        str(tmp_path),
        conversation.id,
        str(seq),
        str(number),
        cwd=ROOT,
    )
    async with asyncio.timeout(45):
        assert await child.wait() == -signal.SIGKILL
    halfway = tmp_path / "halfway"
    shutil.copytree(tmp_path / "project", halfway, symlinks=True)

    async with scene(tmp_path) as it:
        opened = await it.engine.open(conversation.id)
        assert (await it.rewinding.points(opened.record)).unfinished > 0
        with pytest.raises(CannotRewind, match=UNFINISHED):
            await it.rewinding.rewind(opened.record, opened.state, seq, RewindScope.FILES)
        done = await it.rewinding.finish(opened.record)
        assert (done.problems, tree(it.cwd)) == ((), old)
        assert (await it.rewinding.points(opened.record)).unfinished == 0
        await it.rewinding.undo(opened.record, opened.state)
        assert tree(it.cwd) == new


@pytest.mark.parametrize("number", [2, 7, 8, 12])
async def test_a_restore_that_was_killed_is_taken_back(tmp_path: Path, number: int) -> None:
    async with scene(tmp_path, 1) as it:
        before(it.cwd)
        conversation = await it.conversation()
        await it.turn(conversation, "first", deed)
        new = tree(it.cwd)
        seq = (await it.rewinding.points(conversation.record)).points[0].seq
    child = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.support.rewind_child",
        str(tmp_path),
        conversation.id,
        str(seq),
        str(number),
        cwd=ROOT,
    )
    async with asyncio.timeout(45):
        assert await child.wait() == -signal.SIGKILL
    async with scene(tmp_path) as it:
        opened = await it.engine.open(conversation.id)
        done = await it.rewinding.finish(opened.record, take_back=True)
        assert (done.problems, tree(it.cwd)) == ((), new)
