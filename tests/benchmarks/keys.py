"""Typing as a person does, and how long each letter takes to the screen."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass

from tests.benchmarks.program import Program
from tests.benchmarks.rows import median, percentile, spread

LETTERS = "bcdfghjklmnpqrstvwxz"
PATIENCE = 3.0
LINE = 50
"""Letters before the line is begun anew: it must not wrap."""
MARK = "QXQXQXQX"


@dataclass(frozen=True, slots=True)
class Echo:
    """Milliseconds from key to screen, one per key that was seen; and how many were not."""

    milliseconds: tuple[float, ...]
    missed: int

    @property
    def p50(self) -> float:
        """The median."""
        return median(self.milliseconds)

    @property
    def p99(self) -> float:
        """All but the slowest hundredth."""
        return percentile(self.milliseconds, 0.99)

    @property
    def note(self) -> str:
        """Number of samples, their range, and lost ones."""
        return spread(self.milliseconds) + (f", {self.missed} not seen" if self.missed else "")


def type_keys(program: Program, count: int, seed: int = 1) -> Echo:
    """Type `count` letters into the composer at a person's pace, then take them back."""
    chance, typed, times, missed = random.Random(seed), "", list[float](), 0
    for number in range(count):
        if number % LINE == 0:
            _erase(program, typed)
            typed = _begin(program)
        program.terminal.drain(chance.uniform(0.04, 0.1))
        letter = chance.choice(LETTERS)
        typed += letter
        sent = program.terminal.write(letter)
        try:
            shown = program.terminal.wait(re.escape(typed[-8:]), PATIENCE)
        except TimeoutError:
            missed += 1
            continue
        times.append((shown - sent) * 1000)
    _erase(program, typed)
    return Echo(tuple(times), missed)


def _begin(program: Program) -> str:
    """Type a mark in front of the next letters."""
    program.terminal.write(MARK)
    program.terminal.wait(MARK)
    return MARK


def _erase(program: Program, typed: str) -> None:
    program.terminal.write("\x7f" * len(typed))
    program.terminal.drain(0.3)
