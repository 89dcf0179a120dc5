"""The pieces below the view: heights, frames, history windows, tool summaries, the paint memo."""

from __future__ import annotations

import asyncio

from hypothesis import given
from hypothesis import strategies as st
from textual.app import App, ComposeResult
from textual.geometry import Region
from textual.widgets import Static, TextArea

from phoenix_tui.widgets.bases import Still
from phoenix_tui.widgets.blocks.rows import duration_text, summary_of
from phoenix_tui.widgets.transcript.painted_rows import window_for
from phoenix_tui.widgets.transcript.stack import Heights
from phoenix_tui.widgets.transcript.view import Frames
from tests.support.clocks import SteppedClock
from tests.support.waiting import PATIENCE


@given(st.integers(1, 1_500), st.lists(st.tuples(st.integers(0, 1_499), st.integers(0, 9)), max_size=40))
def test_heights_find_what_a_plain_sum_finds(count: int, changes: list[tuple[int, int]]) -> None:
    heights, plain = Heights(count, 4), [4] * count
    for slot, height in changes:
        if slot < count:
            heights.set(slot, height)
            plain[slot] = height
    heights.append(3)
    plain.append(3)
    assert heights.total == sum(plain)
    row = sum(plain) // 2
    slot, inside = heights.find(row)
    assert heights.top(slot) + inside == row == sum(plain[:slot]) + inside
    assert inside < plain[slot]


async def test_the_first_change_is_drawn_at_once_and_the_next_ones_together() -> None:
    clock, drawn = SteppedClock(), asyncio.Event()
    count = 0

    def draw() -> None:
        nonlocal count
        count += 1
        drawn.set()

    frames = Frames(draw, clock)
    frames.request()
    assert count == 1
    drawn.clear()
    for _ in range(50):
        frames.request()
    assert count == 1
    assert frames.waiting
    await asyncio.wait_for(drawn.wait(), PATIENCE)
    assert count == 2


async def test_a_costly_frame_makes_the_next_one_wait_longer() -> None:
    clock = SteppedClock()
    frames = Frames(lambda: setattr(clock, "seconds", clock.seconds + 0.02), clock)
    frames.request()
    clock.seconds += 0.1
    frames.request()
    assert frames.waiting
    frames.stop()
    clock.seconds += 0.1
    frames.request()
    assert not frames.waiting


@given(st.sets(st.integers(0, 3_000), min_size=1), st.integers(1, 3_000))
def test_a_window_covers_the_newest_missing_message_and_stays_in_bounds(missing: set[int], count: int) -> None:
    window = window_for(missing, count)
    wanted = [slot for slot in missing if slot < count]
    assert (window is None) == (not wanted)
    if window is not None:
        before, limit = window
        assert before - limit <= max(wanted) + 1 < before
        assert 1 <= limit <= 128


def test_a_call_is_named_by_what_it_does() -> None:
    assert summary_of('{"description":"x","command":"make  test\\n-j2"}') == "make  test↵-j2"
    assert summary_of('{"limit":3,"path":"a.py"}') == "a.py"
    assert summary_of("not json") == "not json"
    assert summary_of("[1]") == "[1]"
    assert summary_of("") == ""


def test_durations_are_short() -> None:
    assert [duration_text(s) for s in (0.04, 9.94, 9.96, 59.4, 65, 3_725)] == [
        "0.0s",
        "9.9s",
        "10s",
        "59s",
        "1m 05s",
        "1h 02m",
    ]


class StillStatic(Still, Static):
    """A label that hardly changes."""


class StillArea(Still, TextArea):
    """An editor that hardly changes."""


class StillApp(App[None]):
    """Both, one above the other."""

    def compose(self) -> ComposeResult:
        yield StillStatic("one", id="label")
        yield StillArea("text")


async def test_an_unchanged_widget_hands_out_the_same_rows() -> None:
    app = StillApp()
    async with app.run_test(size=(40, 10)) as pilot:
        label = app.query_one(StillStatic)
        crop = Region(0, 0, 40, 1)
        first = label.render_lines(crop)
        assert label.render_lines(crop) is first
        label.update("two")
        await pilot.pause()
        assert label.render_lines(crop)[0].text.startswith("two")
        app.theme = "textual-light"
        await pilot.pause()
        assert label.render_lines(crop) is not first


async def test_a_still_editor_is_styled_and_echoes_keys() -> None:
    app = StillApp()
    async with app.run_test(size=(40, 10)) as pilot:
        app.query_one(StillArea).focus()
        await pilot.press("x")
        area = app.query_one(StillArea)
        assert "xtext" in "".join(row.text for row in area.render_lines(Region(0, 0, *area.size)))
