"""A reader lets the keyboard in during bursts and merges tokens that trickle in."""

from __future__ import annotations

from engine.providers.pace import MERGE_SECONDS, STEADY_READS, ReadPace


class Hand:
    """A clock that a test moves."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


def read(pace: ReadPace, hand: Hand, *, waited: float, worked: float = 0.0001) -> float | None:
    hand.now += waited
    pace.arrived()
    hand.now += worked
    return pace.rest()


def test_a_burst_lets_the_loop_run_every_millisecond() -> None:
    hand = Hand()
    pace = ReadPace(hand)
    rests = [read(pace, hand, waited=0.0, worked=0.0003) for _ in range(8)]
    assert rests == [None, None, None, 0.0, None, None, None, 0.0]


def test_a_short_answer_is_read_without_pauses() -> None:
    hand = Hand()
    pace = ReadPace(hand)
    assert [read(pace, hand, waited=0.01) for _ in range(STEADY_READS)] == [None] * STEADY_READS


def test_tokens_that_trickle_in_are_merged_and_what_was_merged_is_read_at_once() -> None:
    hand = Hand()
    pace = ReadPace(hand)
    for _ in range(STEADY_READS):
        read(pace, hand, waited=0.0125)
    assert read(pace, hand, waited=0.0125) == MERGE_SECONDS
    hand.now += MERGE_SECONDS
    pace.rested()
    assert [read(pace, hand, waited=0.0001) for _ in range(3)] == [None] * 3
    assert read(pace, hand, waited=0.0125) == MERGE_SECONDS
