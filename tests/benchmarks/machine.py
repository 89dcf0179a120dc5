"""The machine: seeded random walks through every state, with the invariants checked at each step."""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Final

from tests.benchmarks.bench import Bench
from tests.benchmarks.rows import Row
from tests.support.machine import walk

WALKS: Final = 1_000_000
STEPS: Final = 50
SLICE: Final = 500
"""Walks a worker takes at a time."""


@dataclass(frozen=True, slots=True)
class Slice:
    """Results of some walks."""

    walks: int
    broken: int
    first: str
    """The first broken walk: its seed and what it broke."""


def machine(bench: Bench) -> Iterator[Row]:
    """Run as many of a million walks as fit in the time."""
    seconds = bench.rounds(300, 10)
    deadline = time.monotonic() + seconds
    workers = os.cpu_count() or 1
    with multiprocessing.get_context("spawn").Pool(workers) as pool:
        slices = list(pool.imap_unordered(partial(_walk, deadline), range(0, WALKS, SLICE)))
    walks, broken = sum(each.walks for each in slices), sum(each.broken for each in slices)
    first = next((each.first for each in slices if each.first), "")
    note = f"{walks:,} walks of {STEPS} steps {first}"
    yield Row("machine: walks that break an invariant", broken, "", note).at_most(0)
    began = time.process_time()
    for seed in range(200):
        walk(seed)
    cost = (time.process_time() - began) / 200 / STEPS * 1e6
    yield Row("machine: CPU of a step with all its checks", cost, "us", f"{STEPS} steps each")


def _walk(deadline: float, first: int) -> Slice:
    walks, broken, reason = 0, 0, ""
    for seed in range(first, first + SLICE):
        if time.monotonic() > deadline:
            break
        walks += 1
        try:
            walk(seed, STEPS)
        except Exception as error:  # noqa: BLE001 - any of them is a broken invariant
            broken += 1
            reason = reason or f"seed {seed}: {error!r}"
    return Slice(walks, broken, reason)
