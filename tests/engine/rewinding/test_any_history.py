"""Rewinding of any history, killed at any moment; a network folder that never answers blocks nothing."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from tempfile import mkdtemp

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import engine.rewind.snapshots.folders
import engine.rewind.snapshots.work
from engine.ports.files import Coverage, FilesError, FolderSnapshot
from engine.records import ConversationRecord
from engine.rewind.rewind import NOT_FOUND_OUT, UNFINISHED, CannotRewind, RewindScope
from engine.rewind.snapshots.folders import CheckpointFolders, NoFolders
from engine.rewind.snapshots.walk import FolderWalk
from engine.rewind.turn_recorder import TurnRecorder
from tests.support.rewinding import Deed, Scene, scene, tree
from tests.support.waiting import PATIENCE

NAMES = st.sampled_from(["a", "b", "d/c", "d/e/f"])
COMMAND = st.lists(st.tuples(NAMES, st.sampled_from(["", "1", "2", "gone"])), min_size=1, max_size=3)
EDIT = st.tuples(NAMES, st.sampled_from(["", "1", "2"]))
TURN = st.lists(st.one_of(COMMAND, EDIT), min_size=1, max_size=4)
STEPS = st.lists(
    st.one_of(
        TURN,
        st.integers(0, 5),
    ),
    min_size=2,
    max_size=6,
)
Deeds = list[list[tuple[str, str]] | tuple[str, str]]
Step = Deeds | int
"""A turn of commands that write several files and of edits of one, or going back to one of the prompts."""
Snapshot = dict[str, tuple[str, int, bytes]]


def deed_of(planned: list[tuple[str, str]]) -> Deed:
    """Several files at once, as one command would."""

    def deed(folder: Path) -> None:
        for name, content in planned:
            path = folder / name
            if content == "gone":
                path.unlink(missing_ok=True)
            else:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(content)

    return deed


async def play(home: Path, steps: list[Step]) -> None:
    turns = [what for what in steps if isinstance(what, list)]
    async with scene(home, *("".join("c" if isinstance(one, list) else "e" for one in what) for what in turns)) as it:
        current = await it.conversation()
        before: dict[str, dict[int, Snapshot]] = {current.id: {}}
        """Files at the time of a prompt, by conversation and prompt."""
        for what in steps:
            points = (await it.rewinding.points(current.record)).points
            now = tree(it.cwd)
            if isinstance(what, list):
                before[current.id][current.record.message_count + 1] = now
                it.editor.edits += [one for one in what if isinstance(one, tuple)]
                await it.turn(current, "Do it", *(deed_of(one) for one in what if isinstance(one, list)))
            elif points:
                seq = points[what % len(points)].seq
                done = await it.rewinding.rewind(current.record, current.state, seq, RewindScope.BOTH)
                assert done.problems == ()
                assert tree(it.cwd) == before[current.id][seq]
                shared = {prompt: files for prompt, files in before[current.id].items() if prompt < seq}
                undone = await it.rewinding.undo(await record_of(it, done.conversation_id), current.state)
                assert (undone.conversation_id, tree(it.cwd)) == (current.id, now)
                again = await it.rewinding.undo(current.record, current.state)
                assert (again.conversation_id, tree(it.cwd)) == (done.conversation_id, before[current.id][seq])
                current = await it.engine.open(done.conversation_id)
                before[current.id] = shared


async def record_of(it: Scene, conversation_id: str) -> ConversationRecord:
    return (await it.engine.open(conversation_id)).record


@pytest.mark.slow
@settings(max_examples=16, deadline=None)
@given(STEPS)
def test_any_history_can_be_gone_back_in(steps: list[Step]) -> None:
    home = Path(mkdtemp(prefix="phoenix-history-"))
    try:
        asyncio.run(play(home, steps))
    finally:
        shutil.rmtree(home, ignore_errors=True)


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


async def kill_in_a_restore(folder: Path, conversation_id: str, seq: int, number: int) -> None:
    """Have another process go back to `seq`, and die before the change of this number."""
    arguments = ("-m", "tests.support.rewind_child", str(folder), conversation_id, str(seq), str(number))
    child = await asyncio.create_subprocess_exec(sys.executable, *arguments, cwd=ROOT)
    async with asyncio.timeout(45):
        assert await child.wait() == -signal.SIGKILL


@pytest.mark.parametrize("number", [0, 3, 5, 8])
async def test_a_restore_that_was_killed_is_finished_or_taken_back(tmp_path: Path, number: int) -> None:
    async with scene(tmp_path, 1) as it:
        before(it.cwd)
        old = tree(it.cwd)
        conversation = await it.conversation()
        await it.turn(conversation, "first", deed)
        new = tree(it.cwd)
        seq = (await it.rewinding.points(conversation.record)).points[0].seq
    await kill_in_a_restore(tmp_path, conversation.id, seq, number)
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
    await kill_in_a_restore(tmp_path, conversation.id, seq, number)
    async with scene(tmp_path) as it:
        opened = await it.engine.open(conversation.id)
        done = await it.rewinding.finish(opened.record, take_back=True)
        assert (done.problems, tree(it.cwd)) == ((), new)


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
