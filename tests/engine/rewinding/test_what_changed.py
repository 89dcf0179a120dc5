"""Changes of a conversation to its folder, known at any moment."""

from __future__ import annotations

import asyncio
from pathlib import Path

from engine.rewind.values import Changed
from tests.support.rewinding import Deed, scene
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
        changed = await it.rewinding.changed(conversation.record)
        assert told(changed) == [("old.txt", 3, 2, "")]
        shown = await it.rewinding.diff(changed.files[0].change)
        assert shown is not None
        assert [line for line in shown.diff.splitlines()[2:] if line[0] in "+-"] == ["-one", "-two", "+1", "+2", "+3"]


async def test_what_somebody_else_changed_since_is_shown_and_said(tmp_path: Path) -> None:
    async with scene(tmp_path, 1) as it:
        conversation = await it.conversation()
        await it.turn(conversation, "first", write("made.txt", "mine\n"))
        (it.cwd / "made.txt").write_text("mine\nhers\n")
        changed = await it.rewinding.changed(conversation.record)
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
        assert told(await it.rewinding.changed(conversation.record)) == [("first.txt", 1, 0, "")]
        second.set()
        await conversation.wait_idle()
        found = told(await it.rewinding.changed(conversation.record))
        assert found == [("first.txt", 1, 0, ""), ("second.txt", 1, 0, "")]
        points = (await it.rewinding.points(conversation.record)).points
        assert [one.name for one in points[0].files] == ["first.txt", "second.txt"]
