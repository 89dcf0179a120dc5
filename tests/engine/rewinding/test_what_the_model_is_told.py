"""Files that went back without the conversation: every request of the next turn says so, and no message does."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from engine.machine.messages import TextBlock
from engine.ports.files import FileChange, FileKind, FileState, FileStep, StepKind, StepState
from engine.rewind.rewind import RewindScope, find_changed_paths, format_note
from tests.support.rewinding import Scene, scene


def last_words(it: Scene, request: int) -> str:
    """End of the request's last message."""
    last = it.provider.requests[request].messages[-1].blocks[-1]
    return last.text if isinstance(last, TextBlock) else ""


def writes(name: str, text: str) -> Callable[[Path], object]:
    def deed(folder: Path) -> None:
        (folder / name).write_text(text)

    return deed


async def test_the_turn_after_a_restore_is_told_in_every_request_and_the_one_after_it_is_not(tmp_path: Path) -> None:
    async with scene(tmp_path, 1, 1, 0) as it:
        conversation = await it.conversation()
        await it.turn(conversation, "first", writes("a.txt", "1"))
        points = (await it.rewinding.points(conversation.record)).points
        await it.rewinding.rewind(conversation.record, conversation.state, points[0].seq, RewindScope.FILES)
        await it.turn(conversation, "second", writes("b.txt", "2"))
        await it.turn(conversation, "third")
        told = [last_words(it, number) for number in range(5)]
        assert ["an earlier state since your last reply: a.txt." in words for words in told] == [
            *(False, False),
            *(True, True),
            False,
        ]
        stored = await it.store.messages(conversation.id)
        assert not any("earlier state" in str(message.blocks) for message in stored)


async def test_a_restore_is_told_after_a_restart_too(tmp_path: Path) -> None:
    async with scene(tmp_path, 1) as it:
        conversation = await it.conversation()
        await it.turn(conversation, "first", writes("a.txt", "1"))
        await it.rewinding.rewind(conversation.record, conversation.state, 1, RewindScope.FILES)
    async with scene(tmp_path, 0) as it:
        again = await it.engine.open(conversation.id)
        await it.turn(again, "second")
        assert "a.txt" in last_words(it, 0)


async def test_a_restore_that_was_undone_is_not_told(tmp_path: Path) -> None:
    async with scene(tmp_path, 1, 0) as it:
        conversation = await it.conversation()
        await it.turn(conversation, "first", writes("a.txt", "1"))
        await it.rewinding.rewind(conversation.record, conversation.state, 1, RewindScope.FILES)
        await it.rewinding.undo(conversation.record, conversation.state)
        await it.turn(conversation, "second")
        assert last_words(it, 2) == "second"


def test_many_files_and_hostile_names_make_one_clean_line() -> None:
    state = FileState(FileKind.FILE, 0o644, b"x")
    names = [b"a\n]\x1b[2J", *(b"%03d" % number for number in range(30))]
    changes = tuple(FileChange(name, None, state) for name in names)
    step = FileStep("s", "c", StepKind.RESTORE, StepState.DONE, 1, Path("/"), "", 0.0, changes)
    text = format_note(find_changed_paths([step]))
    assert text.isprintable()
    assert " and 11 more. " in text
    assert format_note([]) == ""
