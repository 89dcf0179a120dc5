"""Ctrl+F finds here, twice searches everywhere; Enter goes to a hit, Esc back to where one was."""

from __future__ import annotations

from typing import Any

import pytest

from engine.records import FoundText
from phoenix_tui.modals.find_sheet import FindSheet, FoundPlaces, HitSheet
from phoenix_tui.modals.search_sheet import HitList, SearchSheet
from phoenix_tui.widgets.transcript.marks import Goal
from tests.support.fake_engine import FakeEngine


def marked(shell: Any) -> list[str]:
    """Reversed text in the transcript: the current place."""
    view = shell.transcript
    return [
        segment.text
        for strip in view.render_lines(view.size.region)
        for segment in strip
        if segment.style is not None and segment.style.reverse
    ]


def marked_row(shell: Any) -> str:
    """The row of the current place."""
    view = shell.transcript
    rows = view.render_lines(view.size.region)
    return "".join(row.text for row in rows if any(one.style is not None and one.style.reverse for one in row))


async def test_find_counts_marks_and_goes_from_place_to_place(open_shell: Any, engine: FakeEngine) -> None:
    conversation = engine.seed("long", messages=60)
    conversation.add("a needle at the end")
    async with open_shell() as shell:
        await shell.open(conversation)
        await shell.pilot.press("ctrl+f")
        await shell.until(lambda: isinstance(shell.top, FindSheet))
        await shell.type("message 1")
        await shell.until(lambda: "11 of 11" in shell.text)
        await shell.until(lambda: marked(shell) == ["message 1"])
        await shell.until(lambda: "message 19" in shell.text)
        await shell.pilot.press("enter")
        await shell.until(lambda: "10 of 11" in shell.text)
        await shell.until(lambda: "message 18" in shell.text)
        await shell.pilot.press("down", "down")
        await shell.until(lambda: "1 of 11" in shell.text)
        await shell.until(lambda: "message 1" in shell.text)
        await shell.until(lambda: "message 19" not in shell.text)
        await shell.pilot.press("escape")
        await shell.until(lambda: shell.top is shell.screen)
        await shell.until(lambda: "message 2" in shell.text)
        await shell.until(lambda: marked(shell) == [])


def test_places_are_counted_without_being_made() -> None:
    places = FoundPlaces([FoundText(2, "", 3), FoundText(2, "c", 1), FoundText(9, "", 50_000_000)])
    assert places.count == 50_000_004
    assert [places.goal(place) for place in (0, 2, 3, 4)] == [
        Goal(2, "", 0), Goal(2, "", 2), Goal(2, "c", 0), Goal(9, "", 0)
    ]  # fmt: skip
    assert places.goal(50_000_003) == Goal(9, "", 49_999_999)
    assert [places.last_up_to(seq) for seq in (1, 2, 8, 9)] == [0, 3, 3, 50_000_003]


async def test_nothing_found_is_said_and_escape_leaves_the_position(open_shell: Any, engine: FakeEngine) -> None:
    conversation = engine.seed("short", messages=4)
    async with open_shell((60, 20)) as shell:
        await shell.open(conversation)
        await shell.pilot.press("ctrl+f")
        await shell.type("absent")
        await shell.until(lambda: "nothing" in shell.text)
        await shell.pilot.press("enter", "escape")
        await shell.until(lambda: shell.top is shell.screen)
        await shell.until(lambda: "message 3" in shell.text)


async def test_ctrl_f_twice_searches_everything_for_the_same_text(open_shell: Any, engine: FakeEngine) -> None:
    one, two = engine.seed("first one", messages=40), engine.seed("second one", messages=3)
    two.add("the hidden treasure")
    async with open_shell() as shell:
        await engine.open(two.id)
        await shell.open(one)
        await shell.pilot.press("ctrl+f")
        await shell.type("hidden treasure")
        await shell.until(lambda: "nothing" in shell.text)
        await shell.pilot.press("ctrl+f")
        await shell.until(lambda: isinstance(shell.top, SearchSheet) and "1 of 1" in shell.text)
        assert '"hidden treasure"' in shell.text
        await shell.until(lambda: "second one" in shell.text)
        await shell.pilot.press("enter")
        await shell.until(lambda: isinstance(shell.top, HitSheet))
        assert shell.conversation.id == two.id
        await shell.until(lambda: marked(shell) == ["hidden treasure"])
        await shell.pilot.press("escape")
        await shell.until(lambda: isinstance(shell.top, SearchSheet))
        await shell.until(lambda: "the hidden treasure" in shell.text)
        await shell.pilot.press("escape")
        await shell.until(lambda: shell.top is shell.screen)
        assert shell.conversation.id == one.id


async def test_a_search_by_command_steps_through_hits_and_stays_at_one(open_shell: Any, engine: FakeEngine) -> None:
    one, two = engine.seed("first one", messages=2), engine.seed("second one", messages=2)
    async with open_shell((120, 40)) as shell:
        await engine.open(one.id)
        await engine.open(two.id)
        await shell.type("/search message 1")
        await shell.pilot.press("enter")
        await shell.until(lambda: "1 of 2" in shell.text)
        await shell.pilot.press("enter")
        await shell.until(lambda: isinstance(shell.top, HitSheet))
        first = shell.conversation.id
        await shell.pilot.press("n")
        await shell.until(lambda: isinstance(shell.top, HitSheet) and "Hit 2 of 2" in shell.text)
        assert {first, shell.conversation.id} == {one.id, two.id}
        await shell.pilot.press("enter")
        await shell.until(lambda: shell.top is shell.screen)
        assert shell.conversation.id != first
        assert shell.screen.focused is shell.composer


async def test_a_mistake_is_shown_where_it_stands_and_keys_go_on(open_shell: Any, engine: FakeEngine) -> None:
    async with open_shell() as shell:
        await shell.type("/search")
        await shell.pilot.press("enter")
        await shell.until(lambda: isinstance(shell.top, SearchSheet))
        await shell.type("find role")
        await shell.pilot.press("colon")
        await shell.type("boss")
        await shell.until(lambda: "^^^^^^^^^ boss is not a role; use user, assistant, tool." in shell.text)
        lines = shell.text.splitlines()
        row = next(place for place, line in enumerate(lines) if "^^^" in line)
        assert lines[row - 1].index("role:boss") == lines[row].index("^")
        await shell.pilot.press(*["backspace"] * 9)
        await shell.until(lambda: "No matches" in shell.text)
        await shell.until(lambda: engine.searched[-1].words == ("find",))


async def test_where_a_mistake_has_no_room_its_sentence_takes_the_place_of_the_heading(open_shell: Any) -> None:
    async with open_shell((60, 20)) as shell:
        await shell.type("/search")
        await shell.pilot.press("enter")
        await shell.until(lambda: isinstance(shell.top, SearchSheet))
        await shell.type("a longer search after")
        await shell.pilot.press("colon")
        await shell.until(lambda: "after: needs a value, such as after:2026-11-01." in shell.text)
        await shell.until(lambda: "^^^^^^" in shell.text)
        await shell.until(lambda: "Enter opens" not in shell.text)


async def test_a_click_opens_a_hit_and_the_wheel_moves_on(open_shell: Any, engine: FakeEngine) -> None:
    conversation = engine.seed("clicked", messages=30)
    async with open_shell() as shell:
        await engine.open(conversation.id)
        await shell.type("/search message")
        await shell.pilot.press("enter")
        await shell.until(lambda: "1 of 30" in shell.text)
        rows = shell.top.query_one(HitList)
        rows.post_message(HitList.Turned(1))
        await shell.until(lambda: "2 of 30" in shell.text)
        await shell.pilot.click(rows, offset=(5, 9))
        await shell.until(lambda: isinstance(shell.top, HitSheet))
        await shell.until(lambda: "message 4" in marked_row(shell))
        await shell.until(lambda: "Hit 5 of 30" in shell.text)


async def test_tab_searches_in_this_folder_only(open_shell: Any, engine: FakeEngine) -> None:
    async with open_shell() as shell:
        await shell.type("/search word")
        await shell.pilot.press("enter")
        await shell.until(lambda: engine.searched)
        await shell.pilot.press("tab")
        await shell.until(
            lambda: "this folder, Tab everywhere" in shell.text and engine.searched[-1].folder is not None
        )
        assert engine.searched[-1].folder == shell.active.folder
        await shell.pilot.press("tab")
        await shell.until(lambda: engine.searched[-1].folder is None)


@pytest.mark.parametrize("size", [(60, 20), (240, 70)])
async def test_the_search_fits_small_and_large_screens(
    open_shell: Any, engine: FakeEngine, size: tuple[int, int]
) -> None:
    conversation = engine.seed("A conversation with a rather long title " * 3, messages=80)
    async with open_shell(size) as shell:
        await engine.open(conversation.id)
        await shell.type("/search message")
        await shell.pilot.press("enter")
        await shell.until(lambda: "1 of 80" in shell.text)
        room = (size[1] - 8) // 2  # the sheet grows a frame after the hits are there
        await shell.until(lambda: sum("you" in line or "agent" in line for line in shell.text.splitlines()) >= room)
        assert all(len(line) <= size[0] for line in shell.text.splitlines())
        await shell.pilot.press("pagedown", "down")
        await shell.until(lambda: "▌ " in shell.text and "1 of 80" not in shell.text)
