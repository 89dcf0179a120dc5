"""A reader lets the keyboard in during bursts and merges tokens that trickle in."""

from __future__ import annotations

from engine.providers.http import MERGE_SECONDS, STEADY_READS, ReadPace
from tests.support.clocks import SteppedClock


def read(pace: ReadPace, clock: SteppedClock, *, waited: float, worked: float = 0.0001) -> float | None:
    clock.seconds += waited
    pace.note_piece()
    clock.seconds += worked
    return pace.rest()


def test_a_burst_lets_the_loop_run_every_millisecond() -> None:
    clock = SteppedClock()
    pace = ReadPace(clock)
    rests = [read(pace, clock, waited=0.0, worked=0.0003) for _ in range(8)]
    assert rests == [None, None, None, 0.0, None, None, None, 0.0]


def test_a_short_answer_is_read_without_pauses() -> None:
    clock = SteppedClock()
    pace = ReadPace(clock)
    assert [read(pace, clock, waited=0.01) for _ in range(STEADY_READS)] == [None] * STEADY_READS


def test_tokens_that_trickle_in_are_merged_and_what_was_merged_is_read_at_once() -> None:
    clock = SteppedClock()
    pace = ReadPace(clock)
    for _ in range(STEADY_READS):
        read(pace, clock, waited=0.0125)
    assert read(pace, clock, waited=0.0125) == MERGE_SECONDS
    clock.seconds += MERGE_SECONDS
    pace.note_rest()
    assert [read(pace, clock, waited=0.0001) for _ in range(3)] == [None] * 3
    assert read(pace, clock, waited=0.0125) == MERGE_SECONDS
