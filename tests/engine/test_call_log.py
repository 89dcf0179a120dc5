"""Calls that ended are taken once, with their price, whoever is cancelled while it looks one up."""

from __future__ import annotations

import asyncio
import threading

import pytest

from engine.executor.call_log import CallLog, OpenCall
from engine.machine.messages import Usage
from engine.records.model_calls import CallPurpose, CallStatus
from tests.support.waiting import poll


def ended(log: CallLog, *names: str) -> None:
    for name in names:
        call = log.begin(OpenCall(name, CallPurpose.REPLY, "anthropic/model", 1.0, 1.0, usage=Usage(1, 1)))
        log.end(call, CallStatus.OK, 2.0)


async def test_who_is_cancelled_at_a_price_leaves_every_call_to_the_next() -> None:
    log, looked, go_on = CallLog(), threading.Event(), threading.Event()
    asked: list[str] = []

    def slow(reference: str, usage: Usage) -> float | None:
        asked.append(reference)
        if len(asked) == 2:
            looked.set()
            go_on.wait()
        return 0.5

    ended(log, "a", "b", "c")
    taking = asyncio.create_task(log.take(slow))
    assert await poll(looked.is_set)
    taking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await taking
    go_on.set()
    ended(log, "d")
    taken = await log.take(slow)
    assert [(call.id, call.cost_usd) for call in taken] == [(name, 0.5) for name in "abcd"]
    assert await log.take(slow) == ()


async def test_calls_that_end_while_prices_are_looked_up_are_taken_too() -> None:
    log = CallLog()

    def price(reference: str, usage: Usage) -> float | None:
        if "late" not in [call.id for _, call in log._ended]:
            ended(log, "late")
        return 0.5

    ended(log, "early")
    assert [call.id for call in await log.take(price)] == ["early", "late"]
