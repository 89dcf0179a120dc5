"""The throttle governor: tightens on rate limits, eases on success, and its wait can be cancelled (SPEC UNI-18)."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.executor import asking, governor
from engine.executor.governor import Governor
from engine.machine.messages import Usage
from engine.machine.states import Idle
from engine.ports import RateLimit, Unit
from engine.updates import Noticed, Paced
from tests.support.engine import engine_harness, until
from tests.support.scripted_provider import Fail, Reply, Text

HELLO = Reply((Text("hello"),))
LIMITED = Reply((Fail("rate limited", "rate_limit", retryable=False),))


def test_it_rises_to_three_and_falls_back_to_one() -> None:
    seen = Governor()
    assert seen.delay("m") == 0
    for _ in range(5):
        seen.throttled("m")
    assert (seen.multiplier("m"), seen.delay("m")) == (3.0, 4.0)
    for _ in range(20):
        seen.succeeded("m")
    assert (seen.multiplier("m"), seen.delay("m")) == (1.0, 0.0)


def test_limits_that_only_a_refusal_stated_are_over_with_the_next_answer() -> None:
    seen = Governor()
    limit = RateLimit(Unit.INPUT, 1_000, remaining=0, full_in=60.0)
    seen.told("m", [limit], 0.0, by_refusal=True)
    seen.throttled("m", 30.0, 0.0)
    retry = seen.enter("m", 900, 0, 0.0, is_retry=True)
    assert seen.wait(retry, 0.0) > 30
    seen.begin(retry, 60.0)
    seen.succeeded("m")
    seen.answered(retry, Usage(900, 10), 61.0)
    assert seen.wait(seen.enter("m", 900, 0, 62.0), 62.0) == pytest.approx(0.7)


def test_limits_that_an_answer_states_hold() -> None:
    seen = Governor()
    seen.told("m", [RateLimit(Unit.INPUT, 1_000, remaining=0, full_in=60.0)], 0.0, by_refusal=True)
    seen.succeeded("m")
    seen.told("m", [RateLimit(Unit.INPUT, 1_000, remaining=0, full_in=60.0)], 1.0)
    seen.succeeded("m")
    assert seen.wait(seen.enter("m", 900, 0, 2.0), 2.0) > 50


def test_one_model_does_not_slow_another() -> None:
    seen = Governor()
    seen.throttled("a")
    assert seen.multiplier("a") == pytest.approx(1.5)
    assert seen.delay("b") == 0


@pytest.mark.parametrize(("least", "told"), [(0.01, [0.05]), (1.0, [])])
async def test_a_call_after_a_rate_limit_waits_and_says_so_where_it_is_felt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, least: float, told: list[float]
) -> None:
    monkeypatch.setattr(governor, "DELAY_PER_STEP", 0.1)
    monkeypatch.setattr(asking, "LEAST_TOLD", least)
    async with engine_harness(tmp_path, LIMITED, HELLO) as harness:
        conversation = await harness.conversation()
        await conversation.say("one")
        await conversation.wait_idle()
        await conversation.say("two")
        assert isinstance(await conversation.wait_idle(), Idle)
        assert [one.seconds for one in harness.seen(Paced)] == pytest.approx(told, abs=0.01)
        assert not harness.seen(Noticed), "a wait is no event of the conversation"
        assert len(harness.provider.requests) == 2


async def test_escape_ends_the_wait_before_the_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(governor, "DELAY_PER_STEP", 1_000.0)
    async with engine_harness(tmp_path, LIMITED, HELLO) as harness:
        conversation = await harness.conversation()
        await conversation.say("one")
        await conversation.wait_idle()
        await conversation.say("two")
        await until(lambda: harness.seen(Paced))
        conversation.cancel()
        assert isinstance(await conversation.wait_idle(), Idle)
        assert len(harness.provider.requests) == 1
