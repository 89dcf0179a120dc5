"""The position in a transcript, and its scrollbar."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.color import Color
from rich.segment import Segment
from rich.style import Style
from textual.geometry import Region
from textual.scrollbar import ScrollBarRender

from engine.updates import MessageSaved, TextArrived
from phoenix_tui.widgets.transcript.scroller import Canvas, Scroller, TranscriptBar, kinds_of, segment_of, thumb
from phoenix_tui.widgets.transcript.view import follow
from tests.support.bare_transcript import RecordedBar, RecordedView, canvas_of
from tests.support.screens import TranscriptApp, answered, said, snapshot
from tests.support.waiting import poll

WIDTH, HEIGHT = 60, 12
WHOLE = Region(0, 0, WIDTH, HEIGHT)


def scroller_over(canvas: Canvas) -> tuple[Scroller, RecordedView, RecordedBar]:
    view, bar = RecordedView(WIDTH, HEIGHT), RecordedBar()
    return Scroller(view, canvas, lambda: cast("TranscriptBar", bar)), view, bar


def talk(count: int) -> Canvas:
    return canvas_of([said(seq, f"message {seq}") for seq in range(1, count + 1)], width=WIDTH, height=HEIGHT)


def test_it_stands_at_the_end_and_says_so_to_textual_and_to_the_bar() -> None:
    scroller, view, bar = scroller_over(talk(20))
    scroller.place_again()
    end = view.virtual_size.height - HEIGHT
    assert (view.scroll_y, view.scroll_target_y, bar.stood) == (end, end, (view.virtual_size.height, HEIGHT, end))
    assert view.painted == [WHOLE]


def test_only_the_rows_from_the_first_that_changed_are_painted() -> None:
    canvas = canvas_of([said(1, "go")], width=WIDTH, height=HEIGHT)
    scroller, view, _ = scroller_over(canvas)
    scroller.place_again()
    view.painted.clear()
    scroller.place_changed()
    assert view.painted == []
    follow(TextArrived("an answer"), canvas.model)
    scroller.place_changed()
    assert [region.y > 0 and region.bottom == HEIGHT for region in view.painted] == [True]


def test_a_row_a_page_and_an_end_are_asked_of_textual() -> None:
    scroller, view, _ = scroller_over(talk(20))
    scroller.place_again()
    here, whole = view.scroll_y, view.virtual_size.height
    for move in (scroller.row, scroller.page, scroller.end):
        move(-1)
        move(1)
    assert view.moves == [here - 1, here + 1, here - HEIGHT + 2, here + HEIGHT - 2, 0, whole]


def test_where_textual_was_scrolled_to_stays_in_sight_as_messages_come() -> None:
    canvas = talk(20)
    scroller, view, _ = scroller_over(canvas)
    scroller.follow_scroll(6)
    at, top = canvas.viewport.hold(), view.scroll_y
    follow(MessageSaved(answered(21, "one more")), canvas.model)
    scroller.place_changed()
    assert (canvas.viewport.hold(), view.scroll_y) == (at, top)


def test_a_jump_puts_a_message_at_the_top() -> None:
    canvas = talk(40)
    scroller, _, _ = scroller_over(canvas)
    scroller.jump(7)
    assert canvas.viewport.hold() == (6, 0)


def test_who_follows_is_told_in_order_after_each_placing_and_never_without_room() -> None:
    scroller, view, _ = scroller_over(talk(3))
    told: list[str] = []
    scroller.followers = (lambda: told.append("clocks"), lambda: told.append("history"))
    scroller.place_again()
    scroller.place_changed()
    assert told == ["clocks", "history"] * 2
    view.has = view.has.with_height(0)
    scroller.place_again()
    assert len(told) == 4


COLOURS = Style(color="#112233", bgcolor="#445566")


def seen(segments: list[Segment]) -> Iterator[tuple[str, Color | None, bool | None, object]]:
    for text, style, _ in segments:
        assert style is not None
        blank = text.isspace() and not style.reverse
        yield text, None if blank else style.color, style.reverse or None, style.meta


@given(size=st.integers(1, 80), total=st.integers(1, 300_000), window=st.integers(1, 80), share=st.floats(0, 1))
def test_every_row_is_what_textual_would_draw(size: int, total: int, window: int, share: float) -> None:
    shown = window if window < total else 0
    position = int((total - shown) * share) if shown else 0
    wanted = ScrollBarRender.render_bar(
        size, total, shown, position, back_color=Color.parse("#445566"), bar_color=Color.parse("#112233")
    )
    rows = kinds_of(size, *thumb(size, total, window, position))
    assert list(seen([segment_of(kind, 1, COLOURS) for kind in rows])) == list(seen(list(wanted.segments)))


async def test_a_step_that_does_not_move_the_thumb_paints_no_bar() -> None:
    app = TranscriptApp()
    async with app.run_test(size=(60, 12)) as pilot:
        app.view.show(snapshot([said(seq, f"message {seq}") for seq in range(1, 900)]))
        await pilot.pause()
        bar = app.view.vertical_scrollbar
        everything = Region(0, 0, bar.size.width, bar.size.height)
        await pilot.press("up")
        assert await poll(lambda: not app.view.canvas.viewport.following)
        painted, place = bar.render_lines(everything), app.view.canvas.viewport.hold()
        await pilot.press("up")
        assert await poll(lambda: app.view.canvas.viewport.hold() != place)
        assert bar.render_lines(everything) is painted
        await pilot.press("home")
        assert await poll(lambda: bar.render_lines(everything) is not painted)


@pytest.mark.parametrize(("row", "lands"), [(1, "above"), (10, "below")])
async def test_a_press_beside_the_thumb_scrolls_that_way(row: int, lands: str) -> None:
    app = TranscriptApp()
    async with app.run_test(size=(60, 12)) as pilot:
        app.view.show(snapshot([said(seq, f"message {seq}") for seq in range(1, 200)]))
        await pilot.pause()
        middle = app.view.virtual_size.height // 2
        app.view.scroll_to(y=middle, animate=False, force=True)
        assert await poll(lambda: not app.view.canvas.viewport.following)
        here = app.view.scroll_y
        await pilot.mouse_down(app.view.vertical_scrollbar, offset=(0, row))
        assert await poll(lambda: app.view.scroll_y < here if lands == "above" else app.view.scroll_y > here)
