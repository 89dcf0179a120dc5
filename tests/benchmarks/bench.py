"""Inputs of every family: the amount to measure, and the folder for files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from tests.benchmarks.rows import Row


@dataclass(frozen=True, slots=True)
class Bench:
    """One run of the benchmarks."""

    folder: Path
    """Folder for all files of a family."""
    quick: bool = False

    def rounds(self, full: int, quick: int) -> int:
        """Number of samples."""
        return quick if self.quick else full


Measure: TypeAlias = Callable[[Bench], Iterator[Row]]


@dataclass(frozen=True, slots=True)
class Family:
    """Rows that are measured together; `seconds` bounds them in a full run, `quick_seconds` in a quick one."""

    name: str
    measure: Measure
    seconds: float
    quick_seconds: float
