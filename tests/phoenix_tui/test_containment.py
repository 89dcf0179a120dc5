"""Faults that Phoenix outlives: widgets shown as text, timers stopped, a few a minute."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

import pytest
from textual.app import App, ComposeResult
from textual.await_remove import AwaitRemove
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widget import Widget
from textual.widgets import Static, TextArea

from phoenix_tui.lifecycle.containment import MOST, TICKS, Containment, contain_faults
from phoenix_tui.lifecycle.plain_widget import SENTENCE, WITH_TEXT, source_of
from tests.support.clocks import SteppedClock
from tests.support.waiting import poll


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


def fail(*_: object, **__: object) -> Any:
    raise RuntimeError("planted")


class FaultyApp(App[None]):
    """An app that contains faults as Phoenix does."""

    def __init__(self, *widgets: Widget) -> None:
        contain_faults()
        super().__init__()
        self._widgets = widgets
        self.said: list[str] = []
        self.ended = False
        self._containment = Containment(self, self.said.append, None)

    def compose(self) -> ComposeResult:
        yield from self._widgets
        yield Static("neighbour")

    def goes_on_after(self, error: Exception, *, is_left_out: bool = False) -> bool:
        return self._containment.contain(error, is_left_out=is_left_out)

    def _handle_exception(self, error: Exception) -> None:
        if not self.goes_on_after(error):
            self.ended = True
            super()._handle_exception(error)

    def rows(self) -> list[str]:
        """Rows of the screen with a word in them; none while they cannot be drawn."""
        try:
            strips = self.screen._compositor.render_strips()
        except RuntimeError:
            return []
        shown = ["".join(segment.text for segment in strip).rstrip() for strip in strips]
        return [row for row in shown if row]


def failing(base: type[Widget], name: str, *arguments: Any, **named: Any) -> Widget:
    """A widget one method of which always fails."""
    kind: Any = type(f"Faulty{base.__name__}", (base,), {name: fail})
    made: Widget = kind(*arguments, **named)
    made.styles.height = "auto"
    return made


UNDRAWABLE = {
    "its content": (partial(failing, Static, "render", "own [b]words\x1b[2J"), [WITH_TEXT, "own [b]words"]),
    "its rows": (
        partial(failing, TextArea, "render_line", "a draft\nof two"),
        [WITH_TEXT, "a draft", "of two"],
    ),
    "its height": (partial(failing, Static, "get_content_height", "words"), [WITH_TEXT, "words"]),
    "its parts": (partial(failing, Vertical, "compose"), [SENTENCE]),
    "the places of its parts": (partial(failing, Vertical, "arrange", Static("part")), [SENTENCE]),
}


@pytest.mark.parametrize("what", UNDRAWABLE)
async def test_a_widget_that_cannot_be_drawn_is_its_text_in_its_place_and_told_once(what: str) -> None:
    make, shown = UNDRAWABLE[what]
    app = FaultyApp(make())
    async with app.run_test(size=(60, 20)) as pilot:
        assert await poll(lambda: app.rows() == [*shown, "neighbour"]), app.rows()
        for _ in range(2 * MOST):
            app.refresh(layout=True)
            await pilot.pause()
        assert app.rows() == [*shown, "neighbour"]
        assert (len(app.said), app.ended) == (1, False)


async def test_one_fault_of_drawing_leaves_the_widget_as_it_is() -> None:
    left = [1]

    class Once(Static):
        def render(self) -> Any:
            return fail() if left and left.pop() else super().render()

    app = FaultyApp(Once("words"))
    async with app.run_test(size=(60, 20)):
        assert await poll(lambda: app.rows() == ["words", "neighbour"]), app.rows()


async def test_a_single_row_shows_its_text_alone_and_reads_it_each_time() -> None:
    area = failing(TextArea, "render_line", "a draft")
    area.styles.height, area.styles.border, area.styles.padding = 1, ("none", "red"), 0
    app = FaultyApp(area)
    async with app.run_test(size=(60, 20)) as pilot:
        assert await poll(lambda: app.rows() == ["a draft", "neighbour"]), app.rows()
        area.focus()
        await pilot.press("m", "y", "space")
        assert await poll(lambda: app.rows() == ["my a draft", "neighbour"]), app.rows()


async def test_a_widget_whose_start_fails_is_drawn_as_far_as_it_came() -> None:
    app = FaultyApp(*(failing(Static, "on_mount", f"words {n}") for n in range(2 * MOST)))
    async with app.run_test(size=(60, 30)):
        assert app.rows() == [*(f"words {n}" for n in range(2 * MOST)), "neighbour"]
        assert (len(app.said), app.ended) == (1, False)


async def test_a_removal_goes_on_when_a_command_that_waits_for_it_is_cancelled() -> None:
    gate, left = asyncio.Event(), list[str]()

    class Slow(Static):
        async def on_unmount(self) -> None:
            await gate.wait()
            left.append("all")

    async def wait_for(removal: AwaitRemove) -> None:
        await removal

    app = FaultyApp(Slow("words"))
    async with app.run_test():
        removal = app.query_one(Slow).remove()
        waiter = asyncio.create_task(wait_for(removal))
        await asyncio.sleep(0)
        waiter.cancel()
        gate.set()
        await removal
        assert (app.rows(), left, app.ended) == (["neighbour"], ["all"], False)


async def test_a_timer_that_fails_at_each_tick_is_stopped_and_told_once() -> None:
    app, ticks = FaultyApp(), list[int]()

    def tick() -> None:
        ticks.append(1)
        fail()

    async with app.run_test() as pilot:
        timers = [app.set_interval(0.001, tick) for _ in range(2 * MOST)]
        assert await poll(lambda: all(timer._task is None for timer in timers))
        await pilot.pause()
        assert (len(ticks), len(app.said), app.ended) == (TICKS * len(timers), 1, False)


async def test_a_sheet_that_fails_on_each_key_is_closed_each_time() -> None:
    class Faulty(ModalScreen[None]):
        def on_key(self) -> None:
            fail()

    app = FaultyApp()
    async with app.run_test() as pilot:
        for _ in range(2 * MOST):
            await app.push_screen(Faulty())
            await pilot.press("x")
            assert await poll(lambda: len(app.screen_stack) == 1)
        assert (len(app.said), app.ended) == (1, False)


async def test_frames_that_fail_beyond_any_widget_end_the_app() -> None:
    app = FaultyApp()
    with pytest.raises(RuntimeError, match="planted"):
        async with app.run_test():
            setattr(app.screen._compositor, "render_update", fail)  # noqa: B010 - planted
            app.screen.refresh()
            assert await poll(lambda: app.ended)


def test_the_text_of_a_widget_is_cleaned_and_one_that_cannot_be_read_is_none() -> None:
    assert source_of(Static("a\x1b[31mb\u202e")) == "ab"
    kind: Any = type("Unreadable", (Widget,), {"text": property(fail)})
    assert source_of(kind()) == ""
