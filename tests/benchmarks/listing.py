"""Cost of the list of conversations: reading it, and one change in one of many."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from typing import Final

from engine.machine.states import AwaitingLlm, Requesting, Run
from engine.records import ConversationQuery, ConversationSummary
from engine.store import StorePaths, open_store
from phoenix_tui.widgets.roster import ListModel, Live
from screenshots.library import make_library
from tests.benchmarks.bench import Bench
from tests.benchmarks.rows import Row, median, spread

MANY: Final = 500
WORKING: Final = 20
HEIGHT: Final = 58
LONG: Final = 50_000


def listing(bench: Bench) -> Iterator[Row]:
    """A library of 500 conversations, one of 50,000 messages, 20 of them at work."""
    paths = StorePaths.under(bench.folder / "listing")
    make_library(paths, bench.folder / "src", time.time(), MANY, LONG)
    rounds = bench.rounds(15, 5)
    read, summaries = asyncio.run(_read(paths, rounds))
    yield Row(
        f"list: {MANY} conversations from the database", median(read), "ms", spread(read), limit=50, budget="50 ms"
    )
    model, live = _model(), _at_work(summaries)
    changes = [_milliseconds(lambda: _change(model, summaries, live)) for _ in range(rounds)]
    yield Row(f"list: one change among {MANY}, CPU", median(changes), "ms", spread(changes), limit=5, budget="5 ms")
    found = [_milliseconds(lambda: _find(model, "retry")) for _ in range(rounds)]
    yield Row(
        f"list: a letter of the filter among {MANY}, CPU", median(found), "ms", spread(found), limit=5, budget="5 ms"
    )


async def _read(paths: StorePaths, rounds: int) -> tuple[list[float], list[ConversationSummary]]:
    store = await open_store(paths)
    taken: list[float] = []
    found: list[ConversationSummary] = []
    for _ in range(rounds):
        began = time.perf_counter()
        found = await store.conversations(ConversationQuery(limit=MANY))
        taken.append((time.perf_counter() - began) * 1000)
    await store.close()
    return taken, found


def _model() -> ListModel:
    model = ListModel()
    model.resize(HEIGHT)
    return model


def _at_work(summaries: list[ConversationSummary]) -> dict[str, Live]:
    state = AwaitingLlm(1, Run("run", 5), Requesting())
    return {one.id: Live(state, time.monotonic(), began=float(n)) for n, one in enumerate(summaries[:WORKING])}


def _change(model: ListModel, summaries: list[ConversationSummary], live: dict[str, Live]) -> None:
    model.fill(summaries, live, summaries[0].id)
    model.arrange()
    assert len(model.visible()) == HEIGHT


def _find(model: ListModel, text: str) -> None:
    model.text = text
    model.arrange()
    assert model.visible()


def _milliseconds(action: Callable[[], None]) -> float:
    began = time.process_time()
    action()
    return (time.process_time() - began) * 1000
