"""A network folder that never answers blocks neither a tool, nor a rewind, nor the exit."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

import engine.rewind.snapshots.folders
import engine.rewind.snapshots.work
from engine.ports.files import Coverage, FilesError, FolderSnapshot
from engine.rewind.rewind import NOT_FOUND_OUT, RewindScope
from engine.rewind.snapshots.folders import CheckpointFolders, NoFolders
from engine.rewind.snapshots.walk import FolderWalk
from engine.rewind.turn_recorder import TurnRecorder
from tests.support.rewinding import scene
from tests.support.waiting import PATIENCE

EXIT_WHILE_A_JOB_HANGS = """
import asyncio, os, sys
from engine.rewind.snapshots.folders import Worker

async def main():
    worker, opened = Worker("test"), asyncio.Event()
    loop = asyncio.get_running_loop()
    def hang():
        loop.call_soon_threadsafe(opened.set)
        os.open(sys.argv[1], os.O_RDONLY)
    task = asyncio.create_task(worker.run(hang))
    await opened.wait()
    task.cancel()

asyncio.run(main())
print("left")
"""


class Silent(NoFolders):
    """Folders that stop answering on request."""

    def __init__(self) -> None:
        self.answers = True
        self.asked = asyncio.Event()

    async def knows(self, folder: Path) -> bool:
        return True

    async def look(self, folder: Path, since: str = "") -> FolderSnapshot:
        self.asked.set()
        if not self.answers:
            await asyncio.Event().wait()
        return FolderSnapshot("seen", Coverage())


@pytest.fixture
def fifo(tmp_path: Path) -> Path:
    """A pipe without another end: whoever opens it waits."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    return path


def test_the_interpreter_ends_while_a_folder_is_waited_for(fifo: Path) -> None:
    child = [sys.executable, "-c", EXIT_WHILE_A_JOB_HANGS, str(fifo)]
    ended = subprocess.run(child, capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "left\n", "")


async def test_closing_waits_for_no_look_that_hangs(
    tmp_path: Path, fifo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop, walking = asyncio.get_running_loop(), asyncio.Event()

    class Hanging:
        def __init__(self, *_: object) -> None:
            pass

        def walk(self) -> FolderWalk:
            loop.call_soon_threadsafe(walking.set)
            os.close(os.open(fifo, os.O_RDONLY))
            return FolderWalk({}, frozenset())

    monkeypatch.setattr(engine.rewind.snapshots.work, "Walker", Hanging)
    monkeypatch.setattr(engine.rewind.snapshots.folders, "CLOSING", 0.01)
    folders = CheckpointFolders(tmp_path / "kept" / "contents.db")
    look = asyncio.create_task(folders.look(tmp_path))
    await walking.wait()
    await folders.close()
    assert not look.done()
    with pytest.raises(FilesError, match="closes"):
        await folders.look(tmp_path)
    os.close(os.open(fifo, os.O_WRONLY))  # it answers after all
    await look


async def test_the_keeper_closes_while_the_end_of_a_turn_is_looked_at(tmp_path: Path) -> None:
    async with scene(tmp_path, 1) as it:
        folders = Silent()
        recorder = TurnRecorder(folders, it.store.turn_log, it.rewinding.clock, it.rewinding.ids, closing=0.01)
        conversation = await it.conversation()
        folders.answers = False
        recorder.command_drafted(conversation.record)
        await folders.asked.wait()
        recorder.run_ended(conversation.record)
        before = asyncio.all_tasks()
        await recorder.close()
        assert not [task for task in before if not task.done() and "TurnKeeper" in repr(task)], "nothing is left"


async def test_tools_of_a_run_wait_for_a_folder_that_hangs_once(tmp_path: Path) -> None:
    async with scene(tmp_path, 1) as it:
        folders = Silent()
        folders.answers = False
        recorder = TurnRecorder(folders, it.store.turn_log, it.rewinding.clock, it.rewinding.ids, patience=0.01)
        conversation = await it.conversation()
        await recorder.before_command(conversation.record)
        recorder.patience = 1e9
        async with asyncio.timeout(PATIENCE):
            await recorder.before_command(conversation.record)
        recorder.closing = 0.0
        await recorder.close()


async def test_the_conversation_goes_back_while_its_folder_hangs(tmp_path: Path) -> None:
    async with scene(tmp_path, 1) as it:
        conversation = await it.conversation()
        folders, it.rewinding.recorder.closing = Silent(), 0.0
        it.rewinding.recorder.folders = folders
        it.rewinding.recorder.settling = 0.01
        it.tool.actions.append(lambda _: setattr(folders, "answers", False))
        await conversation.say("first")
        await conversation.wait_idle()
        found = await it.rewinding.points(conversation.record)
        assert [one.text for one in found.points] == ["first"]
        preview = await it.rewinding.preview(conversation.record, found.points[0].seq)
        assert (preview.files, preview.refusal) == ((), NOT_FOUND_OUT)
        done = await it.rewinding.rewind(
            conversation.record, conversation.state, found.points[0].seq, RewindScope.CONVERSATION
        )
        assert done.text == "first"
