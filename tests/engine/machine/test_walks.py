"""Any event in any state: nothing raises and the invariants hold (SPEC T-SM, I1 to I3, I7)."""

from __future__ import annotations

import random
from collections import defaultdict
from itertools import chain, product
from typing import TypeAlias, TypeVar, get_args

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule
from msgspec.structs import replace

from engine.machine.events import Event, ExecutorEvent, UserCancelled
from engine.machine.states import STATE_NAMES, Cancelling, State, is_busy
from engine.machine.step import step
from tests.support.machine import Walk, walk

Kind = TypeVar("Kind")
Found: TypeAlias = dict[type[Kind], list[Kind]]

WALKS = 4_000
"""Walks of a test: of the 324 kinds of step (state, event, state behind it) that 16,000 come by, these come by 323."""
SLICES = 2
EXAMPLES = 200
OF_EACH = 8
DEEPER = 10
"""Times as many when new examples are looked for."""
QUICKER = 8
"""Times as few between two edits."""

match settings.get_current_profile_name():
    case "explore":
        WALKS, EXAMPLES = WALKS * DEEPER, EXAMPLES * DEEPER
    case "quick":
        WALKS, EXAMPLES = WALKS // QUICKER, EXAMPLES // QUICKER
    case _:
        pass  # the numbers above


@pytest.mark.slow
@pytest.mark.parametrize("part", range(SLICES))
def test_seeded_walks_of_fifty_events_keep_every_invariant(part: int) -> None:
    share = WALKS // SLICES
    steps = sum(len(walk(seed).messages) for seed in range(part * share, (part + 1) * share))
    assert steps > share, "walks that store nothing would prove nothing"


def test_any_event_in_any_state_gives_the_same_step_again_and_leaves_its_state_as_it_was() -> None:
    states, events = collected(400)
    assert set(states) == set(STATE_NAMES)
    assert set(events) == set(get_args(Event))
    for state, event in product(chain(*states.values()), chain(*events.values())):
        before = repr(state)
        for meant in (event, replace(event, gen=state.gen)) if isinstance(event, ExecutorEvent) else (event,):
            after = step(state, meant)
            assert after == step(state, meant)
            assert after.state.gen >= state.gen, "generations only grow"
        assert repr(state) == before


def collected(walks: int) -> tuple[Found[State], Found[Event]]:
    """States and events that walks come by, some of each kind."""
    states: Found[State] = defaultdict(list)
    events: Found[Event] = defaultdict(list)
    for seed in range(walks):
        done = walk(seed, 0)
        for _ in range(50):
            event = done.event()
            keep(states[type(done.state)], done.state)
            keep(events[type(event)], event)
            done.apply(event)
    return states, events


def keep(kept: list[Kind], value: Kind) -> None:
    """Keep a value while there are few of its kind."""
    if len(kept) < OF_EACH and value not in kept:
        kept.append(value)


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


TestConversations = Conversations.TestCase
TestConversations.settings = settings(
    max_examples=EXAMPLES, stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck)
)
