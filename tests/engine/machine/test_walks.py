"""Any event in any state: nothing raises and the invariants hold (SPEC T-SM, I1-I3, I7)."""

from __future__ import annotations

import random

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from engine.machine.events import UserCancelled
from engine.machine.states import STATE_NAMES, Cancelling, is_busy
from engine.machine.step import step
from tests.support.machine import Walk, walk

WALKS = 100_000
SLICES = 10


@pytest.mark.slow
@pytest.mark.parametrize("part", range(SLICES))
def test_seeded_walks_of_fifty_events_keep_every_invariant(part: int) -> None:
    share = WALKS // SLICES
    steps = sum(len(walk(seed).messages) for seed in range(part * share, (part + 1) * share))
    assert steps > share, "walks that store nothing would prove nothing"


def test_walks_reach_all_ten_states() -> None:
    missing = set(STATE_NAMES)
    for seed in range(1_500):
        done = Walk(random.Random(seed), walk(seed, 0).state)
        for _ in range(50):
            done.apply(done.event())
            missing.discard(type(done.state))
        if not missing:
            break
    assert missing == set()


class Conversations(RuleBasedStateMachine):
    """Hypothesis chooses the events; the walk checks them."""

    def __init__(self) -> None:
        super().__init__()
        self.walk = Walk(random.Random(0))

    @rule(seed=st.integers(0, 2**32))
    def anything_happens(self, seed: int) -> None:
        self.walk.rng = random.Random(seed)
        self.walk.apply(self.walk.event())

    @precondition(lambda self: is_busy(self.walk.state))
    @rule()
    def the_user_presses_escape(self) -> None:
        self.walk.apply(UserCancelled(self.walk.fresh("m")))
        assert not is_busy(self.walk.state) or isinstance(self.walk.state, Cancelling)

    @invariant()
    def a_step_never_changes_its_input(self) -> None:
        before = repr(self.walk.state)
        step(self.walk.state, UserCancelled("m"))
        assert repr(self.walk.state) == before


TestConversations = Conversations.TestCase
TestConversations.settings = settings(
    max_examples=2_000, stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck)
)
