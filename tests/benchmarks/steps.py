"""A long run of tools: a late step must cost what an early one costs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tests.benchmarks.bench import Bench
from tests.benchmarks.costs import cpu
from tests.benchmarks.program import Program, fresh_home, running, serving
from tests.benchmarks.rows import Row, median, spread

CODEX_STEP: Final = 57.0
"""ms per step over 500, codex: peer table "Long sessions"; claude takes 70."""
AROUND: Final = 10
"""Steps on either side that a figure is the median of."""


def steps(bench: Bench) -> Iterator[Row]:
    """One run of 400 `echo`s, one per reply."""
    last, early = bench.rounds(400, 80), bench.rounds(40, 20)
    turns = ("--max-turns", str(last + 2 * AROUND))  # a run ends at 250 model calls by default
    with serving() as model, running(model, fresh_home(bench.folder), *turns) as program:
        program.turn("hi [[text:10]]")
        since = program.say(f"make it long [[loop:{last + AROUND}]]")
        looked_at = (early - AROUND, early + AROUND, last - AROUND, last + AROUND)
        costs = {step: _cost_at(program, since, step) for step in looked_at}
        done = {each.number: each.at for each in model.heard if each.event == "done"}
        walls = {
            each.facts["results"]: (each.at - done[each.number - 1]) * 1000
            for each in model.heard
            if each.event == "asked" and each.at >= since and each.facts["results"]
        }
    first, final = ([walls[step] for step in range(at - AROUND + 1, at + AROUND + 1)] for at in (early, last))
    row = Row(f"step {early} of a run: reply done -> next request", median(first), "ms", spread(first))
    yield row.beside("codex", CODEX_STEP)
    row = Row(f"step {last} of a run: reply done -> next request", median(final), "ms", spread(final))
    yield row.beside(f"step {early}", median(first)).at_most_times(1.2)
    cheap, dear = ((costs[at + AROUND] - costs[at - AROUND]) / (2 * AROUND) * 1000 for at in (early, last))
    yield Row(f"step {last} of a run: CPU of the tree", dear, "ms").beside(f"step {early}", cheap).at_most_times(1.2)


def _cost_at(program: Program, since: float, step: int) -> float:
    """CPU seconds spent when step `step` asked for the next."""
    looked = 0
    for _ in range(200_000):
        heard = program.model.heard
        while looked < len(heard):
            each = heard[looked]
            looked += 1
            if each.event == "asked" and each.at >= since and each.facts["results"] == step:
                return cpu(program.pid)
        program.terminal.drain(0.002)
        if program.terminal.ended:
            break
    raise TimeoutError(f"step {step} never came; the screen:\n{program.terminal.tail()}")
