"""Caches are dropped in their order, by name, and dropped ones leave the list by themselves."""

from __future__ import annotations

import gc

from tools.shedding import Shedding, SheddingOrder


class Cache:
    """Keeps some things."""

    def __init__(self, told: list[str], name: str, number: int, *, breaks: bool = False) -> None:
        self._told, self._name, self._breaks = told, name, breaks
        self.kept = number

    def count(self) -> int:
        return self.kept

    def drop(self) -> None:
        self._told.append(self._name)
        if self._breaks:
            raise RuntimeError("cannot")
        self.kept = 0


def test_all_of_it_goes_in_order_and_is_named() -> None:
    shedding, told = Shedding(), list[str]()
    caches = [Cache(told, "open", 2), Cache(told, "rows", 7), Cache(told, "broken", 1, breaks=True)]
    for cache, order in zip(caches, (SheddingOrder.OPEN, SheddingOrder.LOOKS, SheddingOrder.READ), strict=True):
        shedding.add(cache._name, order, cache.count, cache.drop)
    assert shedding.shed() == "7 rows, 2 open"
    assert told == ["rows", "broken", "open"]
    assert shedding.shed() == ""


def test_what_has_gone_is_not_held_by_the_list() -> None:
    shedding, told = Shedding(), list[str]()
    for number in range(3):
        cache = Cache(told, f"cache {number}", 1)
        shedding.add(cache._name, SheddingOrder.READ, cache.count, cache.drop)
    del cache
    gc.collect()
    assert shedding.all() == ()
    assert shedding.shed() == ""
