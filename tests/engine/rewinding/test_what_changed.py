"""Changes of a conversation to its folder, known at any moment."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path

import pytest
from msgspec.structs import replace

from engine.ports import ConversationChanges
from engine.ports.files import StepState
from engine.rewind.rewind import Changed, RewindScope
from engine.rewind.snapshots import snapshot_store
from tests.support.rewinding import Deed, Scene, scene
from tests.support.waiting import PATIENCE


def write(name: str, text: str) -> Deed:
    return lambda folder: (folder / name).write_text(text)


def told(changed: Changed) -> list[tuple[str, int, int, str]]:
    return [(one.change.name, one.change.added, one.change.removed, one.remark) for one in changed.files]


async def test_several_turns_are_one_change_and_what_was_changed_back_is_none(tmp_path: Path) -> None:
    async with scene(tmp_path, 2, 2) as it:
        (it.cwd / "old.txt").write_text("one\ntwo\n")
        (it.cwd / "same.txt").write_text("as it was\n")
        conversation = await it.conversation()
        await it.turn(conversation, "first", write("old.txt", "one\n2\n"), write("same.txt", "else\n"))
        await it.turn(conversation, "second", write("old.txt", "1\n2\n3\n"), write("same.txt", "as it was\n"))
        changed = await it.rewinding.read_changes(conversation.record)
        assert told(changed) == [("old.txt", 3, 2, "")]
        shown = await it.rewinding.diff(changed.files[0].change)
        assert shown is not None
        assert [line for line in shown.diff.splitlines()[2:] if line[0] in "+-"] == ["-one", "-two", "+1", "+2", "+3"]


async def test_what_somebody_else_changed_since_is_shown_and_said(tmp_path: Path) -> None:
    async with scene(tmp_path, 1) as it:
        conversation = await it.conversation()
        await it.turn(conversation, "first", write("made.txt", "mine\n"))
        (it.cwd / "made.txt").write_text("mine\nhers\n")
        changed = await it.rewinding.read_changes(conversation.record)
        assert told(changed) == [("made.txt", 2, 0, "changed since then by someone else")]


async def test_a_run_under_way_is_part_of_it_and_is_still_taken_back_whole(tmp_path: Path) -> None:
    async with scene(tmp_path, 2) as it:
        conversation = await it.conversation()
        it.tool.actions += [write("first.txt", "1\n"), write("second.txt", "2\n")]
        first, second = asyncio.Event(), asyncio.Event()
        it.tool.release = first
        await conversation.say("go")
        await asyncio.wait_for(it.tool.started.wait(), PATIENCE)
        it.tool.started.clear()
        it.tool.release = second
        first.set()
        await asyncio.wait_for(it.tool.started.wait(), PATIENCE)
        assert told(await it.rewinding.read_changes(conversation.record)) == [("first.txt", 1, 0, "")]
        second.set()
        await conversation.wait_idle()
        found = told(await it.rewinding.read_changes(conversation.record))
        assert found == [("first.txt", 1, 0, ""), ("second.txt", 1, 0, "")]
        points = (await it.rewinding.points(conversation.record)).points
        assert [one.name for one in points[0].files] == ["first.txt", "second.txt"]


def kept(it: Scene) -> int:
    database = sqlite3.connect(it.home / "data" / "checkpoints" / "contents.db")
    try:
        return int(database.execute("SELECT COUNT(*) FROM contents").fetchone()[0])
    finally:
        database.close()


def versions(folder: Path) -> None:
    (folder / "a.txt").write_text("the second version")


async def test_contents_go_with_the_last_conversation_that_needs_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshot_store, "SPARED_SECONDS", -1.0)
    async with scene(tmp_path, 1) as it:
        (it.cwd / "a.txt").write_text("the first version")
        conversation = await it.conversation()
        await it.turn(conversation, "first", versions)
        assert kept(it) == 2
        assert await it.rewinding.collect() == 0, "a change names the first, the newest look the second"
        await it.rewinding.rewind(conversation.record, conversation.state, 1, RewindScope.FILES)
        assert (it.cwd / "a.txt").read_text() == "the first version"
        await it.engine.forget(conversation.id)
        await it.engine.change(conversation.id, ConversationChanges(deleted=True))
        assert await it.engine.bulk.purge([conversation.id]) == []
        assert kept(it) == 1, "what the folder held at the newest look is still needed to see the next change"


async def test_what_is_young_stays(tmp_path: Path) -> None:
    async with scene(tmp_path, 1) as it:
        (it.cwd / "a.txt").write_text("the first version")
        conversation = await it.conversation()
        await it.turn(conversation, "first", versions)
        await it.engine.forget(conversation.id)
        await it.engine.bulk.purge([conversation.id])
        assert kept(it) == 2


async def test_a_restore_that_was_cut_off_is_named_once_its_process_is_gone(tmp_path: Path) -> None:
    async with scene(tmp_path, 1) as it:
        conversation = await it.conversation()
        await it.turn(conversation, "Write it", versions)
        (step,) = await it.store.turn_log.steps(conversation.id)
        await it.store.turn_log.save(replace(step, state=StepState.RESTORING))
        assert await it.rewinding.cut_off() == "", "this process may be at it"
        await it.engine.forget(conversation.id)
        assert await it.rewinding.cut_off() == (
            "A restore of files was interrupted in “Write it”; Esc Esc there finishes or undoes it."
        )


async def test_many_contents_are_stored_raw_and_packed_later(tmp_path: Path) -> None:
    async with scene(tmp_path, 1) as it:
        for number in range(300):
            (it.cwd / f"{number}.txt").write_text(f"{number} " * 200)
        await it.rewinding.folders.look(it.cwd)
        raw = sqlite3.connect(it.home / "data" / "checkpoints" / "contents.db")
        assert raw.execute("SELECT COUNT(*) FROM contents WHERE packed = 0").fetchone() == (300,)
        while await it.rewinding.folders.tidy():
            pass
        assert raw.execute("SELECT COUNT(*) FROM contents WHERE packed = 0").fetchone() == (0,)
        raw.close()
        look = await it.rewinding.folders.look(it.cwd)
        (it.cwd / "7.txt").unlink()
        after = await it.rewinding.folders.look(it.cwd)
        (change,) = await it.rewinding.folders.changes(look.id, after.id)
        await it.rewinding.folders.restore(it.cwd, [type(change)(change.path, change.after, change.before)])
        assert (it.cwd / "7.txt").read_text() == "7 " * 200
