"""Updates painted in one go, and the values read for it."""

from __future__ import annotations

import random
from collections.abc import Iterable

import pytest
from msgspec.structs import replace
from textual.app import App, ComposeResult

from engine.machine.states import AwaitingLlm, Requesting, Run
from phoenix_tui.text.labels import StatusDetails
from phoenix_tui.widgets.status_line import StatusLine, StatusValues
from phoenix_tui.widgets.transcript.drawing import DrawnPart, locate_rows
from phoenix_tui.widgets.transcript.model import TranscriptModel
from phoenix_tui.widgets.transcript.scroller import Canvas
from phoenix_tui.widgets.transcript.view import Frames
from tests.support.clocks import SteppedClock
from tests.support.screens import answered, said, snapshot

WORKING = AwaitingLlm(1, Run("r", 5), Requesting())


class OneLine(App[None]):
    def __init__(self) -> None:
        super().__init__()
        self.line = StatusLine()
        self.line.clock = SteppedClock(0.0)

    def compose(self) -> ComposeResult:
        yield self.line


async def test_a_pace_alone_is_painted_with_the_next_tick() -> None:
    app = OneLine()
    async with app.run_test() as pilot:
        app.line.status = StatusValues(state=WORKING, details=StatusDetails(writing=True))
        await pilot.pause()
        painted = app.line.render_lines(app.line.size.region)
        app.line.status = replace(app.line.status, details=StatusDetails(writing=True, rate=80.0))
        assert app.line.render_lines(app.line.size.region) is painted
        app.line._tick()
        assert app.line.render_lines(app.line.size.region) is not painted
        assert "80 tok/s" in app.line.render().plain


async def test_what_waits_is_painted_along_with_a_tick_that_paints() -> None:
    app = OneLine()
    async with app.run_test() as pilot:
        caught_up: list[bool] = []
        app.line.beside = lambda: caught_up.append(True)
        app.line.status = StatusValues(state=WORKING, details=StatusDetails(writing=True))
        await pilot.pause()
        app.line._drawn = app.line._format_state(app.line._label())
        app.line._turn -= 1
        app.line._tick()
        assert not caught_up
        app.line._drawn = "something else"
        app.line._tick()
        assert caught_up


async def test_a_frame_that_waits_is_drawn_at_once_and_never_twice() -> None:
    drawn: list[int] = []
    frames = Frames(lambda: drawn.append(1), clock=SteppedClock(0.0))
    frames.catch_up()
    assert not drawn
    frames.request()
    frames.request()
    assert frames.waiting
    frames.catch_up()
    frames.catch_up()
    assert len(drawn) == 2
    assert not frames.waiting


def by_rows(canvas: Canvas) -> list[DrawnPart]:
    found: list[DrawnPart] = []
    for _, row, drawn in canvas.viewport.rows():
        place = None if drawn is None else drawn.locate(row)
        if place is not None and place[0] not in found[-1:]:
            found.append(place[0])
    return found


def keys(parts: Iterable[DrawnPart]) -> list[str]:
    return [part.key for part in parts]


@pytest.mark.parametrize("seed", range(20))
def test_the_parts_in_sight_are_those_that_have_a_row_in_the_window(seed: int) -> None:
    chance, model = random.Random(seed), TranscriptModel()
    answer = "# Head\n\nSome words.\n\n```python\nx = 1\n```\n\n- one\n- two"
    messages = [said(seq, "why?") if seq % 2 else answered(seq, answer) for seq in range(1, 41)]
    model.show(snapshot([each for each in messages if not 10 < each.seq < 14]))
    canvas = Canvas(model)
    canvas.reset()
    canvas.resize(60, chance.randrange(1, 40))
    for _ in range(30):
        canvas.viewport.stand_at(chance.randrange(model.count + 1), chance.randrange(12))
        canvas.place()
        assert keys(canvas.visible_parts()) == keys(by_rows(canvas))
        rows = list(canvas.viewport.rows())
        assert list(locate_rows(rows)) == [None if drawn is None else drawn.locate(row) for _, row, drawn in rows]
