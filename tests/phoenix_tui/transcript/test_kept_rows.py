"""A jump to messages that are not in memory: no blink, and a word where reading takes long."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from engine.records import StoredMessage, ToolCallRecord
from phoenix_tui.widgets.transcript import painted_rows
from tests.support.screens import TranscriptApp, said, snapshot
from tests.support.waiting import poll

COUNT = 2_000


class Failing:
    """A store that cannot be read at first."""

    def __init__(self) -> None:
        self.asked = 0

    async def __call__(
        self, before_seq: int, limit: int
    ) -> tuple[Sequence[StoredMessage], Sequence[ToolCallRecord]] | None:
        self.asked += 1
        if self.asked < 3:
            return None
        return [said(seq, f"message {seq}") for seq in range(max(before_seq - limit, 1), before_seq)], ()


class Slow:
    """A store that answers on request."""

    def __init__(self) -> None:
        self.asked: list[tuple[int, int]] = []
        self.may = asyncio.Event()

    async def __call__(self, before_seq: int, limit: int) -> tuple[Sequence[StoredMessage], Sequence[ToolCallRecord]]:
        self.asked.append((before_seq, limit))
        await self.may.wait()
        return [said(seq, f"message {seq}") for seq in range(max(before_seq - limit, 1), before_seq)], ()


def opened(app: TranscriptApp, store: Slow) -> None:
    app.view.history.use(store)
    app.view.show(snapshot([said(seq, f"message {seq}") for seq in range(COUNT - 60, COUNT + 1)]))


def shows(app: TranscriptApp, seq: int) -> bool:
    return any(row.endswith(f" {seq}") for row in app.shown())


async def test_the_rows_of_before_stay_until_those_of_a_far_place_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(painted_rows, "PATIENCE", 3_600.0)
    app, store = TranscriptApp(), Slow()
    async with app.run_test(size=(60, 12)) as pilot:
        opened(app, store)
        await pilot.pause()
        before = app.shown()
        assert shows(app, COUNT)
        app.view.scroller.jump(700)
        assert await poll(lambda: store.asked)
        await pilot.pause()
        assert app.shown() == before
        store.may.set()
        assert await poll(lambda: shows(app, 700))
        assert not shows(app, COUNT)


async def test_reading_that_takes_long_is_said_in_one_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(painted_rows, "PATIENCE", 0.001)
    app, store = TranscriptApp(), Slow()
    async with app.run_test(size=(60, 12)) as pilot:
        opened(app, store)
        await pilot.pause()
        await pilot.press("home")
        assert await poll(lambda: [row for row in app.shown() if row] == ["  reading…"])
        store.may.set()
        assert await poll(lambda: shows(app, 1))
        assert not any("reading" in row for row in app.shown())


async def test_a_way_back_before_anything_was_read_shows_what_was_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(painted_rows, "PATIENCE", 0.001)
    app, store = TranscriptApp(), Slow()
    async with app.run_test(size=(60, 12)) as pilot:
        opened(app, store)
        await pilot.pause()
        await pilot.press("home")
        assert await poll(lambda: any("reading" in row for row in app.shown()))
        await pilot.press("end")
        assert await poll(lambda: shows(app, COUNT))
        assert not any("reading" in row for row in app.shown())


async def test_rows_of_one_conversation_never_stand_for_those_of_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(painted_rows, "PATIENCE", 3_600.0)
    app, store = TranscriptApp(), Slow()
    async with app.run_test(size=(60, 12)) as pilot:
        opened(app, store)
        await pilot.pause()
        app.view.show(snapshot([said(3_000, "another one")]))
        await pilot.press("home")
        assert await poll(lambda: store.asked)
        await pilot.pause()
        assert not any("message" in row for row in app.shown())


async def test_rows_that_cannot_be_read_are_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(painted_rows, "AGAIN_SECONDS", 0.01)
    app, store = TranscriptApp(), Failing()
    async with app.run_test(size=(60, 12)) as pilot:
        app.view.history.use(store)
        app.view.show(snapshot([said(seq, f"message {seq}") for seq in range(COUNT - 60, COUNT + 1)]))
        await pilot.press("home")
        assert await poll(lambda: shows(app, 1))
        assert store.asked >= 3
