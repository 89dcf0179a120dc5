"""The list in the running app: filter, marks, pins, a look inside, archive and trash."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from engine.machine.states import AwaitingLlm, Errored, Idle, Requesting, ToolExecuting, ToolRound
from engine.updates import TextArrived
from phoenix_tui.modals.archive_sheet import ArchiveSheet
from phoenix_tui.modals.peek_sheet import PeekSheet
from phoenix_tui.modals.text_sheet import ConfirmSheet
from tests.support.fake_engine import RUN, FakeEngine, question

LIST = 29
"""Cells of the list beside a conversation."""


def column(shell: Any) -> list[str]:
    """The list's own lines."""
    return [line[: LIST - 1].rstrip() for line in shell.text.splitlines() if line[: LIST - 1].strip()]


async def focused(shell: Any) -> None:
    await shell.pilot.press("ctrl+l")
    await shell.until(lambda: shell.rows.has_focus)


def titles(shell: Any) -> list[str]:
    stored = shell.engine.stored
    return [stored[one].title for one in shell.rows.model.order]


async def test_an_empty_list_says_what_to_do(open_shell: Any) -> None:
    async with open_shell((100, 20)) as shell:
        assert column(shell)[:1] == [" No conversations yet."]
        assert shell.text.count("Type to start") == 1


async def test_letters_after_a_slash_filter_and_enter_opens(open_shell: Any, engine: FakeEngine) -> None:
    for name in ("alpha", "beta", "gamma"):
        engine.seed(name, messages=2)
    async with open_shell((100, 20)) as shell:
        await focused(shell)
        await shell.type("/beta")
        await shell.until(lambda: titles(shell) == ["beta"])
        assert any("/beta▏" in line and "1 of 3" in line for line in column(shell))
        await shell.pilot.press("backspace", "ctrl+u")
        assert len(titles(shell)) == 3
        await shell.type("xyz")
        assert " No matches." in column(shell)
        await shell.pilot.press("escape")
        assert len(titles(shell)) == 3
        assert shell.rows.has_focus
        await shell.type("/alpha")
        await shell.pilot.press("enter")
        await shell.until(lambda: shell.in_view)
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


async def test_marked_rows_go_together_and_one_undo_brings_all_back(open_shell: Any, engine: FakeEngine) -> None:
    for name in ("one", "two", "three", "four"):
        engine.seed(name, messages=2)
    async with open_shell((100, 20)) as shell:
        await focused(shell)
        await shell.pilot.press("space", "v")
        await shell.until(lambda: any("2 marked" in line for line in column(shell)))
        await shell.pilot.press("d")
        await shell.until(lambda: titles(shell) == ["two", "one"])
        assert shell.toasts[-1] == "Moved 2 to the trash · u undoes."
        await shell.pilot.press("a")
        await shell.until(lambda: titles(shell) == ["one"])
        await shell.pilot.press("u")
        await shell.until(lambda: titles(shell) == ["two", "one"])
        await shell.pilot.press("u")
        await shell.until(lambda: titles(shell) == ["four", "three", "two", "one"])
        await shell.pilot.press("u")
        await shell.until(lambda: "There is nothing to restore; A shows the archive · D the trash." in shell.toasts)


async def test_escape_takes_the_marks_away_and_leaves_the_list_where_it_is(open_shell: Any, engine: FakeEngine) -> None:
    engine.seed("one", messages=2)
    async with open_shell((100, 20)) as shell:
        await focused(shell)
        await shell.pilot.press("space")
        assert shell.rows.model.marked
        await shell.pilot.press("escape")
        assert not shell.rows.model.marked
        assert shell.rows.has_focus


async def test_what_runs_or_is_open_elsewhere_is_not_put_away(open_shell: Any, engine: FakeEngine) -> None:
    for name in ("elsewhere", "runs", "rests"):
        engine.seed(name, messages=2)
    engine.bulk.elsewhere.add("c0000001")
    async with open_shell((100, 20)) as shell:
        engine.opened["c0000002"].become(AwaitingLlm(1, RUN, Requesting()))
        await focused(shell)
        await shell.pilot.press("space", "space", "space", "a")
        await shell.until(lambda: titles(shell) == ["runs", "elsewhere"])
        assert shell.toasts[-1] == (
            "Archived · u undoes. The conversation is running; stop it first. "
            "1 open in another Phoenix; close it there."
        )
        await shell.pilot.press("escape", "g", "x")
        await shell.until(lambda: engine.opened["c0000002"].cancelled == 1)


async def test_pins_stand_on_top_and_alt_1_opens_the_first(open_shell: Any, engine: FakeEngine) -> None:
    for name in ("one", "two", "three"):
        engine.seed(name, messages=2)
    async with open_shell((100, 20)) as shell:
        await focused(shell)
        await shell.pilot.press("G", "t")
        await shell.until(lambda: titles(shell) == ["one", "three", "two"])
        assert column(shell)[0] == " pinned"
        await shell.pilot.press("alt+1")
        await shell.until(lambda: shell.in_view)
        assert shell.conversation.record.title == "one"
        await shell.type("/pin")
        await shell.pilot.press("enter")
        await shell.until(lambda: titles(shell) == ["three", "two", "one"])


async def test_a_live_update_leaves_the_cursor_on_its_conversation(open_shell: Any, engine: FakeEngine) -> None:
    for name in ("one", "two", "three", "four"):
        engine.seed(name, messages=2)
    async with open_shell((100, 20)) as shell:
        await focused(shell)
        await shell.pilot.press("j", "j")
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
        await shell.pilot.press("k", "p")
        await shell.until(lambda: isinstance(shell.top, PeekSheet))
        await shell.until(lambda: "message 3" in shell.text and "┃ message 2" in shell.text)
        await shell.type("go on")
        await shell.pilot.press("enter")
        await shell.until(lambda: other.said == [("go on", ())])
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
        await shell.pilot.press("g", "right")
        await shell.until(lambda: "rm -r build && make test" in shell.text)

        async def answered() -> bool:
            await shell.pilot.press("s")
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
        await shell.pilot.press("p")
        await shell.until(lambda: "The server cannot be reached" in shell.text)
        await shell.pilot.press("enter")
        await shell.until(lambda: shell.in_view)
        assert shell.conversation.record.title == "there"


async def test_the_archive_gives_back_and_the_trash_removes_for_good(open_shell: Any, engine: FakeEngine) -> None:
    for name in ("one", "two", "three"):
        engine.seed(name, messages=2)
    async with open_shell((100, 20)) as shell:
        await focused(shell)
        await shell.pilot.press("a", "d")
        await shell.until(lambda: titles(shell) == ["one"])
        await shell.pilot.press("A")
        await shell.until(lambda: isinstance(shell.top, ArchiveSheet) and "three" in shell.text)
        await shell.pilot.press("u")
        await shell.until(lambda: "The archive is empty." in shell.text)
        await shell.pilot.press("escape")
        await shell.until(lambda: titles(shell) == ["three", "one"])
        await shell.pilot.press("D")
        await shell.until(lambda: isinstance(shell.top, ArchiveSheet) and "two" in shell.text)
        await shell.pilot.press("d")
        await shell.until(lambda: isinstance(shell.top, ConfirmSheet))
        assert "Delete 1 conversation permanently? This cannot be undone." in shell.text
        await shell.pilot.press("n", "d", "y")
        await shell.until(lambda: "The trash is empty." in shell.text)
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
        await shell.pilot.press("D")
        await shell.until(lambda: isinstance(shell.top, ArchiveSheet) and "The trash is empty." in shell.text)
        sheet = shell.top.query_one(".sheet")
        await shell.until(lambda: sheet.size.height <= 5)
        await shell.pilot.press("escape")
        await shell.until(lambda: shell.top is shell.screen)
        await shell.pilot.press("A")
        await shell.until(lambda: isinstance(shell.top, ArchiveSheet) and "30 conversations" in shell.text)
        rows = [row for row in shell.text.splitlines() if "put away" in row]
        assert 10 <= len(rows) <= 24 * 7 // 10


async def test_the_list_lies_over_a_narrow_screen(open_shell: Any, engine: FakeEngine) -> None:
    engine.seed("日本語のとても長いタイトルがここにあるのだ", messages=2)
    async with open_shell((60, 20)) as shell:
        await focused(shell)
        assert any("日本語のとても長いタ" in line and "…" in line for line in shell.text.splitlines())
        await shell.pilot.press("slash", "escape", "escape")
        await shell.until(lambda: not shell.rows.has_focus)


async def test_the_list_fills_its_rows_before_it_is_told_of_its_size(open_shell: Any, engine: FakeEngine) -> None:
    for number in range(30):
        engine.seed(f"talk {number}", messages=2)
    async with open_shell((60, 20)) as shell:
        await focused(shell)
        await shell.until(lambda: shell.text.count("talk ") >= 15)
        shell.rows.model.resize(1)
        shell.rows.show(shell.rows.model._summaries.values(), {}, "")
        await shell.until(lambda: shell.text.count("talk ") >= 15)
