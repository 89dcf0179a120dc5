"""The scroller over a canvas, without an app: its paints, moves and messages."""

from __future__ import annotations

from typing import cast

from textual.geometry import Region

from engine.updates import MessageSaved, TextArrived
from phoenix_tui.widgets.transcript.bar import TranscriptBar
from phoenix_tui.widgets.transcript.canvas import Canvas
from phoenix_tui.widgets.transcript.follow import follow
from phoenix_tui.widgets.transcript.scroller import Scroller
from tests.support.bare_transcript import RecordedBar, RecordedView, canvas_of
from tests.support.screens import answered, said

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
    scroller.scrolled(6)
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
