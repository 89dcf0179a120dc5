"""Resources of this machine available to a local model."""

from __future__ import annotations

import os
from pathlib import Path

from msgspec import Struct

GIBIBYTE = 1024**3
LEAST_FREE = 3 * GIBIBYTE
"""Bytes of free memory without which a model is not loaded; the 1.5B takes 2.1 GB (docs/decisions/local-model.md)."""


class Resources(Struct, frozen=True):
    """Memory, cores and load at one moment."""

    free_memory: int
    """Bytes a new process may take."""
    cores: int
    load: float
    """Runnable processes, averaged over a minute."""

    @property
    def threads(self) -> int:
        """All cores, or one on a busy machine: the engine's threads spin while they wait for each other."""
        return 1 if self.load > self.cores else self.cores

    def shortage(self, model_size: int) -> str:
        """Reason why a model of `model_size` bytes cannot be loaded, as a sentence; empty when it can."""
        needed = max(LEAST_FREE, model_size + GIBIBYTE)
        if self.free_memory >= needed:
            return ""
        return (
            f"The local model needs {needed / GIBIBYTE:.1f} GB of free memory and {self.free_memory / GIBIBYTE:.1f} GB "
            "are free; close a program, or choose another model with /model."
        )


def measure() -> Resources:
    """The machine as it is now."""
    return Resources(_free_memory(), os.cpu_count() or 1, os.getloadavg()[0])


def _free_memory() -> int:
    """Bytes available; half of all memory where the kernel does not report them."""
    try:
        lines = Path("/proc/meminfo").read_text("ascii").splitlines()
    except OSError:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    available = next(line for line in lines if line.startswith("MemAvailable:"))
    return int(available.split()[1]) * 1024
