"""Waits for a database that another program keeps busy; they are reported, and can be given up."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from engine.ports import ConversationChanges, DatabaseBusy, storage
from engine.ports.storage import DatabaseWaits
from engine.store import Store, StorePaths, open_store
from tests.support.engine import until
from tests.support.storage import new_conversation


@contextmanager
def held(paths: StorePaths) -> Iterator[sqlite3.Connection]:
    """The database, locked by another program until the end, or until its transaction is ended."""
    other = sqlite3.connect(paths.database, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    try:
        yield other
    finally:
        other.close()


@pytest.fixture(autouse=True)
def told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storage, "TOLD_AFTER", 0.01)


@pytest.fixture
def paths(tmp_path: Path) -> StorePaths:
    return StorePaths.under(tmp_path)


@pytest.fixture
async def store(paths: StorePaths) -> AsyncIterator[Store]:
    opened = await open_store(paths)
    yield opened
    await opened.close()


@pytest.mark.parametrize("reads", [True, False])
async def test_a_change_and_a_read_wait_are_told_and_go_through(store: Store, paths: StorePaths, reads: bool) -> None:
    record = await store.create(new_conversation(), 1.0)
    told: list[float] = []
    store.waits.listen(told.append)
    with held(paths) as other:
        work = (
            store.conversation(record.id)
            if reads
            else store.change(record.id, ConversationChanges(title="New"), time.time())
        )
        task = asyncio.ensure_future(work)
        await until(lambda: bool(told))
        assert told[0] > 0
        assert store.waits.seconds > 0
        assert not task.done()
        other.execute("ROLLBACK")
        await task
    assert told[-1] == 0.0
    assert store.waits.seconds == 0.0
    found = await store.conversation(record.id)
    assert found is not None
    assert found.title == ("" if reads else "New")


async def test_whoever_gives_up_ends_the_wait_and_what_comes_right_behind(store: Store, paths: StorePaths) -> None:
    record = await store.create(new_conversation(), 1.0)
    with held(paths):
        task = asyncio.ensure_future(store.change(record.id, ConversationChanges(title="New"), 2.0))
        await until(lambda: store.waits.seconds > 0)
        assert store.waits.give_up()
        with pytest.raises(DatabaseBusy, match=r"^Another program is using the database .*; try again in a moment\.$"):
            await task
        with pytest.raises(DatabaseBusy):
            await store.change(record.id, ConversationChanges(title="New"), 2.0)
    found = await store.conversation(record.id)
    assert found is not None
    assert found.title == "", "nothing of it was written"


async def test_nothing_to_give_up_changes_nothing(store: Store) -> None:
    assert not store.waits.give_up()
    await store.create(new_conversation(), 1.0)


async def test_a_wait_has_an_end(store: Store, paths: StorePaths) -> None:
    store.waits.patience = 0.1
    with held(paths), pytest.raises(DatabaseBusy):
        await store.create(new_conversation(), 1.0)


async def test_an_end_of_phoenix_ends_every_wait(
    store: Store, paths: StorePaths, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storage, "QUITTING", 0.01)
    with held(paths):
        task = asyncio.ensure_future(store.create(new_conversation(), 1.0))
        await until(lambda: store.waits.seconds > 0)
        store.waits.hurry()
        with pytest.raises(DatabaseBusy):
            await task


@pytest.mark.slow
async def test_opening_waits_and_tells_as_well(paths: StorePaths) -> None:
    await (await open_store(paths)).close()
    waits, told = DatabaseWaits(), list[float]()
    waits.listen(told.append)
    with held(paths) as other:
        task = asyncio.ensure_future(open_store(paths, waits=waits))
        await until(lambda: bool(told))
        other.execute("ROLLBACK")
        opened = await task
    assert (opened.waits, told[-1]) == (waits, 0.0)
    await opened.close()


@pytest.mark.slow
async def test_an_impatient_opening_ends_in_a_sentence(paths: StorePaths) -> None:
    await (await open_store(paths)).close()
    waits = DatabaseWaits()
    waits.patience = 0.1
    with held(paths), pytest.raises(DatabaseBusy, match="is using the database"):
        await open_store(paths, waits=waits)
