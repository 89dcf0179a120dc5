"""Processor time that events and traces add to a run, beside the same run with nothing recorded."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Final

from engine.conversation import Conversation
from engine.executor import writes
from engine.store import events, moves, runs
from engine.store.events import EventBatch
from tests.benchmarks.bench import Bench
from tests.benchmarks.costs import cpu
from tests.benchmarks.program import fresh_home, running, serving
from tests.benchmarks.rows import Row, median, spread
from tests.support.engine import engine_harness
from tests.support.scripted_provider import Reply, Script, ScriptedCall, ScriptedProvider, Text

MOST: Final = 0.05
"""Share of the processor time of a turn on the screen that recording may cost."""
CONVERSATIONS: Final = 20
WARM: Final = 10
"""Pairs of runs before the first that counts."""
TEXT: Final = (Reply((Text("Done."),)),)
TOOL: Final = Reply((ScriptedCall("bash", '{"command": "ls"}'),))
_EVENTS: Final = ((writes, "events_of_save"), (writes, "events_of_step"))
_ROWS: Final[tuple[tuple[ModuleType | type, str], ...]] = (
    (events, "add_event"),
    (EventBatch, "add_message"),
    (runs, "add_call_span"),
    (moves, "add_tool_span"),
    (runs, "queue_run"),
    (moves, "queue_late_tool"),
    (runs, "queue_late_call"),
)


def recording(bench: Bench) -> Iterator[Row]:
    """Runs with and without records in turn, in the same conversations: medians of what each pair differs by."""
    turn = _turn_milliseconds(bench)
    for name, replies, rounds in (
        ("a text reply", TEXT, bench.rounds(400, 60)),
        ("two rounds of tools", (TOOL, TOOL, *TEXT), bench.rounds(150, 20)),
    ):
        pairs = asyncio.run(_pairs(bench.folder / f"recording-{len(replies)}", replies, rounds))
        without = median([plain for plain, _ in pairs])
        added = median([recorded - plain for plain, recorded in pairs])
        row = Row(f"recording: CPU of a run in the engine, {name}", without + added, "ms")
        yield row.beside("without events and spans", without)
        row = Row(f"recording: CPU that it adds, {name}", added, "ms", spread([one - plain for plain, one in pairs]))
        yield row.beside("turn with a text reply on the screen", turn).at_most_times(MOST)


def _turn_milliseconds(bench: Bench) -> float:
    """Processor time of Phoenix for one short turn, from Enter until the screen is quiet again."""
    costs: list[float] = []
    with serving() as model, running(model, fresh_home(bench.folder)) as program:
        for _ in range(bench.rounds(12, 6)):
            program.terminal.settle(0.3)
            before = cpu(program.pid)
            asked = program.asked(program.say("and now [[text:40,80]]"))
            program.terminal.wait(rf"ENDMARK-{asked.number}\b")
            program.terminal.settle(0.3)
            costs.append((cpu(program.pid) - before) * 1000)
    return median(costs[1:])


async def _pairs(folder: Path, replies: tuple[Reply, ...], rounds: int) -> list[tuple[float, float]]:
    provider = ScriptedProvider({"main": Script(replies * (2 * (rounds + WARM)))})
    pairs: list[tuple[float, float]] = []
    async with engine_harness(folder, provider=provider) as home:
        conversations = [await home.conversation() for _ in range(CONVERSATIONS)]
        for number in range(rounds + WARM):
            conversation, found = conversations[number % CONVERSATIONS], dict[bool, float]()
            for records in random.sample((True, False), 2):
                found[records] = await _milliseconds(conversation, records=records)
            pairs.append((found[False], found[True]))
    return pairs[WARM:]


async def _milliseconds(conversation: Conversation, *, records: bool) -> float:
    """Processor time of the whole process for one run."""
    with _everything() if records else _nothing_recorded():
        began = time.process_time()
        await conversation.say("go")
        await conversation.wait_idle()
        return (time.process_time() - began) * 1000


@contextmanager
def _everything() -> Generator[None]:
    yield


@contextmanager
def _nothing_recorded() -> Generator[None]:
    """Replace what makes and stores events and spans by functions that do nothing."""
    saved = [(owner, name, getattr(owner, name)) for owner, name in (*_EVENTS, *_ROWS)]
    replaced: list[tuple[ModuleType | type, str, Callable[..., object]]] = [
        *((owner, name, lambda *_: ()) for owner, name in _EVENTS),
        *((owner, name, lambda *_: None) for owner, name in _ROWS),
    ]
    try:
        for owner, name, nothing in replaced:
            setattr(owner, name, nothing)
        yield
    finally:
        for owner, name, original in saved:
            setattr(owner, name, original)
