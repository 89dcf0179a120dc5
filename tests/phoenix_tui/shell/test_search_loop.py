"""Someone types, the store answers slowly: only the newest question counts, and nothing waits for an old one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from engine.ports import StorageError
from engine.records import FoundText, SearchAnswer, SearchHit
from engine.search import SearchQuery, Speaker
from phoenix_tui.modals.search_sheet import HitRows, SearchLoop
from tests.support.waiting import poll
from tools.contract import JsonObject


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
