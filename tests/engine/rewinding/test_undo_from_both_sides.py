"""The undo of a rewind belongs to the conversation that it left and to the one it made, and outlives each of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from engine.conversation import Conversation
from engine.machine.messages import TextBlock
from engine.ports import ConversationChanges
from engine.ports.turns import StepState
from engine.records import ConversationQuery
from engine.rewind.rewind import CannotRewind
from engine.rewind.values import Done, RewindScope
from tests.support.rewinding import Scene, scene


def write(name: str, text: str) -> Callable[[Path], object]:
    def deed(folder: Path) -> None:
        (folder / name).write_text(text)

    return deed


def files(it: Scene) -> dict[str, str]:
    return {path.name: path.read_text() for path in it.cwd.iterdir()}


async def listed(it: Scene, *, deleted: bool = False) -> list[str]:
    return [one.id for one in await it.engine.list(ConversationQuery(deleted=deleted))]


async def back(it: Scene, conversation: Conversation, prompt: str, scope: RewindScope = RewindScope.BOTH) -> Done:
    """Rewind to before a prompt."""
    record = (await it.store.conversation(conversation.id)) or conversation.record
    points = (await it.rewinding.points(conversation.record)).points
    (seq,) = [one.seq for one in points if one.text == prompt]
    assert record.id == conversation.id
    return await it.rewinding.rewind(conversation.record, conversation.state, seq, scope)


async def undo(it: Scene, conversation_id: str, overwrite: frozenset[bytes] = frozenset()) -> Done:
    """Undo in this conversation, as its screen does."""
    here = await it.engine.open(conversation_id)
    return await it.rewinding.undo(here.record, here.state, overwrite)


async def edited(it: Scene) -> tuple[Conversation, str]:
    """A conversation whose one edit went back with it: the source, and the empty branch."""
    conversation = await it.conversation()
    await it.turn(conversation, "first", write("one.txt", "edited"))
    done = await back(it, conversation, "first")
    assert files(it) == {}
    return conversation, done.conversation_id


async def test_the_conversation_that_was_left_undoes_it_and_stays_in_view(tmp_path: Path) -> None:
    async with scene(tmp_path, 1) as it:
        source, branch = await edited(it)
        await it.rewinding.switch((await it.engine.open(branch)).record, source.state, source.id)
        assert files(it) == {}, "another branch is shown, the files stay"
        takeback = (await it.rewinding.points(source.record)).takeback
        assert takeback is not None
        assert (takeback.files, takeback.branch, takeback.redoes) == (1, "", False)
        done = await undo(it, source.id)
        assert (done.conversation_id, done.restored, files(it)) == (source.id, 1, {"one.txt": "edited"})
        assert await listed(it) == [source.id]


async def test_it_is_undone_after_a_restart_from_either_side(tmp_path: Path) -> None:
    async with scene(tmp_path, 1) as it:
        source, branch = await edited(it)
    for here in (branch, source.id):
        async with scene(tmp_path) as it:
            assert await listed(it) == [branch], "the branch stands in the list with the undo of its rewind"
            done = await undo(it, here)
            assert (done.conversation_id, files(it)) == (source.id, {"one.txt": "edited"})
            again = await undo(it, source.id)
            assert (again.conversation_id, files(it)) == (branch, {}), "nothing is left to undo: it rewinds again"


async def test_a_branch_whose_rewind_moved_files_is_never_removed_as_unused(tmp_path: Path) -> None:
    async with scene(tmp_path, 1) as it:
        _, branch = await edited(it)
        await (await it.engine.open(branch)).change(ConversationChanges(draft=""))
        for undone in (False, True):
            if undone:
                await undo(it, branch)
            await it.engine.forget(branch)
            assert not await it.engine.bulk.remove_unused(branch)
        fresh = await it.conversation()
        assert not await it.engine.bulk.remove_unused(fresh.id), "it is open"
        await it.engine.forget(fresh.id)
        assert await it.engine.bulk.remove_unused(fresh.id)
        assert await it.store.conversation(fresh.id) is None
        assert await listed(it, deleted=True) == []


async def test_a_branch_without_a_change_of_files_is_unused_and_its_source_is_back(tmp_path: Path) -> None:
    async with scene(tmp_path, 0) as it:
        source = await it.conversation()
        await it.turn(source, "first")
        branch = (await back(it, source, "first", RewindScope.CONVERSATION)).conversation_id
        await (await it.engine.open(branch)).change(ConversationChanges(draft=""))
        await it.engine.forget(branch)
        assert await it.engine.bulk.remove_unused(branch)
        assert await listed(it) == [source.id]


async def test_a_branch_in_the_trash_is_undone_from_its_source_and_brought_back_into_the_list(tmp_path: Path) -> None:
    async with scene(tmp_path, 1) as it:
        source, branch = await edited(it)
        await it.engine.bulk.change([branch], ConversationChanges(deleted=True))
        assert (await listed(it), await listed(it, deleted=True)) == ([source.id], [branch])
        await undo(it, source.id)
        assert files(it) == {"one.txt": "edited"}
        await it.engine.bulk.change([branch], ConversationChanges(deleted=False))
        assert branch in await listed(it)
        await it.engine.bulk.change([branch], ConversationChanges(deleted=True))
        again = await undo(it, source.id)
        assert (again.conversation_id, await listed(it, deleted=True)) == (branch, []), "who goes to it sees it"
        assert files(it) == {}


@pytest.mark.parametrize("gone", ["branch", "source"])
async def test_it_outlives_the_other_side(tmp_path: Path, gone: str) -> None:
    async with scene(tmp_path, 1) as it:
        source, branch = await edited(it)
        removed, left = (branch, source.id) if gone == "branch" else (source.id, branch)
        await it.engine.forget(removed)
        assert await it.engine.bulk.purge([removed]) == []
        done = await undo(it, left)
        assert (done.conversation_id, files(it)) == (left, {"one.txt": "edited"})
        again = await undo(it, left)
        assert (again.conversation_id, files(it)) == (left, {})


async def several(it: Scene) -> tuple[Conversation, str, str]:
    """A source with two edits, a branch before the second, and a branch of that before the first."""
    source = await it.conversation()
    await it.turn(source, "first", write("one.txt", "1"))
    await it.turn(source, "second", write("one.txt", "2"), write("two.txt", "2"))
    nearer = (await back(it, source, "second")).conversation_id
    assert files(it) == {"one.txt": "1"}
    farther = (await back(it, await it.engine.open(nearer), "first")).conversation_id
    assert files(it) == {}
    return source, nearer, farther


async def test_several_rewinds_are_undone_one_after_the_other(tmp_path: Path) -> None:
    async with scene(tmp_path, 1, 2) as it:
        source, nearer, farther = await several(it)
        assert ((await undo(it, farther)).conversation_id, files(it)) == (nearer, {"one.txt": "1"})
        assert ((await undo(it, nearer)).conversation_id, files(it)) == (source.id, {"one.txt": "2", "two.txt": "2"})


async def test_several_rewinds_are_undone_at_once_from_where_they_began(tmp_path: Path) -> None:
    async with scene(tmp_path, 1, 2) as it:
        source, _, farther = await several(it)
        await it.rewinding.switch((await it.engine.open(farther)).record, source.state, source.id)
        assert (await undo(it, source.id)).restored == 2
        assert files(it) == {"one.txt": "2", "two.txt": "2"}
        again = await undo(it, source.id)
        assert (again.conversation_id, files(it)) == (farther, {}), "and all of them are made again"


async def test_restores_of_files_alone_are_undone_in_order(tmp_path: Path) -> None:
    async with scene(tmp_path, 1, 1) as it:
        conversation = await it.conversation()
        await it.turn(conversation, "first", write("one.txt", "1"))
        await it.turn(conversation, "second", write("one.txt", "2"))
        for prompt, left in (("second", {"one.txt": "1"}), ("first", {})):
            await back(it, conversation, prompt, RewindScope.FILES)
            assert files(it) == left
        for now in ({"one.txt": "1"}, {"one.txt": "2"}, {"one.txt": "1"}):
            await undo(it, conversation.id)
            assert files(it) == now


@pytest.mark.parametrize("side", ["branch", "source"])
async def test_work_of_others_since_then_is_told_and_kept(tmp_path: Path, side: str) -> None:
    async with scene(tmp_path, 1) as it:
        source, branch = await edited(it)
        here = await it.engine.open(branch if side == "branch" else source.id)
        (it.cwd / "one.txt").write_text("by hand")
        preview = await it.rewinding.preview_undo(here.record)
        assert [(one.change.name, one.conflict) for one in preview.files] == [
            ("one.txt", "changed since then by someone else")
        ]
        await undo(it, here.id)
        assert files(it) == {"one.txt": "by hand"}
        await undo(it, source.id)
        await undo(it, here.id, frozenset({b"one.txt"}))
        assert files(it) == {"one.txt": "edited"}
        await undo(it, source.id)
        assert files(it) == {"one.txt": "by hand"}, "what was overwritten on request comes back too"


async def test_a_switch_is_no_rewind_and_hides_none(tmp_path: Path) -> None:
    async with scene(tmp_path, 1) as it:
        source, branch = await edited(it)
        here = await it.engine.open(branch)
        for _ in range(3):
            await it.rewinding.switch(here.record, here.state, source.id)
            await it.rewinding.switch(source.record, source.state, branch)
        assert (await undo(it, branch)).conversation_id == source.id
        assert files(it) == {"one.txt": "edited"}


async def test_a_restore_that_a_crash_cut_off_is_finished_from_either_side(tmp_path: Path) -> None:
    async with scene(tmp_path, 1) as it:
        source, branch = await edited(it)
        (step,) = [one for one in await it.store.turn_log.rewinds(branch) if one.changes]
        for here in (source.id, branch):
            (it.cwd / "one.txt").write_text("edited")
            await it.store.turn_log.save(replace(step, state=StepState.RESTORING))
            record = (await it.engine.open(here)).record
            assert (await it.rewinding.points(record)).unfinished == 1
            with pytest.raises(CannotRewind, match="interrupted"):
                await it.rewinding.rewind(record, source.state, 1, RewindScope.CONVERSATION)
            await it.rewinding.finish(record)
            assert files(it) == {}
        await undo(it, source.id)
        assert files(it) == {"one.txt": "edited"}


async def test_an_undo_that_a_crash_cut_off_and_the_user_reverses_leaves_the_rewind_undoable(tmp_path: Path) -> None:
    async with scene(tmp_path, 1) as it:
        source, branch = await edited(it)
        await undo(it, branch)
        (step,) = [one for one in await it.store.turn_log.rewinds(branch) if one.undoes]
        await it.store.turn_log.save(replace(step, state=StepState.RESTORING))
        await it.rewinding.finish(source.record, take_back=True)
        assert files(it) == {}
        await undo(it, source.id)
        assert files(it) == {"one.txt": "edited"}


async def test_an_undo_without_its_folder_leaves_the_files_to_be_undone_later(tmp_path: Path) -> None:
    async with scene(tmp_path, 1) as it:
        source, branch = await edited(it)
        aside = it.cwd.rename(it.cwd.with_name("aside"))
        assert (await undo(it, branch)).conversation_id == source.id
        aside.rename(it.cwd)
        await undo(it, source.id)
        assert files(it) == {"one.txt": "edited"}


async def test_the_model_of_a_conversation_that_was_left_is_told_which_files_went_back(tmp_path: Path) -> None:
    async with scene(tmp_path, 1, 0, 0) as it:
        source, branch = await edited(it)
        here = await it.engine.open(branch)
        await it.turn(here, "first again")
        assert "earlier state" not in _last_words(it), "its messages went back with the files"
        await it.rewinding.switch(here.record, here.state, source.id)
        await it.turn(source, "go on")
        assert "an earlier state since your last reply: one.txt." in _last_words(it)


async def test_the_model_is_not_told_of_a_rewind_that_was_undone(tmp_path: Path) -> None:
    async with scene(tmp_path, 1, 0) as it:
        source, branch = await edited(it)
        await undo(it, branch)
        await it.turn(source, "go on")
        assert "earlier state" not in _last_words(it)


def _last_words(it: Scene) -> str:
    """End of the newest request."""
    last = it.provider.requests[-1].messages[-1].blocks[-1]
    return last.text if isinstance(last, TextBlock) else ""
