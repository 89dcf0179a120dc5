"""The rows in sight as they are painted, without an app: what is laid over them."""

from __future__ import annotations

from engine.updates import MessageSaved, TextArrived
from phoenix_tui.widgets.transcript.drawing import DrawnKind, DrawnPart, with_gaps
from phoenix_tui.widgets.transcript.painted_rows import VisibleRows
from phoenix_tui.widgets.transcript.painter import Painter
from phoenix_tui.widgets.transcript.scroller import Canvas
from phoenix_tui.widgets.transcript.view import follow
from tests.support.bare_transcript import canvas_of, plain_painter
from tests.support.screens import answered, said


def no_picture(_part: DrawnPart, _index: int, _painter: Painter) -> None:
    return None


def rows_of(canvas: Canvas, *, is_late: bool = False) -> list[str]:
    strips = VisibleRows(canvas, no_picture).strips(plain_painter(), None, is_late=is_late)
    return [strip.text.rstrip() for strip in strips]


def test_there_is_a_row_for_each_of_the_window_and_one_for_the_keys_of_the_cursor() -> None:
    canvas = canvas_of([said(1, "go")])
    assert len(rows_of(canvas)) == canvas.viewport.height == VisibleRows(canvas, no_picture).height
    assert canvas.cursor.start()
    rows = rows_of(canvas)
    assert len(rows) == canvas.viewport.height + 1 == VisibleRows(canvas, no_picture).height
    assert rows[0].startswith("▌")
    assert rows[-1].startswith(" ▌prompt")


def test_the_prompt_stays_on_top_of_its_answer_and_what_is_new_is_counted_below() -> None:
    canvas = canvas_of([said(1, "the question"), answered(2, "\n\n".join(f"part {part}" for part in range(20)))])
    canvas.viewport.move_to(6)
    canvas.place()
    follow(MessageSaved(said(3, "more")), canvas.model)
    canvas.note_new(counts=True, follow=False)
    canvas.place()
    rows = rows_of(canvas)
    assert "the question" in rows[0]
    assert rows[-1].endswith("↓ 1 new")


def test_an_answer_that_goes_on_out_of_sight_is_told_below() -> None:
    canvas = canvas_of([said(1, "the question"), answered(2, "\n\n".join(f"part {part}" for part in range(20)))])
    canvas.viewport.move_to(6)
    canvas.place()
    assert not rows_of(canvas)[-1].endswith("new text")
    follow(TextArrived("and on"), canvas.model)
    canvas.place()
    assert rows_of(canvas)[-1].endswith("↓ new text")
    canvas.viewport.following = True
    canvas.place()
    assert not rows_of(canvas)[-1].endswith("new text")


def test_rows_of_the_audit_trail_stand_together_and_the_end_of_a_turn_apart() -> None:
    parts = [
        DrawnPart("message:1", DrawnKind.NOTE, []),
        DrawnPart("message:2", DrawnKind.NOTE, []),
        DrawnPart("stopped", DrawnKind.NOTE, []),
    ]
    assert [part.gap for part in with_gaps(parts, DrawnKind.TOOL).parts] == [1, 0, 1]


def test_a_row_says_once_that_messages_are_being_read() -> None:
    canvas = canvas_of([said(400, "the newest")])
    canvas.viewport.stand_at(100)
    canvas.place()
    assert not any("reading" in row for row in rows_of(canvas))
    assert sum("reading…" in row for row in rows_of(canvas, is_late=True)) == 1
