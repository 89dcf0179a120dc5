"""Finished objects with reference cycles are collected soon, once for many ends."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest

from tests.support.waiting import poll
from tools import shedding as module
from tools.shedding import DUE_AT, Garbage


class Circle:
    """Refers to itself."""

    def __init__(self) -> None:
        self.itself = self


@pytest.fixture(autouse=True)
def only_when_asked() -> Iterator[None]:
    gc.disable()
    yield
    gc.enable()


async def test_what_refers_to_itself_goes_once_enough_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "AFTERWARDS", 0.0)
    garbage, gone = Garbage(), weakref.ref(Circle())
    garbage.note_end(DUE_AT - 1)
    assert gone() is not None
    garbage.note_end(1)
    assert await poll(lambda: gone() is None)


async def test_many_ends_are_one_collection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "AFTERWARDS", 0.0)
    collections: list[str] = []
    gc.callbacks.append(lambda phase, _: collections.append(phase) if phase == "start" else None)
    try:
        garbage = Garbage()
        for _ in range(20):
            garbage.note_end(DUE_AT // 20)
        assert await poll(lambda: bool(collections))
    finally:
        gc.callbacks.pop()
    assert collections == ["start"]


async def test_a_loop_that_ended_before_keeps_no_collection_from_the_next_one(monkeypatch: pytest.MonkeyPatch) -> None:
    garbage = Garbage()
    garbage.note_end(DUE_AT)  # its collection is never reached, as when a loop ends
    monkeypatch.setattr(module, "AFTERWARDS", 0.0)
    gone = weakref.ref(Circle())
    garbage.note_end(DUE_AT)
    assert await poll(lambda: gone() is None)
