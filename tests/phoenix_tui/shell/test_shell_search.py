"""Search over conversations and in one, and the sheet of a summary."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from textual.widgets import TextArea

from engine.executor.requests import DropSummary, Proposal, Refused, SummarizeAgain, SummaryDecision, TakeSummary
from engine.machine.states import Compacting, Idle
from engine.ports import StorageError
from engine.records import FoundText, SearchAnswer, SearchHit
from engine.search import SearchQuery, Speaker
from phoenix_tui.modals.context_sheet import SummarySheet
from phoenix_tui.modals.find_sheet import FindSheet, FoundPlaces, HitSheet
from phoenix_tui.modals.search_sheet import HitList, HitRows, SearchLoop, SearchSheet
from phoenix_tui.widgets.answer_gate import GRACE
from phoenix_tui.widgets.transcript.marks import Goal
from tests.support.clocks import SteppedClock
from tests.support.fake_engine import FakeEngine
from tests.support.shell import Shell
from tests.support.waiting import poll
from tools.contract import JsonObject


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
        await shell.press("ctrl+f", until=lambda: isinstance(shell.top, FindSheet))
        await shell.type("message 1", shows="11 of 11")
        await shell.until(lambda: marked(shell) == ["message 1"])
        await shell.until(lambda: "message 19" in shell.text)
        await shell.press("enter", shows="10 of 11")
        await shell.until(lambda: "message 18" in shell.text)
        await shell.press("down", "down", shows="1 of 11")
        await shell.until(lambda: "message 1" in shell.text)
        await shell.until(lambda: "message 19" not in shell.text)
        await shell.press("escape", until=lambda: shell.top is shell.screen)
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
        await shell.press("ctrl+f")
        await shell.type("absent", shows="nothing")
        await shell.press("enter", "escape", until=lambda: shell.top is shell.screen)
        await shell.until(lambda: "message 3" in shell.text)


async def test_ctrl_f_twice_searches_everything_for_the_same_text(open_shell: Any, engine: FakeEngine) -> None:
    one, two = engine.seed("first one", messages=40), engine.seed("second one", messages=3)
    two.add("the hidden treasure")
    async with open_shell() as shell:
        await engine.open(two.id)
        await shell.open(one)
        await shell.press("ctrl+f")
        await shell.type("hidden treasure", shows="nothing")
        await shell.press("ctrl+f", until=lambda: isinstance(shell.top, SearchSheet) and "1 of 1" in shell.text)
        assert '"hidden treasure"' in shell.text
        await shell.until(lambda: "second one" in shell.text)
        await shell.press("enter", until=lambda: isinstance(shell.top, HitSheet))
        assert shell.conversation.id == two.id
        await shell.until(lambda: marked(shell) == ["hidden treasure"])
        await shell.press("escape", until=lambda: isinstance(shell.top, SearchSheet))
        await shell.until(lambda: "the hidden treasure" in shell.text)
        await shell.press("escape", until=lambda: shell.top is shell.screen)
        assert shell.conversation.id == one.id


async def test_a_search_by_command_steps_through_hits_and_stays_at_one(open_shell: Any, engine: FakeEngine) -> None:
    one, two = engine.seed("first one", messages=2), engine.seed("second one", messages=2)
    async with open_shell((120, 40)) as shell:
        await engine.open(one.id)
        await engine.open(two.id)
        await shell.enter("/search message 1", shows="1 of 2")
        await shell.press("enter", until=lambda: isinstance(shell.top, HitSheet))
        first = shell.conversation.id
        await shell.press("n", until=lambda: isinstance(shell.top, HitSheet) and "Hit 2 of 2" in shell.text)
        assert {first, shell.conversation.id} == {one.id, two.id}
        await shell.press("enter", until=lambda: shell.top is shell.screen)
        assert shell.conversation.id != first
        assert shell.screen.focused is shell.composer


async def test_a_mistake_is_shown_where_it_stands_and_keys_go_on(shell: Shell, engine: FakeEngine) -> None:
    await shell.enter("/search", until=lambda: isinstance(shell.top, SearchSheet))
    await shell.type("find role", "colon")
    await shell.type("boss", shows="^^^^^^^^^ boss is not a role; use user, assistant, tool.")
    lines = shell.text.splitlines()
    row = next(place for place, line in enumerate(lines) if "^^^" in line)
    assert lines[row - 1].index("role:boss") == lines[row].index("^")
    await shell.press(*["backspace"] * 9, shows="No matches")
    await shell.until(lambda: engine.searched[-1].words == ("find",))


async def test_where_a_mistake_has_no_room_its_sentence_takes_the_place_of_the_heading(open_shell: Any) -> None:
    async with open_shell((60, 20)) as shell:
        await shell.enter("/search", until=lambda: isinstance(shell.top, SearchSheet))
        await shell.type("a longer search after", "colon", shows="after: needs a value, such as after:2026-11-01.")
        await shell.until(lambda: "^^^^^^" in shell.text)
        await shell.until(lambda: "Enter opens" not in shell.text)


async def test_a_click_opens_a_hit_and_the_wheel_moves_on(open_shell: Any, engine: FakeEngine) -> None:
    conversation = engine.seed("clicked", messages=30)
    async with open_shell() as shell:
        await engine.open(conversation.id)
        await shell.enter("/search message", shows="1 of 30")
        rows = shell.top.query_one(HitList)
        rows.post_message(HitList.Turned(1))
        await shell.until(lambda: "2 of 30" in shell.text)
        await shell.pilot.click(rows, offset=(5, 9))
        await shell.until(lambda: isinstance(shell.top, HitSheet))
        await shell.until(lambda: "message 4" in marked_row(shell))
        await shell.until(lambda: "Hit 5 of 30" in shell.text)


async def test_tab_searches_in_this_folder_only(shell: Shell, engine: FakeEngine) -> None:
    await shell.enter("/search word", until=lambda: engine.searched)
    await shell.press("tab")
    await shell.until(lambda: "this folder, Tab everywhere" in shell.text and engine.searched[-1].folder is not None)
    assert engine.searched[-1].folder == shell.active.folder
    await shell.press("tab", until=lambda: engine.searched[-1].folder is None)


@pytest.mark.parametrize("size", [(60, 20), (240, 70)])
async def test_the_search_fits_small_and_large_screens(
    open_shell: Any, engine: FakeEngine, size: tuple[int, int]
) -> None:
    conversation = engine.seed("A conversation with a rather long title " * 3, messages=80)
    async with open_shell(size) as shell:
        await engine.open(conversation.id)
        await shell.enter("/search message", shows="1 of 80")
        room = (size[1] - 8) // 2  # the sheet grows a frame after the hits are there
        await shell.until(lambda: sum("you" in line or "agent" in line for line in shell.text.splitlines()) >= room)
        assert all(len(line) <= size[0] for line in shell.text.splitlines())
        await shell.press("pagedown", "down", until=lambda: "▌ " in shell.text and "1 of 80" not in shell.text)


def hit(seq: int) -> SearchHit:
    return SearchHit("c1", "title", Path("/tmp"), seq, Speaker.USER, f"hit {seq}", 1.0)


@dataclass
class SlowLibrary:
    """Answers on request; `answer` maps questions to answers."""

    answer: Callable[[SearchQuery, int | None], SearchAnswer]
    asked: list[tuple[str, int | None]] = field(default_factory=list[tuple[str, int | None]])
    gate: asyncio.Event = field(default_factory=asyncio.Event)

    async def search(
        self, query: SearchQuery, *, limit: int = 300, below: int | None = None, seconds: float = 0.12
    ) -> SearchAnswer:
        self.asked.append((query.words[0], below))
        await self.gate.wait()
        return self.answer(query, below)

    async def find(self, conversation_id: str, text: str) -> Sequence[FoundText]:
        return []

    async def export(self, conversation_id: str) -> JsonObject:
        return {}


@asynccontextmanager
async def looping(library: SlowLibrary) -> AsyncGenerator[tuple[SearchLoop, list[HitRows]]]:
    shown: list[HitRows] = []
    loop = SearchLoop(library, shown.append)  # type: ignore[arg-type]  # the turns of a conversation are not asked for
    task = asyncio.create_task(loop.run())
    try:
        yield loop, shown
    finally:
        task.cancel()


async def test_the_answer_to_an_older_question_is_dropped() -> None:
    library = SlowLibrary(lambda query, _: SearchAnswer((hit(len(query.words[0])),)))
    async with looping(library) as (loop, shown):
        loop.ask(SearchQuery(("a",)))
        assert await poll(lambda: library.asked)
        for text in ("ab", "abc", "abcd"):
            loop.ask(SearchQuery((text,)))
        assert loop.found.stale
        library.gate.set()
        assert await poll(lambda: shown)
        assert [(found.hits[0].seq, found.stale) for found in shown] == [(4, False)]
        assert [text for text, _ in library.asked] == ["a", "abcd"]


async def test_it_looks_on_by_itself_until_there_is_a_page_and_then_when_asked() -> None:
    def answer(_: SearchQuery, below: int | None) -> SearchAnswer:
        start = 2000 if below is None else below
        return SearchAnswer(tuple(hit(start - number) for number in range(200)), start - 200, reached=5.0)

    library = SlowLibrary(answer)
    library.gate.set()
    async with looping(library) as (loop, shown):
        loop.ask(SearchQuery(("x",)))
        assert await poll(lambda: shown and not shown[-1].looking)
        assert [len(found.hits) for found in shown] == [200, 400]
        assert shown[0].looking
        loop.more()
        assert await poll(lambda: len(shown[-1].hits) == 800)
        assert [below for _, below in library.asked] == [None, 1800, 1600, 1400]


async def test_trouble_is_said_and_the_next_question_is_answered() -> None:
    def answer(query: SearchQuery, _: int | None) -> SearchAnswer:
        if query.words == ("bad",):
            raise StorageError("The disk is full.")
        return SearchAnswer((hit(1),))

    library = SlowLibrary(answer)
    library.gate.set()
    async with looping(library) as (loop, shown):
        loop.ask(SearchQuery(("bad",)))
        assert await poll(lambda: shown)
        assert shown[-1] == HitRows(trouble="The disk is full.")
        loop.ask(SearchQuery(("good",)))
        assert await poll(lambda: shown[-1].hits)
        loop.ask(SearchQuery())
        assert await poll(lambda: shown[-1] == HitRows())


LONG = "\n".join(f"- decision {number}: \x1b[31mred\u202e" for number in range(80))
PROPOSAL = Proposal("The plan is kept.\n\n" + LONG, 12, 5, "150k → ~3,400 tokens · $0.02")


async def offered(shell: Any, proposal: Proposal = PROPOSAL) -> tuple[SummarySheet, asyncio.Task[SummaryDecision]]:
    """A sheet with a summary that was visible for a while, and the task of the engine's wait."""
    conversation = shell.engine.seed("talk", messages=4)
    await shell.open(conversation)
    conversation.become(Compacting(2))
    shell.composer.text = "/compact the names"
    await shell.press("enter", until=lambda: conversation.context.review is not None)
    sheet = shell.top
    assert isinstance(sheet, SummarySheet)
    verdict = asyncio.create_task(conversation.context.review(proposal))
    await shell.until(lambda: "decision 1" in shell.text)
    sheet.gate.since -= GRACE
    return sheet, verdict


@pytest.mark.parametrize("size", [(60, 20), (200, 60)])
async def test_it_says_what_the_summary_stands_for_and_enter_takes_it(open_shell: Any, size: Any) -> None:
    async with open_shell(size=size) as shell:
        _, verdict = await offered(shell)
        words = " ".join(shell.text.split())
        assert "of 12 messages, 5 kept" in words
        assert "150k → ~3,400 tokens · $0.02" in words
        assert "Enter uses it · e edits · r regenerates" in words
        assert shell.status.endswith("Esc discards it")
        assert "◆ the summary needs your decision" in shell.status or size[0] == 60
        assert "compacting" not in shell.status
        assert "\x1b" not in shell.text
        assert "\u202e" not in shell.text
        await shell.press("pagedown", "down", "enter", until=verdict.done)
        assert verdict.result() == TakeSummary(PROPOSAL.summary)
        shell.conversation.become(Idle(3))
        await shell.until(lambda: not isinstance(shell.top, SummarySheet))


async def test_an_enter_that_was_on_its_way_takes_nothing(shell: Shell) -> None:
    sheet, verdict = await offered(shell)
    sheet.gate.clock = SteppedClock(sheet.gate.since)
    await shell.press("enter")
    assert not verdict.done()
    await shell.press("escape", until=verdict.done)
    assert verdict.result() == DropSummary()
    await shell.until(lambda: not isinstance(shell.top, SummarySheet))


async def test_it_is_changed_or_made_again_with_a_hint(shell: Shell) -> None:
    sheet, verdict = await offered(shell)
    await shell.press("e", until=lambda: shell.top.query(TextArea))
    shell.top.query_one(TextArea).text = "mine"
    await shell.press("ctrl+s", until=verdict.done)
    assert verdict.result() == TakeSummary("mine")
    again = asyncio.create_task(sheet.review(Proposal("short", 12, 5, "x", problem="It was too long")))
    await shell.until(lambda: "It was too long." in shell.text)
    await shell.press("r", shows="What matters most?")
    await shell.enter("tables", until=again.done)
    assert again.result() == SummarizeAgain("tables")
    await shell.until(lambda: "the model is writing…" in shell.text)


async def test_esc_stops_the_model_that_writes_it(shell: Shell) -> None:
    conversation = shell.engine.seed("talk", messages=4)
    await shell.open(conversation)
    conversation.become(Compacting(2))
    shell.composer.text = "/compact"
    await shell.press("enter", shows="the model is writing…")
    await shell.press("escape", until=lambda: conversation.cancelled)


async def test_a_refusal_is_said_and_the_sheet_goes(shell: Shell) -> None:
    conversation = shell.engine.seed("talk", messages=4)
    await shell.open(conversation)
    conversation.context.compacts = Refused("agent is busy")
    shell.composer.text = "/compact"
    await shell.press("enter", until=lambda: shell.toasts == ["agent is busy"])
    assert not isinstance(shell.top, SummarySheet)
