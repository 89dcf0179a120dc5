"""The learned ratio of real to estimated tokens: bounded, running, forgetful."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.context.estimate import LARGEST, MOST_MODELS, SMALLEST, Calibration


def test_the_first_reply_sets_the_ratio_and_later_ones_move_it() -> None:
    calibration = Calibration()
    assert calibration.ratio("a/m") == 1.0
    calibration.learn("a/m", 1_000, 1_500)
    assert (calibration.ratio("a/m"), calibration.ratio("b/m")) == (1.5, 1.0)
    calibration.learn("a/m", 1_000, 500)
    assert calibration.ratio("a/m") == pytest.approx(1.2)


@pytest.mark.parametrize(("estimated", "real"), [(0, 100), (100, 0), (-1, 5), (5, -1)])
def test_a_count_of_nothing_teaches_nothing(estimated: int, real: int) -> None:
    calibration = Calibration()
    calibration.learn("a/m", estimated, real)
    assert calibration.ratio("a/m") == 1.0


@given(st.lists(st.tuples(st.integers(-5, 10**9), st.integers(-5, 10**15)), max_size=20))
def test_no_count_of_a_server_leads_out_of_the_bounds(pairs: list[tuple[int, int]]) -> None:
    calibration = Calibration()
    for estimated, real in pairs:
        calibration.learn("a/m", estimated, real)
        assert SMALLEST <= calibration.ratio("a/m") <= LARGEST


def test_the_model_learned_about_first_is_forgotten_when_there_are_too_many() -> None:
    calibration = Calibration()
    for number in range(MOST_MODELS + 1):
        calibration.learn(f"a/{number}", 100, 200)
    assert (calibration.ratio("a/0"), calibration.ratio("a/1")) == (1.0, 2.0)
