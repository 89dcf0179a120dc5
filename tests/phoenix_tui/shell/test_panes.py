"""Several conversations in one screen: places, the dock, live updates."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from textual.geometry import Region, Size

from engine.executor.requests import ApprovalAnswer, ApprovalChoice
from engine.machine.states import AwaitingLlm, Requesting, is_busy
from engine.ports import ConversationChanges
from engine.updates import Noticed, TextArrived
from phoenix_tui.commands.conversations import panes_of, split_with
from phoenix_tui.panes.row import LEAST_HEIGHT, LEAST_WIDTH, regions
from phoenix_tui.panes.saved_panes import FILE, Panes, recall, remember
from phoenix_tui.panes.split import MOST, Split
from tests.support.fake_engine import RUN, question

WIDE = (200, 60)
NEXT, PREVIOUS = "alt+right", "alt+left"


@given(st.integers(1, MOST), st.integers(1, 400), st.integers(1, 150))
def test_panes_fill_the_room_without_overlap_and_none_is_smaller_than_a_conversation_needs(
    count: int, width: int, height: int
) -> None:
    found = regions(count, Size(width, height))
    if found is None:
        columns = max(width // LEAST_WIDTH, 1)
        assert count == 1 or height // -(-count // min(count, columns)) < LEAST_HEIGHT
        return
    assert len(found) == count
    assert sum(region.area for region in found) == width * height
    assert all(Region(0, 0, width, height).contains_region(region) for region in found)
    assert not any(one.overlaps(other) for place, one in enumerate(found) for other in found[:place])
    assert all(region.height >= LEAST_HEIGHT for region in found)
    assert width < LEAST_WIDTH or all(region.width >= LEAST_WIDTH for region in found)


async def beside(shell: Any, *others: Any) -> Any:
    """Each of these in a further pane; the last one has the dock."""
    for one in others:
        await split_with(shell.ctx, one.id)
    await shell.pilot.pause()
    return panes_of(shell.ctx)


def shown_panes(shell: Any) -> Split:
    """The panes there are."""
    panes = panes_of(shell.ctx)
    assert panes is not None
    return panes


def transcripts(shell: Any) -> list[Region]:
    return [pane.transcript.region for pane in shown_panes(shell).row.panes]


def feet(shell: Any) -> list[str]:
    return [pane.foot.render().plain for pane in shown_panes(shell).row.panes]


async def test_split_shows_two_conversations_side_by_side_and_both_are_live(open_shell: Any, engine: Any) -> None:
    first, second = engine.seed("first", messages=2), engine.seed("second", messages=2)
    async with open_shell(WIDE) as shell:
        await shell.open(first)
        await shell.enter("/split second", until=lambda: panes_of(shell.ctx))
        await shell.until(lambda: shell.in_view is second)
        first.play(TextArrived("told in the first"))
        second.play(TextArrived("told in the second"))
        await shell.until(lambda: "told in the first" in shell.text and "told in the second" in shell.text)
        left, right = transcripts(shell)
        assert left.right <= right.x
        assert (left.y, right.y) == (1, 1)
        assert first.record.draft == ""


async def test_what_is_written_goes_to_the_pane_with_the_dock_and_each_keeps_its_draft(
    open_shell: Any, engine: Any
) -> None:
    first, second = engine.seed("first", messages=2), engine.seed("second", messages=2)
    async with open_shell(WIDE) as shell:
        await shell.open(first)
        await beside(shell, second)
        await shell.type("for the second", PREVIOUS, until=lambda: shell.in_view is first)
        assert (shell.composer.text, second.record.draft) == ("", "for the second")
        await shell.until(lambda: "for the second" in feet(shell)[1])
        await shell.enter("hello first", until=lambda: first.said)
        assert (first.said[0][0], second.said) == ("hello first", [])
        await shell.press(NEXT, until=lambda: shell.composer.text == "for the second")


async def test_going_to_another_pane_stops_no_run_and_its_state_stands_in_title_and_foot(
    open_shell: Any, engine: Any
) -> None:
    first, second = engine.seed("first", messages=2), engine.seed("second", messages=2)
    async with open_shell(WIDE) as shell:
        await shell.open(first)
        panes = await beside(shell, second)
        second.become(AwaitingLlm(1, RUN, Requesting()))
        await shell.press(PREVIOUS, until=lambda: shell.in_view is first)
        assert is_busy(second.state)
        assert second.cancelled == 0
        await shell.until(lambda: feet(shell)[1].startswith("◐ thinking"))
        heading = panes.row.panes[1].title.heading
        assert (heading.glyph.sign, heading.aside) == ("◐", True)
        assert "ready" in shell.status
        await shell.press("escape")
        await shell.pilot.pause()
        assert second.cancelled == 0


async def test_a_question_in_another_pane_stands_in_its_foot_and_is_answered_once_the_dock_is_there(
    open_shell: Any, engine: Any
) -> None:
    first, second = engine.seed("first", messages=2), engine.seed("second", messages=2)
    async with open_shell(WIDE) as shell:
        await shell.open(first)
        await beside(shell, second)
        await shell.press(PREVIOUS, until=lambda: shell.in_view is first)
        second.ask(question("make clean"))
        await shell.until(lambda: feet(shell)[1] == "◆ bash asks  make clean")
        second.play(Noticed("The context is at 75 %."))
        await shell.until(lambda: "second: The context is at 75 %." in shell.toasts)
        panel = shell.question
        assert not panel.display
        await shell.press(NEXT, until=lambda: panel.display)
        assert panel.region.x >= transcripts(shell)[1].x
        panel.gate.since = shell.answering.since = shell.answering.typed_at = float("-inf")
        await shell.press("y", until=lambda: second.answers == [("call-1", ApprovalAnswer(ApprovalChoice.ONCE))])
        assert not panel.display


async def test_panes_stand_in_as_many_rows_as_the_width_asks_for(open_shell: Any, engine: Any) -> None:
    made = [engine.seed(f"number {number}", messages=2) for number in range(3)]
    async with open_shell(WIDE) as shell:
        await shell.open(made[0])
        await beside(shell, *made[1:])
        for size, rows in ((WIDE, 2), ((240, 70), 1), ((90, 40), 3)):
            await shell.pilot.resize_terminal(*size)
            await shell.until(lambda rows=rows: len({region.y for region in transcripts(shell)}) == rows)
            assert all(region.width >= LEAST_WIDTH - 1 for region in transcripts(shell))


async def test_where_one_pane_alone_has_room_the_others_are_tabs_and_are_not_painted(
    open_shell: Any, engine: Any
) -> None:
    first, second = engine.seed("first", messages=2), engine.seed("second", messages=2)
    async with open_shell() as shell:
        await shell.open(first)
        panes = await beside(shell, second)
        assert shell.text.splitlines()[0].split() == ["1", "○", "first", "2", "○", "second"]
        assert not panes.row.panes[0].transcript.is_on_screen
        first.ask(question())
        await shell.until(lambda: "1 ◆ first" in shell.text)
        await shell.until(lambda: "◆1" in shell.text)
        assert [row for row in shell.text.splitlines()[1:] if "second" in row] == []
        await shell.pilot.click(panes.row.tabs, offset=(4, 0))
        await shell.until(lambda: shell.in_view is first)
        await shell.pilot.resize_terminal(*WIDE)
        await shell.until(lambda: len({region.x for region in transcripts(shell)}) == 2)
        assert not panes.row.tabs.is_on_screen
        await shell.until(lambda: all(name in shell.text.splitlines()[0] for name in ("◆ first", "○ second")))


async def test_a_click_into_a_pane_gives_it_the_dock(open_shell: Any, engine: Any) -> None:
    first, second = engine.seed("first", messages=2), engine.seed("second", messages=2)
    async with open_shell(WIDE) as shell:
        await shell.open(first)
        panes = await beside(shell, second)
        await shell.pilot.click(panes.row.panes[0].transcript)
        await shell.until(lambda: shell.in_view is first)
        assert shell.composer.has_focus


async def test_a_conversation_that_is_in_a_pane_is_gone_to_not_shown_twice(open_shell: Any, engine: Any) -> None:
    first, second = engine.seed("first", messages=2), engine.seed("second", messages=2)
    async with open_shell(WIDE) as shell:
        await shell.open(first)
        panes = await beside(shell, second)
        await shell.open(first)
        assert (panes.count, shell.in_view) == (2, first)
        third = engine.seed("third", messages=2)
        await shell.open(third)
        assert panes.shown == [third, second]
        assert (len(first.listeners), len(second.listeners), len(third.listeners)) == (0, 1, 1)


async def test_closing_gives_the_dock_to_the_neighbour_and_the_last_one_the_whole_screen(
    open_shell: Any, engine: Any
) -> None:
    first, second = engine.seed("first", messages=2), engine.seed("second", messages=2)
    async with open_shell(WIDE) as shell:
        await shell.open(first)
        panes = await beside(shell, second)
        await shell.press(PREVIOUS, until=lambda: shell.in_view is first)
        first.become(AwaitingLlm(1, RUN, Requesting()))
        await shell.press("alt+w", until=lambda: panes.count == 1)
        assert (shell.in_view, first.cancelled, first.listeners) == (second, 0, [])
        assert (panes_of(shell.ctx), shell.parts.title.heading.glyph) == (None, None)
        second.play(TextArrived("still here"))
        await shell.until(lambda: "still here" in shell.text)
        assert [type(one).__name__ for one in shell.dock.parent.displayed_children] == [
            "TitleRow",
            "TranscriptView",
            "Dock",
        ]


async def test_a_conversation_that_is_put_away_elsewhere_takes_its_pane_with_it(open_shell: Any, engine: Any) -> None:
    first, second = engine.seed("first", messages=2), engine.seed("second", messages=2)
    async with open_shell(WIDE) as shell:
        await shell.open(first)
        panes = await beside(shell, second)
        await engine.change(first.id, ConversationChanges(deleted=True))
        await shell.until(lambda: panes.count == 1)
        assert shell.in_view is second


async def test_whatever_is_asked_for_at_once_title_and_transcript_of_a_pane_belong_together(
    open_shell: Any, engine: Any
) -> None:
    made = [engine.seed(f"number {number}", messages=2) for number in range(4)]

    async def slow(_: object) -> tuple[()]:
        for _ in range(3):
            await asyncio.sleep(0)
        return ()

    engine.attachments = slow
    chance = random.Random(7)
    async with open_shell(WIDE) as shell:
        desk = shell.active
        await shell.open(made[0])
        panes = await beside(shell, *made[1:3])
        for _ in range(20):
            wanted = [
                panes.step(1),
                panes.step(-1),
                desk.begin(),
                *(desk.open(one.id) for one in made),
            ]
            chance.shuffle(wanted)
            await asyncio.gather(*wanted)
            for pane, shown in zip(panes.row.panes, panes.shown, strict=True):
                assert pane.title.heading.title == (shown.record.title if shown else "")
                assert pane.transcript.display is (shown is not None)
                assert shown is None or pane.transcript.canvas.model.conversation.id == shown.id
        assert sum(len(one.listeners) for one in made) == len([one for one in panes.shown if one])


async def test_a_fifth_pane_is_refused_and_keys_without_panes_say_how_to_make_one(open_shell: Any, engine: Any) -> None:
    made = [engine.seed(f"number {number}", messages=2) for number in range(MOST + 1)]
    async with open_shell(WIDE) as shell:
        await shell.open(made[0])
        await shell.press("f6", until=lambda: "Only one pane is open. /split adds one." in shell.toasts)
        panes = await beside(shell, *made[1:])
        assert panes.count == MOST
        assert "4 panes are already open; /close closes one." in shell.toasts


async def test_what_finishes_in_a_pane_in_sight_is_not_unread(open_shell: Any, engine: Any) -> None:
    first, second = engine.seed("first", messages=2), engine.seed("second", messages=2)
    async with open_shell(WIDE) as shell:
        await shell.open(first)
        await beside(shell, second)
        first.become(AwaitingLlm(1, RUN, Requesting()))
        first.answer_with("done")
        await shell.until(lambda: "done" in shell.text)
        assert engine.unread == set()


async def test_the_list_shows_its_row_in_a_pane(open_shell: Any, engine: Any) -> None:
    first, second = engine.seed("first", messages=2), engine.seed("second", messages=2)
    async with open_shell(WIDE) as shell:
        await shell.open(first)
        await shell.press("ctrl+l", until=lambda: shell.rows.has_focus)
        await shell.press("home")
        assert shell.rows.model.targets == (second.id,)
        await shell.press("|", until=lambda: shell.in_view is second)
        assert shown_panes(shell).shown == [first, second]
        await shell.until(lambda: shell.composer.has_focus)


async def test_an_empty_pane_beside_a_conversation_takes_a_new_one(open_shell: Any, engine: Any) -> None:
    first = engine.seed("first", messages=2)
    async with open_shell(WIDE) as shell:
        await shell.open(first)
        await split_with(shell.ctx, "")
        await shell.pilot.pause()
        assert shell.in_view is None
        assert shell.parts.welcome.is_on_screen
        new = await shell.say("hello")
        assert shown_panes(shell).shown == [first, new]


async def test_a_draft_that_is_stored_as_an_empty_pane_comes_stays_with_its_conversation(
    open_shell: Any, engine: Any
) -> None:
    first = engine.seed("first", messages=2)
    async with open_shell(WIDE) as shell:
        await shell.open(first)
        desk = shell.active
        async with desk.changing:
            await shell.type("half")
            desk.drafts.note_typing("half")
            storing = asyncio.create_task(desk.drafts.keep())
            await shell.until(lambda: first.record.draft == "half" or desk.changing._lock._waiters)
            await split_with(shell.ctx, "")
        assert await storing
        assert (first.record.draft, list(engine.stored)) == ("half", [first.id])


async def test_a_draft_without_a_conversation_is_not_stored_in_the_one_that_comes_meanwhile(
    open_shell: Any, engine: Any
) -> None:
    first = engine.seed("first", messages=2)
    async with open_shell(WIDE) as shell:
        desk = shell.active
        async with desk.changing:
            await shell.type("half")
            desk.drafts.note_typing("half")
            storing = asyncio.create_task(desk.drafts.keep())
            await shell.until(lambda: desk.changing._lock._waiters)
            await desk.show(first)
        assert await storing
        assert shell.in_view is first
        assert {one.id == first.id: one.draft for one in engine.stored.values()} == {True: "", False: "half"}


async def test_panes_come_back_after_a_restart_with_the_dock_where_it_was(open_shell: Any, engine: Any) -> None:
    made = [engine.seed(title, messages=2) for title in ("first", "second", "third")]
    async with open_shell(WIDE) as shell:
        await shell.open(made[0])
        panes = await beside(shell, *made[1:])
        await shell.press(PREVIOUS, until=lambda: recall(shell.active.launch.state_folder, engine.cwd).focus == 1)
        assert panes.count == 3
    async with open_shell(WIDE) as shell:
        await shell.until(lambda: panes_of(shell.ctx))
        assert shown_panes(shell).shown == made
        assert shell.in_view is made[1]
        made[0].play(TextArrived("live in the first"))
        await shell.until(lambda: "live in the first" in shell.text)


async def test_a_prompt_on_the_command_line_or_a_lost_conversation_leaves_the_panes_alone(
    open_shell: Any, engine: Any, tmp_path: Path
) -> None:
    first, second = engine.seed("first", messages=2), engine.seed("second", messages=2)
    remember(tmp_path / "state", tmp_path, Panes((first.id, second.id, "gone"), 2))
    async with open_shell(WIDE, prompt="do it") as shell:
        assert panes_of(shell.ctx) is None
        assert shell.conversation not in (first, second)
    remember(tmp_path / "state", tmp_path, Panes((first.id, second.id, "gone"), 0))
    second.read_only = "Process 7 has it open."
    async with open_shell(WIDE) as shell:
        assert panes_of(shell.ctx) is None


def test_remembered_panes_survive_writing_and_nonsense_is_none(tmp_path: Path) -> None:
    panes = Panes(("a", "b"), 1)
    remember(tmp_path, Path("/work/a"), panes)
    remember(tmp_path, Path("/work/b"), Panes(("c", "d")))
    assert recall(tmp_path, Path("/work/a")) == panes
    remember(tmp_path, Path("/work/a"), Panes(("a",)))
    assert recall(tmp_path, Path("/work/a")) == Panes()
    assert recall(tmp_path, Path("/work/b")).ids == ("c", "d")
    (tmp_path / FILE).write_text("{]")
    assert recall(tmp_path, Path("/work/b")) == Panes()
