"""The list of conversations: keys, marks, filters, removal and its undo."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from msgspec.structs import replace
from textual.css.query import NoMatches
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Static

from engine.machine.messages import Role
from engine.machine.states import AwaitingLlm, Errored, Idle, Requesting, ToolExecuting, ToolRound
from engine.updates import TextArrived
from phoenix_tui.modals.archive_sheet import ArchiveSheet
from phoenix_tui.modals.base import Sheet
from phoenix_tui.modals.find_sheet import FindSheet
from phoenix_tui.modals.peek_sheet import PeekSheet
from phoenix_tui.modals.text_sheet import ConfirmSheet
from phoenix_tui.widgets import conversation_list
from tests.support.clocks import SteppedClock
from tests.support.fake_engine import RUN, FakeEngine, question
from tests.support.waiting import poll

LIST = 29
"""Cells of the list beside a conversation."""


def column(shell: Any) -> list[str]:
    """The list's own lines."""
    return [line[: LIST - 1].rstrip() for line in shell.text.splitlines() if line[: LIST - 1].strip()]


async def focused(shell: Any) -> None:
    await shell.press("ctrl+l", until=lambda: shell.rows.has_focus)


def titles(shell: Any) -> list[str]:
    stored = shell.engine.stored
    return [stored[one].title for one in shell.rows.model.order]


async def test_an_empty_list_says_what_to_do(open_shell: Any) -> None:
    async with open_shell((100, 20)) as shell:
        assert "No conversations yet." not in shell.text
        assert not shell.rows.display
        await focused(shell)
        assert column(shell)[:1] == [" No conversations yet."]
        assert shell.text.count("Type to start") == 1


async def test_letters_after_a_slash_filter_and_enter_opens(open_shell: Any, engine: FakeEngine) -> None:
    for name in ("alpha", "beta", "gamma"):
        engine.seed(name, messages=2)
    async with open_shell((100, 20)) as shell:
        await focused(shell)
        await shell.type("/beta", until=lambda: titles(shell) == ["beta"])
        assert any("/beta▏" in line and "1 of 3" in line for line in column(shell))
        await shell.press("backspace", "ctrl+u")
        assert len(titles(shell)) == 3
        await shell.type("xyz")
        assert " No matches." in column(shell)
        await shell.press("escape")
        assert len(titles(shell)) == 3
        assert shell.rows.has_focus
        await shell.enter("/alpha", until=lambda: shell.in_view)
        assert shell.conversation.record.title == "alpha"
        assert len(titles(shell)) == 3


async def test_a_row_says_what_its_conversation_does_out_of_sight(open_shell: Any, engine: FakeEngine) -> None:
    working, shown = engine.seed("working", messages=2), engine.seed("shown", messages=2)
    async with open_shell((120, 20)) as shell:
        await shell.open(shown)
        working.become(AwaitingLlm(1, RUN, Requesting()))
        await shell.until(lambda: "thinking" in "".join(column(shell)))
        working.play(TextArrived("It"), TextArrived(" is"))
        await shell.until(lambda: "writing" in "".join(column(shell)))
        working.become(ToolExecuting(2, RUN, ToolRound("m", question().call)))
        await shell.until(lambda: "bash" in "".join(column(shell)))
        working.become(AwaitingLlm(3, RUN, Requesting()))
        await shell.until(lambda: "thinking" in "".join(column(shell)))
        working.become(Idle(4))
        await shell.until(lambda: not {"thinking", "writing", "bash"} & set("".join(column(shell)).split()))


async def test_a_long_title_leaves_its_folder_in_the_row_above(open_shell: Any, engine: FakeEngine) -> None:
    conversation = engine.seed("rate limits per customer, per key and per address, and at midnight too", messages=2)
    async with open_shell((80, 20)) as shell:
        await shell.open(conversation)
        await shell.until(lambda: "rate limits per customer" in shell.text.splitlines()[0])
        folder = shell.parts.title.heading.folder
        assert re.search(rf"… · .*{re.escape(folder[-8:])} ", shell.text.splitlines()[0])


async def test_half_of_the_zoomed_list_previews_the_chosen_conversation(open_shell: Any, engine: FakeEngine) -> None:
    for name in ("old", "new"):
        conversation = engine.seed(name)
        conversation.add(f"ask {name}")
        conversation.add(f"**answer** of {name}", Role.ASSISTANT)
        engine.spoken[conversation.id] = conversation.messages
    async with open_shell((120, 30)) as shell:
        await focused(shell)
        await shell.press("z", shows="answer of new")
        assert "┃ ask new" in shell.text
        assert "title" in shell.text.splitlines()[0]
        await shell.press("j", shows="answer of old")
        assert "answer of new" not in shell.text
        await shell.press("z")
        await shell.lacks("answer of old")
        await shell.press("z", shows="answer of old")
        await shell.press("escape")
        await shell.lacks("answer of old")


async def test_a_zoomed_list_on_a_narrower_screen_has_no_preview(open_shell: Any, engine: FakeEngine) -> None:
    conversation = engine.seed("old")
    conversation.add("answer", Role.ASSISTANT)
    engine.spoken[conversation.id] = conversation.messages
    async with open_shell((110, 30)) as shell:
        await focused(shell)
        await shell.press("z", until=lambda: shell.rows.size.width == 110)
        await shell.pilot.resize_terminal(130, 30)
        await shell.until(lambda: "answer" in shell.text and shell.rows.size.width == 65)
        await shell.pilot.resize_terminal(110, 30)
        await shell.until(lambda: "answer" not in shell.text and shell.rows.size.width == 110)


async def test_ages_go_on_while_nothing_else_happens(
    open_shell: Any, engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conversation_list, "AGES_EVERY", 0.05)
    seeded = engine.seed("one", messages=2)
    clock = SteppedClock()
    seeded.record = replace(seeded.record, updated_at=clock.now())
    async with open_shell((100, 20)) as shell:
        shell.rows.model.clock = clock
        await shell.until(lambda: any(line.endswith("now") for line in column(shell)))
        clock.seconds += 120.0
        await shell.until(lambda: any(line.endswith("2m") for line in column(shell)))


async def test_marked_rows_go_together_and_one_undo_brings_all_back(open_shell: Any, engine: FakeEngine) -> None:
    for name in ("one", "two", "three", "four"):
        engine.seed(name, messages=2)
    async with open_shell((100, 20)) as shell:
        await focused(shell)
        await shell.press("space", "v", until=lambda: any("2 marked" in line for line in column(shell)))
        await shell.press("d", until=lambda: titles(shell) == ["two", "one"])
        assert shell.toasts[-1] == "Moved 2 to the trash · u undoes."
        await shell.press("a", until=lambda: titles(shell) == ["one"])
        await shell.press("u", until=lambda: titles(shell) == ["two", "one"])
        await shell.press("u", until=lambda: titles(shell) == ["four", "three", "two", "one"])
        await shell.press("u")
        await shell.until(lambda: "There is nothing to restore; A shows the archive · D the trash." in shell.toasts)


async def test_escape_takes_the_marks_away_and_leaves_the_list_where_it_is(open_shell: Any, engine: FakeEngine) -> None:
    engine.seed("one", messages=2)
    async with open_shell((100, 20)) as shell:
        await focused(shell)
        await shell.press("space")
        assert shell.rows.model.marked
        await shell.press("escape")
        assert not shell.rows.model.marked
        assert shell.rows.has_focus


async def test_what_runs_or_is_open_elsewhere_is_not_put_away(open_shell: Any, engine: FakeEngine) -> None:
    for name in ("elsewhere", "runs", "rests"):
        engine.seed(name, messages=2)
    engine.bulk.elsewhere.add("c0000001")
    async with open_shell((100, 20)) as shell:
        engine.opened["c0000002"].become(AwaitingLlm(1, RUN, Requesting()))
        await focused(shell)
        await shell.press("space", "space", "space", "a", until=lambda: titles(shell) == ["runs", "elsewhere"])
        assert shell.toasts[-1] == (
            "Archived · u undoes. The conversation is running; stop it first. "
            "1 open in another Phoenix; close it there."
        )
        await shell.press("escape", "g", "x", until=lambda: engine.opened["c0000002"].cancelled == 1)


async def test_pins_stand_on_top_and_alt_1_opens_the_first(open_shell: Any, engine: FakeEngine) -> None:
    for name in ("one", "two", "three"):
        engine.seed(name, messages=2)
    async with open_shell((100, 20)) as shell:
        await focused(shell)
        await shell.press("G", "t", until=lambda: titles(shell) == ["one", "three", "two"])
        assert column(shell)[0] == " pinned"
        await shell.press("alt+1", until=lambda: shell.in_view)
        assert shell.conversation.record.title == "one"
        await shell.enter("/pin", until=lambda: titles(shell) == ["three", "two", "one"])


async def test_a_live_update_leaves_the_cursor_on_its_conversation(open_shell: Any, engine: FakeEngine) -> None:
    for name in ("one", "two", "three", "four"):
        engine.seed(name, messages=2)
    async with open_shell((100, 20)) as shell:
        await focused(shell)
        await shell.press("j", "j")
        model = shell.rows.model
        assert engine.stored[model.chosen].title == "two"
        engine.opened["c0000001"].become(AwaitingLlm(1, RUN, Requesting()))
        await shell.until(lambda: titles(shell)[0] == "one")
        assert engine.stored[model.chosen].title == "two"
        engine.opened["c0000002"].become(AwaitingLlm(1, RUN, Requesting()))
        await shell.until(lambda: titles(shell)[:2] == ["one", "two"])
        assert engine.stored[model.chosen].title == "two"


async def test_a_look_inside_shows_the_newest_words_and_replies(open_shell: Any, engine: FakeEngine) -> None:
    engine.seed("here", messages=2)
    other = engine.seed("there", messages=4)
    async with open_shell((100, 20)) as shell:
        await shell.open(engine.opened["c0000001"])
        await focused(shell)
        await shell.press("k", "p", until=lambda: isinstance(shell.top, PeekSheet))
        await shell.until(lambda: "message 3" in shell.text and "┃ message 2" in shell.text)
        await shell.enter("go on", until=lambda: other.said == [("go on", ())])
        assert shell.conversation.record.title == "here"
        assert shell.rows.has_focus
        assert shell.toasts[-1] == "there: sent."


async def test_a_look_inside_answers_the_open_question(open_shell: Any, engine: FakeEngine) -> None:
    engine.seed("here", messages=2)
    other = engine.seed("there", messages=2)
    async with open_shell((100, 20)) as shell:
        other.ask(question())
        await shell.open(engine.opened["c0000001"])
        await focused(shell)
        await shell.press("g", "right", shows="rm -r build && make test")

        async def answered() -> bool:
            await shell.press("s")
            return bool(other.answers)

        while not await answered():  # letters count only after a moment
            await shell.pilot.pause()
        assert [(call, answer.choice.value) for call, answer in other.answers] == [("call-1", "conversation")]
        assert shell.conversation.record.title == "here"


async def test_a_look_inside_says_why_a_run_failed(open_shell: Any, engine: FakeEngine) -> None:
    other = engine.seed("there", messages=2)
    async with open_shell((100, 20)) as shell:
        other.become(Errored(1, "network", "The server cannot be reached: check the address.", True, "r"))
        await focused(shell)
        await shell.press("p", shows="The server cannot be reached")
        await shell.press("enter", until=lambda: shell.in_view)
        assert shell.conversation.record.title == "there"


async def test_the_archive_gives_back_and_the_trash_removes_for_good(open_shell: Any, engine: FakeEngine) -> None:
    for name in ("one", "two", "three"):
        engine.seed(name, messages=2)
    async with open_shell((100, 20)) as shell:
        await focused(shell)
        await shell.press("a", "d", until=lambda: titles(shell) == ["one"])
        await shell.press("A", until=lambda: isinstance(shell.top, ArchiveSheet) and "three" in shell.text)
        await shell.press("u", shows="The archive is empty.")
        await shell.press("escape", until=lambda: titles(shell) == ["three", "one"])
        await shell.press("D", until=lambda: isinstance(shell.top, ArchiveSheet) and "two" in shell.text)
        await shell.press("d", until=lambda: isinstance(shell.top, ConfirmSheet))
        assert "Delete 1 conversation permanently? This cannot be undone." in shell.text
        await shell.press("n", "d", "y", shows="The trash is empty.")
        assert [one.title for one in engine.stored.values()] == ["one", "three"]


async def test_archive_and_trash_take_as_many_rows_as_they_have_up_to_most_of_the_screen(
    open_shell: Any, engine: FakeEngine
) -> None:
    for number in range(30):
        one = engine.seed(f"put away {number}", messages=2)
        engine.stored[one.id] = one.record = replace(one.record, archived=True)
    empty = engine.seed("")  # begun and left, not deleted
    engine.stored[empty.id] = empty.record = replace(empty.record, deleted=True)
    async with open_shell((80, 24)) as shell:
        await focused(shell)
        await shell.press("D")
        await shell.until(lambda: isinstance(shell.top, ArchiveSheet) and "The trash is empty." in shell.text)
        sheet = shell.top.query_one(".sheet")
        await shell.until(lambda: sheet.size.height <= 5)
        await shell.press("escape", until=lambda: shell.top is shell.screen)
        await shell.press("A", until=lambda: isinstance(shell.top, ArchiveSheet) and "30 conversations" in shell.text)
        rows = [row for row in shell.text.splitlines() if "put away" in row]
        assert 10 <= len(rows) <= 24 * 7 // 10


async def test_the_list_lies_over_a_narrow_screen(open_shell: Any, engine: FakeEngine) -> None:
    engine.seed("日本語のとても長いタイトルがここにあるのだ", messages=2)
    async with open_shell((60, 20)) as shell:
        await focused(shell)
        assert any("日本語のとても長いタ" in line and "…" in line for line in shell.text.splitlines())
        await shell.press("slash", "escape", "escape", until=lambda: not shell.rows.has_focus)


async def test_the_list_fills_its_rows_before_it_is_told_of_its_size(open_shell: Any, engine: FakeEngine) -> None:
    for number in range(30):
        engine.seed(f"talk {number}", messages=2)
    async with open_shell((60, 20)) as shell:
        await focused(shell)
        await shell.until(lambda: shell.text.count("talk ") >= 15)
        shell.rows.model.resize(1)
        shell.rows.show(shell.rows.model._summaries.values(), {}, "")
        await shell.until(lambda: shell.text.count("talk ") >= 15)


class Lingering(Widget):
    """Delays the removal of its screen until a test lets it go."""

    def __init__(self) -> None:
        super().__init__()
        self.let = asyncio.Event()

    async def on_unmount(self) -> None:
        await self.let.wait()


async def open_find_bar(shell: Any) -> FindSheet:
    await shell.press("ctrl+f", until=lambda: isinstance(shell.top, FindSheet) and shell.top.query("#heading"))
    sheet = shell.top
    assert isinstance(sheet, FindSheet)
    return sheet


async def half_removed(shell: Any, sheet: Sheet[Any]) -> Lingering:
    """Dismiss the sheet, and stop where its widgets have gone and it has not."""
    lingering = Lingering()
    await sheet.mount(lingering)
    sheet.dismiss()
    assert await poll(lambda: not sheet.query("#heading"))
    return lingering


async def gone(shell: Any, sheet: Sheet[Any]) -> bool:
    return await poll(lambda: not sheet.is_attached and not sheet.is_running) and isinstance(shell.top, Screen)


async def test_a_worker_that_draws_on_a_sheet_half_removed_ends_nothing(open_shell: Any, engine: FakeEngine) -> None:
    answered = asyncio.Event()

    async def late() -> None:
        await answered.wait()
        sheet.query_one("#heading", Static)

    async with open_shell() as shell:
        await shell.open(engine.seed("one", messages=4))
        sheet = await open_find_bar(shell)
        worker = sheet.run_worker(late())
        lingering = await half_removed(shell, sheet)
        answered.set()
        assert await poll(lambda: worker.is_finished)
        assert isinstance(worker.error, NoMatches)
        lingering.let.set()
        assert await gone(shell, sheet)
        await shell.type("still here", until=lambda: shell.composer.text == "still here")
        assert (shell.app._exception, shell.app.shutdown.crash_note) == (None, "")


async def test_the_find_bar_draws_no_answer_that_comes_while_it_leaves(open_shell: Any, engine: FakeEngine) -> None:
    asked, answered = asyncio.Event(), asyncio.Event()

    async def find(*_: object) -> tuple[()]:
        asked.set()
        await answered.wait()
        return ()

    async with open_shell() as shell:
        await shell.open(engine.seed("one", messages=4))
        sheet = await open_find_bar(shell)
        sheet._library = type("Slow", (), {"find": staticmethod(find)})()
        await shell.type("x")
        await asked.wait()
        worker = next(one for one in shell.app.workers if one.group == "find" and not one.is_finished)
        lingering = await half_removed(shell, sheet)
        answered.set()
        assert await poll(lambda: worker.is_finished)
        assert worker.error is None
        lingering.let.set()
        assert await gone(shell, sheet)


async def test_the_screen_outlives_what_a_removed_widget_asked_it_to_call(open_shell: Any) -> None:
    class Removed(Static):
        def look(self) -> None:
            called.set()
            self.query_one("#nothing")

    called = asyncio.Event()
    async with open_shell() as shell:
        widget = Removed()
        await shell.screen.mount(widget)
        await widget.remove()
        shell.screen.call_after_refresh(widget.look)
        shell.screen.refresh()
        await asyncio.wait_for(called.wait(), 10)
        await shell.type("still here", until=lambda: shell.composer.text == "still here")
        assert (shell.app._exception, shell.app.shutdown.crash_note) == (None, "")


async def in_a_worker(screen: Any, look: Callable[[], Awaitable[None]]) -> None:
    screen.run_worker(look())


async def after_a_refresh(screen: Any, look: Callable[[], Awaitable[None]]) -> None:
    screen.call_after_refresh(look)
    screen.refresh()


@pytest.mark.parametrize("run", [in_a_worker, after_a_refresh])
async def test_the_same_fault_of_a_screen_that_stays_is_a_crash(open_shell: Any, run: Any) -> None:
    async def look() -> None:
        shell.screen.query_one("#nothing")

    with pytest.raises(Exception, match="#nothing"):
        async with open_shell() as shell:
            await run(shell.screen, look)
            assert await poll(lambda: shell.app.shutdown.crash_note)
    assert "#nothing" not in shell.app.shutdown.crash_note
