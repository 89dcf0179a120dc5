"""Start times of calls by the governor: against servers that count in three ways, and against wrong limits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.executor import asking, model_limits
from engine.executor.model_limits import LONGEST, SLACK, WINDOW, Governor, PacedCall
from engine.machine.messages import Usage
from engine.machine.states import Idle
from engine.ports import RateLimit, Unit
from engine.updates import Noticed, Paced
from tests.support.engine import engine_harness, run_turn, until
from tests.support.scripted_provider import Fail, Reply, Text

LIMIT = 10_000


@dataclass
class Server:
    """Counts tokens in virtual time and says what is left."""

    used: list[tuple[float, int]] = field(default_factory=list[tuple[float, int]])

    def take(self, now: float, tokens: int) -> bool:
        """True when there was room."""
        if self.left(now) < tokens:
            return False
        self.used.append((now, tokens))
        return True

    def left(self, now: float) -> int:
        """A window that moves."""
        return LIMIT - sum(tokens for at, tokens in self.used if at > now - WINDOW)

    def full_in(self, now: float) -> float | None:
        """Not said."""
        return None


class Fixed(Server):
    """A window that begins with the first call after the one before."""

    def left(self, now: float) -> int:
        if self.used and self.used[0][0] <= now - WINDOW:
            self.used.clear()
        return LIMIT - sum(tokens for _, tokens in self.used)

    def full_in(self, now: float) -> float | None:
        return self.used[0][0] + WINDOW - now if self.used else 0.0


class Bucket(Server):
    """A bucket that fills up by the limit in a minute."""

    def left(self, now: float) -> int:
        level, last = float(LIMIT), 0.0
        for at, tokens in self.used:
            level, last = min(level + (at - last) * LIMIT / WINDOW, LIMIT) - tokens, at
        return int(min(level + (now - last) * LIMIT / WINDOW, LIMIT))

    def full_in(self, now: float) -> float | None:
        return (LIMIT - self.left(now)) * WINDOW / LIMIT


@pytest.mark.parametrize("make", [Server, Fixed, Bucket])
@given(calls=st.lists(st.tuples(st.floats(0, 40), st.integers(1, LIMIT)), max_size=25))
def test_no_server_is_asked_for_more_than_it_has(make: Callable[[], Server], calls: list[tuple[float, int]]) -> None:
    governor, server, now = Governor(), make(), 1_000.0
    for pause, tokens in calls:
        now += pause
        call = governor.enter("m", tokens, 0, now)
        wait = governor.wait(call, now)
        assert wait <= WINDOW + SLACK
        now += wait
        governor.begin(call, now)
        assert server.take(now + 0.01, tokens)
        now += 0.02
        told = RateLimit(Unit.TOKENS, LIMIT, server.left(now), server.full_in(now))
        governor.note_limits("m", [told], now)
        governor.note_usage(call, Usage(tokens), now)
        governor.leave(call, now)


@pytest.mark.parametrize("make", [Server, Fixed, Bucket])
@given(sizes=st.lists(st.integers(1, LIMIT), min_size=2, max_size=8))
def test_calls_at_once_share_one_limit_and_begin_in_their_order(make: Callable[[], Server], sizes: list[int]) -> None:
    governor, server, now = Governor(), make(), 1_000.0
    governor.note_limits("m", [RateLimit(Unit.TOKENS, LIMIT)], now)
    waiting = [(governor.enter("m", tokens, 0, now), tokens) for tokens in sizes]
    planned = [governor.wait(call, now) for call, _ in waiting]
    assert planned == sorted(planned)
    while waiting:
        call, tokens = waiting.pop(0)
        wait = governor.wait(call, now)
        now += wait
        governor.begin(call, now)
        served = server.take(now, tokens)
        assert served or call.came + LONGEST <= now
        governor.note_usage(call, Usage(tokens), now)
        governor.leave(call, now)


LIES = st.builds(
    RateLimit,
    st.sampled_from(Unit),
    st.integers(1, 10**9),
    st.none() | st.integers(0, 10**9),
    st.none() | st.floats(0, 60),
    st.booleans(),
)


@given(told=st.lists(st.lists(LIES, max_size=4), min_size=1, max_size=12), tokens=st.integers(0, 10**7))
def test_limits_that_lie_hold_a_call_back_for_a_minute_at_most(told: list[list[RateLimit]], tokens: int) -> None:
    governor, now = Governor(), 1_000.0
    for limits in told:
        call = governor.enter("m", tokens, tokens // 2, now)
        wait = governor.wait(call, now)
        assert 0 <= wait <= WINDOW + SLACK
        now += wait
        governor.begin(call, now)
        governor.note_limits("m", limits, now)
        governor.note_usage(call, Usage(tokens, 10), now)
        governor.leave(call, now)


def test_the_queue_behind_such_limits_ends_too() -> None:
    governor, now = Governor(), 1_000.0
    governor.note_limits("m", [RateLimit(Unit.REQUESTS, 1, 0, 60.0)], now)
    calls = [governor.enter("m", 10, 0, now) for _ in range(40)]
    assert max(governor.wait(call, now) for call in calls) == LONGEST


def test_a_limit_below_what_one_call_was_given_is_not_believed() -> None:
    governor, now = Governor(), 1_000.0
    for _ in range(2):
        call = governor.enter("m", 5_000, 0, now)
        assert governor.wait(call, now) == 0
        governor.begin(call, now)
        governor.note_limits("m", [RateLimit(Unit.TOKENS, 1, 0, 60.0)], now)
        governor.note_usage(call, Usage(5_000, 10), now)
        governor.leave(call, now)
        now += 0.5


def test_what_is_read_from_the_cache_takes_nothing_of_a_limit_that_leaves_it_out() -> None:
    governor = Governor()
    governor.note_limits("m", [RateLimit(Unit.INPUT, LIMIT, counts_cached=False)], 1_000.0)
    for number in range(5):
        now = 1_000.0 + number
        call = governor.enter("m", 50_000, 49_000, now)
        assert governor.wait(call, now) == 0
        governor.begin(call, now)
        governor.note_usage(call, Usage(1_000, 10, 0, 49_000), now)
        governor.leave(call, now)


def test_the_tokens_that_others_use_with_the_same_key_are_counted() -> None:
    governor = Governor()
    call = governor.enter("m", 100, 0, 1_000.0)
    governor.begin(call, 1_000.0)
    governor.note_limits("m", [RateLimit(Unit.TOKENS, LIMIT, 50, 30.0)], 1_000.0)
    governor.note_usage(call, Usage(100), 1_000.0)
    later = governor.enter("m", 100, 0, 1_010.0)
    assert governor.wait(later, 1_010.0) == pytest.approx(20.0)


def test_a_call_that_is_stopped_while_it_waits_leaves_its_place_to_the_next() -> None:
    governor, now = Governor(), 1_000.0
    governor.note_limits("m", [RateLimit(Unit.TOKENS, LIMIT)], now)
    first, second, third = (governor.enter("m", LIMIT, 0, now) for _ in range(3))
    governor.begin(first, now)
    assert governor.wait(third, now) == 2 * (WINDOW + SLACK)
    governor.leave(second, now)
    assert governor.wait(third, now) == WINDOW + SLACK


def test_a_refused_call_has_used_nothing_and_holds_the_others_for_its_retry_after() -> None:
    governor, now = Governor(), 1_000.0
    governor.note_limits("m", [RateLimit(Unit.TOKENS, LIMIT)], now)
    call = governor.enter("m", LIMIT, 0, now)
    governor.begin(call, now)
    governor.note_throttling("m", 20.0, now)
    governor.leave(call, now, refused=True)
    other = governor.enter("m", 10, 0, now)
    assert governor.wait(other, now) == 20.0
    governor.note_throttling("m", 86_400.0, now)
    assert governor.wait(governor.enter("m", 10, 0, now), now) == WINDOW


def test_throttling_widens_what_a_call_is_expected_to_take() -> None:
    governor, now = Governor(), 1_000.0
    governor.note_limits("m", [RateLimit(Unit.TOKENS, LIMIT)], now)
    first = governor.enter("m", 6_000, 0, now)
    governor.begin(first, now)
    assert governor.wait(governor.enter("m", 3_000, 0, now, is_retry=True), now) == 0
    governor.note_throttling("m")
    assert governor.wait(governor.enter("m", 3_000, 0, now, is_retry=True), now) == WINDOW + SLACK


def test_the_server_teaches_how_it_counts() -> None:
    governor = Governor()
    call = governor.enter("m", 1_000, 0, 1_000.0)
    governor.begin(call, 1_000.0)
    governor.note_usage(call, Usage(2_500, 70), 1_001.0)
    following: PacedCall = governor.enter("m", 2_000, 0, 1_002.0)
    assert (following.fresh, following.output) == (5_000, 70)


def test_questions_beside_a_conversation_are_left_out_where_calls_are_held_back() -> None:
    governor = Governor()
    assert not governor.is_tight("m", 1_000.0)
    governor.note_limits("m", [RateLimit(Unit.TOKENS, LIMIT, 2_000, 30.0)], 1_000.0)
    assert not governor.is_tight("m", 1_000.0)
    governor.note_limits("m", [RateLimit(Unit.TOKENS, LIMIT, 1_999, 30.0)], 1_000.0)
    assert governor.is_tight("m", 1_000.0)
    assert not governor.is_tight("m", 1_030.0)
    waiting = governor.enter("m", LIMIT, 0, 1_000.0)
    assert governor.is_tight("m", 1_030.0)
    governor.leave(waiting, 1_000.0)
    assert not governor.is_tight("m", 1_030.0)


HELLO = Reply((Text("hello"),))
LIMITED = Reply((Fail("rate limited", "rate_limit", retryable=False),))


def test_it_rises_to_three_and_falls_back_to_one() -> None:
    seen = Governor()
    assert seen.delay("m") == 0
    for _ in range(5):
        seen.note_throttling("m")
    assert (seen.multiplier("m"), seen.delay("m")) == (3.0, 4.0)
    for _ in range(20):
        seen.note_success("m")
    assert (seen.multiplier("m"), seen.delay("m")) == (1.0, 0.0)


def test_limits_that_only_a_refusal_stated_are_over_with_the_next_answer() -> None:
    seen = Governor()
    limit = RateLimit(Unit.INPUT, 1_000, remaining=0, full_in=60.0)
    seen.note_limits("m", [limit], 0.0, by_refusal=True)
    seen.note_throttling("m", 30.0, 0.0)
    retry = seen.enter("m", 900, 0, 0.0, is_retry=True)
    assert seen.wait(retry, 0.0) > 30
    seen.begin(retry, 60.0)
    seen.note_success("m")
    seen.note_usage(retry, Usage(900, 10), 61.0)
    assert seen.wait(seen.enter("m", 900, 0, 62.0), 62.0) == pytest.approx(0.7)


def test_limits_that_an_answer_states_hold() -> None:
    seen = Governor()
    seen.note_limits("m", [RateLimit(Unit.INPUT, 1_000, remaining=0, full_in=60.0)], 0.0, by_refusal=True)
    seen.note_success("m")
    seen.note_limits("m", [RateLimit(Unit.INPUT, 1_000, remaining=0, full_in=60.0)], 1.0)
    seen.note_success("m")
    assert seen.wait(seen.enter("m", 900, 0, 2.0), 2.0) > 50


def test_one_model_does_not_slow_another() -> None:
    seen = Governor()
    seen.note_throttling("a")
    assert seen.multiplier("a") == pytest.approx(1.5)
    assert seen.delay("b") == 0


@pytest.mark.parametrize(("least", "told"), [(0.01, [0.05]), (1.0, [])])
async def test_a_call_after_a_rate_limit_waits_and_says_so_where_it_is_felt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, least: float, told: list[float]
) -> None:
    monkeypatch.setattr(model_limits, "DELAY_PER_STEP", 0.1)
    monkeypatch.setattr(asking, "LEAST_TOLD", least)
    async with engine_harness(tmp_path, LIMITED, HELLO) as harness:
        conversation = await harness.run("one")
        assert isinstance(await run_turn(conversation, "two"), Idle)
        assert [one.seconds for one in harness.seen(Paced)] == pytest.approx(told, abs=0.01)
        assert not harness.seen(Noticed), "a wait is no event of the conversation"
        assert len(harness.provider.requests) == 2


async def test_escape_ends_the_wait_before_the_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_limits, "DELAY_PER_STEP", 1_000.0)
    async with engine_harness(tmp_path, LIMITED, HELLO) as harness:
        conversation = await harness.run("one")
        await conversation.say("two")
        await until(lambda: harness.seen(Paced))
        conversation.cancel()
        assert isinstance(await conversation.wait_idle(), Idle)
        assert len(harness.provider.requests) == 1


def test_throttling_and_its_end_are_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", logger="engine.executor.model_limits")
    governor = Governor()
    governor.note_success("m")
    assert caplog.messages == []
    governor.note_throttling("m")
    governor.note_success("m")
    assert [line.partition(":")[0] for line in caplog.messages] == ["throttle_exception", "throttle_success"]
