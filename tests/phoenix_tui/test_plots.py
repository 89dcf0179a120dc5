"""Bars, sparklines and heat maps: their width, their extremes and their forms without signs beyond ASCII."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from phoenix_tui.modals.statistics_sheet import WEEKS, days_until, draw_bar, draw_heat_map, draw_sparkline, squeeze

SIZES = st.floats(min_value=0, max_value=1e15, allow_nan=False)


@given(SIZES, SIZES, st.integers(0, 60), st.booleans())
def test_a_bar_has_its_width_and_shows_what_is_above_0(value: float, most: float, width: int, plain: bool) -> None:
    drawn = draw_bar(value, most, width, plain=plain)
    assert len(drawn) == width
    if value > 0 and width:
        assert drawn.strip()
    if plain:
        assert drawn.isascii()


@given(st.lists(SIZES, max_size=400), st.integers(1, 120))
def test_a_squeezed_line_keeps_the_sum_and_fits(values: list[float], width: int) -> None:
    shown = squeeze(values, width)
    assert len(shown) <= width
    assert abs(sum(shown) - sum(values)) <= 1e-6 * max(sum(values), 1.0)
    assert len(draw_sparkline(shown)) == len(shown)


def test_a_sparkline_has_a_height_for_each_value_and_a_blank_for_none() -> None:
    assert draw_sparkline([0, 1, 4, 8]) == " ▁▄█"
    assert draw_sparkline([0, 1, 4, 8], plain=True) == " .=#"


def test_a_year_ends_with_today_and_each_day_has_its_place() -> None:
    today = "2026-11-25"  # a Wednesday
    rows = draw_heat_map({today: 4.0, "2026-11-23": 1.0, "2025-11-24": 2.0, "1999-01-01": 9.0}, today)
    months, monday, *_ = rows
    assert len(rows) == 8
    assert "Jan" in months
    assert (monday[:4], monday[4], monday[-1]) == ("Mon ", "▒", "░")
    assert rows[3][-1] == "█"
    assert [len(row) for row in rows[1:]] == [4 + WEEKS] * 3 + [4 + WEEKS - 1] * 4
    assert all(row.isascii() for row in draw_heat_map({today: 4.0}, today, plain=True))


def test_days_go_over_a_leap_day() -> None:
    assert days_until("2024-03-01", 3) == ["2024-02-28", "2024-02-29", "2024-03-01"]
