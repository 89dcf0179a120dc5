"""Any history of turns and rewinds: files are as they were before the prompt, and undo undoes."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from tempfile import mkdtemp

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.records import ConversationRecord
from engine.rewind.rewind import RewindScope
from tests.support.rewinding import Deed, Scene, scene, tree

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
