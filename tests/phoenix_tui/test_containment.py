"""Bound on the faults that Phoenix outlives: a few a minute, counted by the way that led to them."""

from __future__ import annotations

from typing import Any

from textual.app import App

from phoenix_tui.lifecycle.containment import MOST, Containment
from tests.support.clocks import SteppedClock


def fault(depth: int) -> Exception:
    """A fault of another place for each depth."""

    def fail(more: int) -> None:
        if not more:
            raise ValueError("planted")
        fail(more - 1)

    try:
        fail(depth)
    except ValueError as error:
        return error
    raise AssertionError


def contained(clock: SteppedClock, said: list[str]) -> Containment:
    app: App[Any] = App()
    return Containment(app, said.append, None, clock)


def test_five_faults_a_minute_are_outlived_and_the_sixth_is_not() -> None:
    clock, said = SteppedClock(), list[str]()
    faults = contained(clock, said)
    assert [faults.contain(fault(depth)) for depth in range(MOST + 1)] == [True] * MOST + [False]
    assert said == ["Something went wrong here and was stopped; nothing was lost (report: none was asked for)."] * MOST
    clock.seconds += 61
    assert faults.contain(fault(MOST + 1))


def test_a_fault_that_repeats_while_a_key_is_held_counts_once_a_second_and_is_told_once() -> None:
    clock, said = SteppedClock(), list[str]()
    faults = contained(clock, said)
    outlived = 0
    while faults.contain(fault(1)):
        outlived += 1
        clock.seconds += 0.25
    assert (outlived, len(said)) == (4 * MOST, 1)
