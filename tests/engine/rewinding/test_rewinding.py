"""Going back in a conversation: the conversation, its files, both; and taking that back."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest

from engine.machine.states import Idle
from engine.ports.files import StepKind
from engine.records import ConversationQuery
from engine.rewind.rewind import BUSY, NOT_FOUND_OUT, CannotRewind, RewindScope
from tests.support.rewinding import Deed, scene, tree


def write(name: str, text: str) -> Deed:
    def deed(folder: Path) -> None:
        (folder / name).write_text(text)

    return deed


async def test_each_prompt_names_the_files_that_its_turn_changed(tmp_path: Path) -> None:
    async with scene(tmp_path, 2, 0, 1) as it:
        (it.cwd / "old.txt").write_text("one\ntwo\n")
        conversation = await it.conversation()
        await it.turn(conversation, "first", write("new.txt", "a\nb\nc\n"), write("old.txt", "one\nthree\n"))
        await it.turn(conversation, "second")
        await it.turn(conversation, "third", lambda folder: (folder / "old.txt").unlink())
        found = await it.rewinding.points(conversation.record)
        seen = [(one.text, [(file.name, file.added, file.removed) for file in one.files]) for one in found.points]
        assert seen == [
            ("third", [("old.txt", 0, 2)]),
            ("second", []),
            ("first", [("new.txt", 3, 0), ("old.txt", 1, 1)]),
        ]
        assert found.takeback is None


async def test_both_go_back_and_both_come_again(tmp_path: Path) -> None:
    async with scene(tmp_path, 1, 2) as it:
        conversation = await it.conversation()
        await it.turn(conversation, "first", write("kept.txt", "kept\n"))
        before = tree(it.cwd)
        await it.turn(
            conversation, "second", write("made.txt", "made\n"), lambda folder: (folder / "kept.txt").write_text("lost")
        )
        after = tree(it.cwd)
        second = (await it.rewinding.points(conversation.record)).points[0]
        done = await it.rewinding.rewind(conversation.record, conversation.state, second.seq, RewindScope.BOTH)
        assert (done.restored, done.problems, done.text) == (2, (), "second")
        assert tree(it.cwd) == before

        branch = await it.engine.open(done.conversation_id)
        assert [one.text for one in (await it.rewinding.points(branch.record)).points] == ["first"]
        assert branch.record.draft == "second"
        listed = [one.id for one in await it.engine.list(ConversationQuery())]
        assert listed == [branch.id], "the branch stands in the place of its source"

        undone = await it.rewinding.undo(branch.record, branch.state)
        assert (undone.conversation_id, undone.restored) == (conversation.id, 2)
        assert tree(it.cwd) == after
        assert [one.id for one in await it.engine.list(ConversationQuery())] == [conversation.id]

        again = await it.rewinding.undo(conversation.record, conversation.state)
        assert again.conversation_id == branch.id
        assert tree(it.cwd) == before


async def test_a_rewind_can_be_undone_in_the_conversation_that_was_left(tmp_path: Path) -> None:
    async with scene(tmp_path, 1) as it:
        conversation = await it.conversation()
        await it.turn(conversation, "first", write("a.txt", "1"))
        after = tree(it.cwd)
        (first,) = (await it.rewinding.points(conversation.record)).points
        await it.rewinding.rewind(conversation.record, conversation.state, first.seq, RewindScope.BOTH)
        assert tree(it.cwd) == {}
        takeback = (await it.rewinding.points(conversation.record)).takeback
        assert takeback is not None
        assert (takeback.files, takeback.branch) == (1, "")
        undone = await it.rewinding.undo(conversation.record, conversation.state)
        assert (undone.conversation_id, undone.restored) == (conversation.id, 1)
        assert tree(it.cwd) == after
        await it.rewinding.undo(conversation.record, conversation.state)
        assert tree(it.cwd) == {}, "the newest restore is the one that is undone"


async def test_files_alone_go_back_and_come_again(tmp_path: Path) -> None:
    async with scene(tmp_path, 1, 1) as it:
        conversation = await it.conversation()
        await it.turn(conversation, "first", write("a.txt", "1"))
        await it.turn(conversation, "second", write("a.txt", "2"))
        first = (await it.rewinding.points(conversation.record)).points[1]
        done = await it.rewinding.rewind(conversation.record, conversation.state, first.seq, RewindScope.FILES)
        assert (done.conversation_id, tree(it.cwd)) == (conversation.id, {})
        await it.rewinding.undo(conversation.record, conversation.state)
        assert tree(it.cwd)["a.txt"][2] == b"2"


async def test_the_conversation_alone_goes_back_and_leaves_every_file(tmp_path: Path) -> None:
    async with scene(tmp_path, 1) as it:
        conversation = await it.conversation()
        await it.turn(conversation, "first", write("a.txt", "1"))
        first = (await it.rewinding.points(conversation.record)).points[0]
        done = await it.rewinding.rewind(conversation.record, conversation.state, first.seq, RewindScope.CONVERSATION)
        branch = await it.engine.open(done.conversation_id)
        assert (branch.record.message_count, branch.record.draft) == (0, "first")
        assert tree(it.cwd)["a.txt"][2] == b"1"


async def test_what_somebody_else_changed_since_stays_unless_asked_for(tmp_path: Path) -> None:
    async with scene(tmp_path, 2) as it:
        (it.cwd / "mine.txt").write_text("mine\n")
        conversation = await it.conversation()
        await it.turn(conversation, "first", write("mine.txt", "its\n"), write("its.txt", "its\n"))
        (it.cwd / "mine.txt").write_text("edited by hand\n")
        first = (await it.rewinding.points(conversation.record)).points[0]
        preview = await it.rewinding.preview(conversation.record, first.seq)
        assert {one.change.name: one.conflict for one in preview.files} == {
            "its.txt": "",
            "mine.txt": "changed since then by someone else",
        }
        await it.rewinding.rewind(conversation.record, conversation.state, first.seq, RewindScope.FILES)
        assert {name: content for name, (_, _, content) in tree(it.cwd).items()} == {"mine.txt": b"edited by hand\n"}
        await it.rewinding.rewind(conversation.record, conversation.state, first.seq, RewindScope.FILES, {b"mine.txt"})
        assert tree(it.cwd)["mine.txt"][2] == b"mine\n"
        await it.rewinding.undo(conversation.record, conversation.state)
        assert tree(it.cwd)["mine.txt"][2] == b"edited by hand\n", "even that can be taken back"


async def test_a_run_under_way_refuses(tmp_path: Path) -> None:
    async with scene(tmp_path, 1) as it:
        it.tool.release = asyncio.Event()
        conversation = await it.conversation()
        it.tool.actions.append(write("a.txt", "1"))
        await conversation.say("first")
        await it.tool.started.wait()
        with pytest.raises(CannotRewind, match=BUSY):
            await it.rewinding.rewind(conversation.record, conversation.state, 1, RewindScope.BOTH)
        it.tool.release.set()
        await conversation.wait_idle()


async def test_a_folder_that_is_gone_refuses_files_but_not_the_conversation(tmp_path: Path) -> None:
    async with scene(tmp_path, 1) as it:
        conversation = await it.conversation()
        await it.turn(conversation, "first", write("a.txt", "1"))
        shutil.rmtree(it.cwd)
        first = (await it.rewinding.points(conversation.record)).points[0]
        preview = await it.rewinding.preview(conversation.record, first.seq)
        assert preview.refusal == f"The folder {it.cwd} no longer exists; only the conversation can be rewound."
        with pytest.raises(CannotRewind, match="no longer exists"):
            await it.rewinding.rewind(conversation.record, conversation.state, first.seq, RewindScope.BOTH)
        done = await it.rewinding.rewind(conversation.record, conversation.state, first.seq, RewindScope.CONVERSATION)
        assert done.conversation_id != conversation.id


async def test_a_turn_cut_off_by_a_crash_still_knows_what_it_changed(tmp_path: Path) -> None:
    async with scene(tmp_path, 1) as it:
        conversation = await it.conversation()
        await it.rewinding.recorder.before_command(conversation.record)
        (it.cwd / "half.txt").write_text("half")
        steps = await it.store.turn_log.steps(conversation.id)
        assert [one.kind for one in steps] == [StepKind.TURN]
        it.rewinding.recorder.begun.clear()  # as a new process finds it
        await it.rewinding.recorder.settle(conversation.id)
        (step,) = await it.store.turn_log.steps(conversation.id)
        assert [change.name for change in step.changes] == ["half.txt"]


async def test_a_rewind_in_a_branch_knows_the_turns_that_it_shares(tmp_path: Path) -> None:
    async with scene(tmp_path, 1, 1) as it:
        conversation = await it.conversation()
        await it.turn(conversation, "first", write("a.txt", "1"))
        await it.turn(conversation, "second", write("b.txt", "2"))
        second, first = (await it.rewinding.points(conversation.record)).points
        done = await it.rewinding.rewind(conversation.record, conversation.state, second.seq, RewindScope.BOTH)
        branch = await it.engine.open(done.conversation_id)
        again = await it.rewinding.rewind(branch.record, Idle(0), first.seq, RewindScope.BOTH)
        assert (again.restored, tree(it.cwd)) == (1, {})
        last = await it.engine.open(again.conversation_id)
        family = await it.rewinding.branches(last.record)
        assert [(one.branch_of, one.branch_seq) for one in family] == [
            ("", 0),
            (conversation.id, second.seq - 1),
            (branch.id, 0),
        ]
        assert [one.id for one in await it.engine.list(ConversationQuery())] == [last.id]


async def test_the_images_of_the_prompt_come_along(tmp_path: Path) -> None:
    async with scene(tmp_path, 0) as it:
        conversation = await it.conversation()
        image = await conversation.attach(b"pixels")
        await conversation.say("look", [image.id])
        await conversation.wait_idle()
        point = (await it.rewinding.points(conversation.record)).points[0]
        assert point.images == 1
        done = await it.rewinding.rewind(conversation.record, conversation.state, point.seq, RewindScope.CONVERSATION)
        (copied,) = await it.engine.attachments(done.image_ids)
        assert (copied.id == image.id, copied.path) == (False, image.path)


@pytest.mark.parametrize("told", [False, True])
async def test_a_command_of_the_user_can_be_gone_back_to(tmp_path: Path, told: bool) -> None:
    async with scene(tmp_path) as it:
        conversation = await it.conversation()
        it.tool.actions.append(write("a.txt", "1"))
        await conversation.shell("echo 1 > a.txt", send_to_model=told)
        await conversation.wait_idle()
        await it.rewinding.recorder.settle(conversation.id)
        (point,) = (await it.rewinding.points(conversation.record)).points
        assert (point.text, [change.name for change in point.files]) == ("! echo 1 > a.txt", ["a.txt"])
        await it.rewinding.rewind(conversation.record, conversation.state, point.seq, RewindScope.FILES)
        assert tree(it.cwd) == {}


async def test_what_somebody_changed_between_two_turns_is_asked_about(tmp_path: Path) -> None:
    async with scene(tmp_path, 1, 1) as it:
        conversation = await it.conversation()
        await it.turn(conversation, "first", write("a.txt", "1"))
        (it.cwd / "a.txt").write_text("by hand")
        await it.turn(conversation, "second", write("a.txt", "2"))
        second, first = (await it.rewinding.points(conversation.record)).points
        (later,) = (await it.rewinding.preview(conversation.record, second.seq)).files
        (earlier,) = (await it.rewinding.preview(conversation.record, first.seq)).files
        assert (later.conflict, earlier.conflict) == ("", "also changed by someone else between two turns")


async def test_a_tool_waits_no_longer_than_the_patience_and_the_look_goes_on(tmp_path: Path) -> None:
    async with scene(tmp_path) as it:
        (it.cwd / "a.txt").write_text("1")
        conversation = await it.conversation()
        it.rewinding.recorder.patience = 0.0
        await it.rewinding.recorder.before_command(conversation.record)
        it.rewinding.recorder.run_ended(conversation.record)
        await it.rewinding.recorder.settle(conversation.id)
        (step,) = await it.store.turn_log.steps(conversation.id)
        assert (step.look != "", step.changes) == (True, ())


async def test_a_look_ahead_of_its_tool_counts_unless_it_has_grown_old(tmp_path: Path) -> None:
    async with scene(tmp_path) as it:
        conversation = await it.conversation()
        recorder = it.rewinding.recorder
        recorder.command_drafted(conversation.record)
        await recorder.before_command(conversation.record)
        recorder.command_drafted(conversation.record)
        (it.cwd / "a.txt").write_text("1")
        recorder.run_ended(conversation.record)
        await recorder.settle(conversation.id)
        (step,) = await it.store.turn_log.steps(conversation.id)
        assert [change.name for change in step.changes] == ["a.txt"]
        recorder.command_drafted(conversation.record)
        look = recorder.begun[conversation.id]
        await look.task
        look.began -= 60.0
        (it.cwd / "b.txt").write_text("by hand, while the question was open")
        await recorder.before_command(conversation.record)
        recorder.run_ended(conversation.record)
        await recorder.settle(conversation.id)
        assert [len(step.changes) for step in await it.store.turn_log.steps(conversation.id)] == [1, 0]


async def test_going_back_twice_over_a_branch_is_nobody_elses_work(tmp_path: Path) -> None:
    async with scene(tmp_path, 1, 1) as it:
        conversation = await it.conversation()
        await it.turn(conversation, "first", write("a.txt", "1"))
        await it.turn(conversation, "second", write("a.txt", "2"))
        second, first = (await it.rewinding.points(conversation.record)).points
        done = await it.rewinding.rewind(conversation.record, conversation.state, second.seq, RewindScope.BOTH)
        branch = await it.engine.open(done.conversation_id)
        (file,) = (await it.rewinding.preview(branch.record, first.seq)).files
        assert file.conflict == ""


async def test_a_command_that_removes_its_own_folder_leaves_the_conversation_to_go_back_in(tmp_path: Path) -> None:
    async with scene(tmp_path, 1) as it:
        (it.cwd / "a.txt").write_text("1")
        conversation = await it.conversation()
        await it.turn(conversation, "first", shutil.rmtree)
        (point,) = (await it.rewinding.points(conversation.record)).points
        preview = await it.rewinding.preview(conversation.record, point.seq)
        assert preview.refusal == NOT_FOUND_OUT
        it.cwd.mkdir()
        (point,) = (await it.rewinding.points(conversation.record)).points
        assert [change.name for change in point.files] == ["a.txt"]
        await it.rewinding.rewind(conversation.record, conversation.state, point.seq, RewindScope.FILES)
        assert tree(it.cwd)["a.txt"][2] == b"1"


async def test_a_run_that_began_while_files_were_looked_at_keeps_everything_as_it_is(tmp_path: Path) -> None:
    async with scene(tmp_path, 1, 1) as it:
        conversation = await it.conversation()
        await it.turn(conversation, "first", write("a.txt", "1"))
        before = conversation.record, conversation.state
        it.tool.release = asyncio.Event()
        it.tool.started.clear()
        it.tool.actions.append(write("b.txt", "2"))
        await conversation.say("second")
        await it.tool.started.wait()
        for scope in RewindScope:
            with pytest.raises(CannotRewind, match="is working"):
                await it.rewinding.rewind(*before, 1, scope)
        assert len(await it.engine.list(ConversationQuery())) == 1
        assert tree(it.cwd).keys() == {"a.txt"}
        it.tool.release.set()
        await conversation.wait_idle()
