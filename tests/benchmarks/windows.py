"""Long runs in small and large windows: what the prompt cache serves, and the cost beside sending everything."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from engine.context.omissions import PruningRule
from engine.executor.engine_settings import EngineSettings
from engine.machine.views import CompactionKind
from tests.benchmarks.bench import Bench
from tests.benchmarks.rows import Row
from tests.support.engine import Providers, engine_harness
from tests.support.long_run import LongRunProvider, LongTool, cost_of

CACHE_GOAL: Final = 0.10
"""Share of the input tokens that no cache may have to serve: at least 90 % come from it."""
ENDLESS: Final = 20_000_000
"""A window that holds everything."""


@dataclass(frozen=True, slots=True)
class LongRun:
    """Outcome of one run."""

    provider: LongRunProvider
    summaries: int
    prunings: int

    @property
    def uncached(self) -> float:
        """Share of the input tokens that were not read from a cache."""
        return 1 - self.provider.cache_share

    @property
    def note(self) -> str:
        """The sizes and changes behind the figures."""
        sizes = self.provider.sizes
        changes = f"{self.summaries} summaries, {self.prunings} prunings, {len(self.provider.misses)} misses"
        return f"{changes}, last request {sizes[-1]:,}, largest {max(sizes):,}, {self.provider.overflows} overflows"


def windows(bench: Bench) -> Iterator[Row]:
    """50 calls with and without making room, then 500 in a small and a large window, beside one without end."""
    for window, makes_room in ((200_000, True), (200_000, False), (32_000, True)):
        done = _run_in(bench.folder / f"50-{window}-{makes_room}", 50, window, makes_room=makes_room)
        name = f"50 calls, {window:,} tokens{'' if makes_room else ', no pruning or summary'}: input not from the cache"
        yield Row(name, done.uncached * 100, "%", done.note).at_most(CACHE_GOAL * 100)
    calls = bench.rounds(500, 150)
    whole = _run_in(bench.folder / "all", calls, ENDLESS, makes_room=False)
    for window in (32_000, 200_000):
        done = _run_in(bench.folder / f"{calls}-{window}", calls, window, makes_room=True)
        name = f"{calls} calls, {window:,} tokens"
        yield Row(f"{name}: input not from the cache", done.uncached * 100, "%", done.note).at_most(CACHE_GOAL * 100)
        cost = Row(f"{name}: cost", cost_of(done.provider.spent), "$")
        yield cost.beside("sending all", cost_of(whole.provider.spent))


def _run_in(home: Path, calls: int, window: int, *, makes_room: bool) -> LongRun:
    home.mkdir()
    return asyncio.run(_run(home, calls, window, makes_room=makes_room))


async def _run(home: Path, calls: int, window: int, *, makes_room: bool) -> LongRun:
    settings = EngineSettings(
        max_iterations=2 * calls,
        auto_title=False,
        compact_percent=75 if makes_room else 1_000,
        pruning=PruningRule(enabled=makes_room),
    )
    provider, tool = LongRunProvider(window, calls, checked_every=50), LongTool()
    async with engine_harness(home, tool=tool, settings=settings, providers=Providers(provider)) as harness:
        conversation = await harness.conversation()
        await conversation.say("Do all the steps.")
        await conversation.wait_idle()
        kinds = [one.facts.kind for one in await harness.store.library.compactions(conversation.id)]
    if len(tool.calls) != calls:
        raise AssertionError(f"the run ended after {len(tool.calls)} calls")
    return LongRun(provider, kinds.count(CompactionKind.SUMMARY), kinds.count(CompactionKind.SHORTENED))
