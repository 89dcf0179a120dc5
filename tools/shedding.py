"""Memory of this process: caches dropped in order when it is short, and cyclic garbage collected after large ends."""

from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import Callable
from contextlib import suppress
from enum import IntEnum
from typing import Final, TypeVar
from weakref import WeakMethod

from msgspec import Struct

T = TypeVar("T")
log = logging.getLogger(__name__)


class SheddingOrder(IntEnum):
    """Order of dropping: first the caches that are cheapest to rebuild."""

    LOOKS = 1
    """Drawn rows, pictures, texts that were cleaned or matched: computed again where they come into sight."""
    READ = 2
    """Listings, messages and pages of a database: read again when they are needed."""
    OPEN = 3
    """Conversations without a viewer: opened again on demand."""


class KeptCache(Struct, frozen=True):
    """One thing that is kept."""

    name: str
    """Name in the plural, for the log."""
    order: SheddingOrder
    count: Callable[[], int]
    drop: Callable[[], object]


class Shedding:
    """Knows all that is kept; everything is called on the thread of the event loop."""

    def __init__(self) -> None:
        self._kept: list[Callable[[], KeptCache | None]] = []

    def add(self, name: str, order: SheddingOrder, count: Callable[[], int], drop: Callable[[], object]) -> None:
        """Register a cache; methods are held weakly, so that a deleted owner leaves by itself."""
        self._kept = [one for one in self._kept if one() is not None]
        count_now, drop_now = _weakly(count), _weakly(drop)

        def find_kept() -> KeptCache | None:
            counts, drops = count_now(), drop_now()
            return KeptCache(name, order, counts, drops) if counts is not None and drops is not None else None

        self._kept.append(find_kept)

    def all(self) -> tuple[KeptCache, ...]:
        """Caches in the order in which they are dropped."""
        return tuple(sorted((one for kept in self._kept if (one := kept()) is not None), key=lambda one: one.order))

    def shed(self) -> str:
        """Drop all caches and list them in words."""
        gone: list[str] = []
        for one in self.all():
            try:
                count = one.count()
                one.drop()
            except Exception:  # the app edge: an error of one cache must not keep the rest
                log.exception("%s could not be dropped", one.name)
                continue
            if count:
                gone.append(f"{count} {one.name}")
        return ", ".join(gone)


def _weakly(call: Callable[[], T]) -> Callable[[], Callable[[], T] | None]:
    with suppress(TypeError):
        return WeakMethod(call)
    return lambda: call


shedding: Final = Shedding()
"""The one of this process."""


DUE_AT: Final = 1_500
"""kB that have ended until they are collected: ten conversations, or ten sheets. A collection takes 11 ms."""
AFTERWARDS: Final = 0.5
"""Seconds between the last end and the collection: not while it is being closed."""


class Garbage:
    """Counts finished objects. Reference cycles go with a collection of all objects, else hours later.

    Until then they keep their memory, new objects are allocated around it, and it cannot return to the system: 141 kB
    of every sub-agent stayed without this, 55 kB do with it.
    """

    def __init__(self) -> None:
        self._kilobytes = 0

    def note_end(self, kilobytes: int) -> None:
        """Count a finished object by its size; called on the thread of the event loop."""
        self._kilobytes += kilobytes
        if self._kilobytes >= DUE_AT:
            self._kilobytes = 0
            asyncio.get_running_loop().call_later(AFTERWARDS, gc.collect)


garbage: Final = Garbage()
"""The one of this process."""
