"""Scrolling: places that stay, long texts, widgets at rest, rows painted together."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterable, Iterator, Sequence
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from rich.color import Color
from rich.segment import Segment
from rich.style import Style
from textual.app import App, ComposeResult
from textual.geometry import Region
from textual.scrollbar import ScrollBarRender
from textual.strip import Strip
from textual.widget import Widget

from engine.machine.states import AwaitingLlm, Requesting, Run
from engine.updates import MessageSaved, TextArrived
from phoenix_tui.markdown import code
from phoenix_tui.markdown.stream import LONGEST, SLICE, MarkdownStream
from phoenix_tui.styles.themes import THEMES
from phoenix_tui.text.labels import StatusDetails
from phoenix_tui.widgets.bases import Still, StillColumn
from phoenix_tui.widgets.status_line import StatusLine, StatusValues
from phoenix_tui.widgets.transcript.drawing import DrawnPart, locate_rows
from phoenix_tui.widgets.transcript.marks import Goal
from phoenix_tui.widgets.transcript.model import TranscriptModel
from phoenix_tui.widgets.transcript.scroller import Canvas, Scroller, TranscriptBar, kinds_of, segment_of, thumb
from phoenix_tui.widgets.transcript.view import Frames, follow, has_more
from tests.support.bare_transcript import RecordedBar, RecordedView, canvas_of
from tests.support.clocks import SteppedClock
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


PARAGRAPHS = "".join(f"Paragraph {number} of *many*.\n\n" for number in range(3_000))


class Fed:
    """Lengths of the pieces that streams had to lay out in one step."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.longest = 0
        feed = MarkdownStream.feed

        def noted(stream: MarkdownStream, text: str) -> int:
            self.longest = max(self.longest, len(text))
            return feed(stream, text)

        monkeypatch.setattr(MarkdownStream, "feed", noted)


async def test_a_stored_message_is_laid_out_slice_by_slice(monkeypatch: pytest.MonkeyPatch) -> None:
    fed, app = Fed(monkeypatch), TranscriptApp()
    async with app.run_test(size=(60, 12)):
        app.view.show(snapshot([said(1, "tell me all"), answered(2, PARAGRAPHS + "LASTWORD")]))
        drawn = app.view.canvas.stack.draw(1)
        assert drawn is not None
        assert drawn.height < 6_000
        assert await poll(lambda: not has_more(app.view.canvas), 60.0)
        assert drawn.height == 6_002
        assert await poll(lambda: any("LASTWORD" in row for row in app.shown()))
        assert fed.longest <= SLICE


async def test_the_row_at_the_top_stays_while_more_is_laid_out_below() -> None:
    app = TranscriptApp()
    async with app.run_test(size=(60, 12)) as pilot:
        app.view.show(snapshot([said(1, "tell me all"), answered(2, PARAGRAPHS)]))
        await pilot.press("home")
        assert await poll(lambda: any("Paragraph 0 of many" in row for row in app.shown()))
        before = app.shown()
        assert await poll(lambda: not has_more(app.view.canvas), 60.0)
        assert app.shown() == before


async def test_what_is_looked_for_is_found_in_what_was_not_laid_out_yet() -> None:
    app = TranscriptApp()
    async with app.run_test(size=(60, 12)):
        app.view.show(snapshot([said(1, "tell me all"), answered(2, PARAGRAPHS + "NEEDLE here")]))
        app.view.canvas.marks.look_for(("needle",))
        app.view.canvas.marks.go(Goal(2))
        app.view.scroller.place_again()
        assert await poll(lambda: any("NEEDLE" in row for row in app.shown()))


@pytest.mark.parametrize(
    "text",
    ["word " * 12_000, "x" * 60_000, "漢字" * 20_000, "- one\n" + "  more words\n" * 4_000],
    ids=["words", "letters", "wide", "item"],
)
def test_an_open_block_without_end_is_cut_and_nothing_of_it_is_lost(text: str) -> None:
    stream = MarkdownStream(60)
    for start in range(0, len(text), 2_000):
        stream.feed(text[start : start + 2_000])
        assert len(stream._tail) <= LONGEST + 2_000
    stream.finish()
    shown = "".join("".join(line.text for line in stream.lines).split())
    assert shown.lstrip("•") == "".join(text.split()).lstrip("-")


CODE = "Look:\n\n```ocaml\nlet rec f x = if x then 1 else 2\n```\n\nThat is it."


def rows(widget: Widget) -> Sequence[Strip]:
    return widget.render_lines(Region(0, 0, widget.size.width, widget.size.height))


class Columns(App[None]):
    def compose(self) -> ComposeResult:
        yield StillColumn()


async def test_a_container_hands_out_the_same_rows_until_its_colours_change() -> None:
    app = Columns()
    async with app.run_test() as pilot:
        await pilot.pause()
        column = app.query_one(StillColumn)
        before = rows(column)
        assert rows(column) is before
        column.styles.background = "red"
        assert rows(column)[0] != before[0]


async def test_the_scrollbar_is_drawn_anew_only_when_it_moved() -> None:
    app = TranscriptApp()
    async with app.run_test(size=(60, 12)) as pilot:
        app.view.show(snapshot([said(seq, f"message {seq}") for seq in range(1, 40)]))
        await pilot.pause()
        bar = app.view.vertical_scrollbar
        assert isinstance(bar, Still)
        at_the_end = rows(bar)
        assert rows(bar) is at_the_end
        await pilot.press("home")
        await pilot.pause()
        assert list(rows(bar)) != list(at_the_end)
        app.theme = THEMES[1].name
        await pilot.pause()
        assert [segment.style for segment in rows(bar)[0]] != [segment.style for segment in at_the_end[0]]


async def test_the_lexing_process_is_waited_for_off_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[threading.Thread] = []
    lex = code.CodeJob.lex

    def noted(job: code.CodeJob) -> None:
        threads.append(threading.current_thread())
        lex(job)

    monkeypatch.setattr(code.CodeJob, "lex", noted)
    app = TranscriptApp()
    async with app.run_test(size=(60, 20)):
        app.view.show(snapshot([said(1, "code?"), answered(2, CODE)]))
        assert await poll(lambda: "let rec f x" in "\n".join(app.shown()))
        plain = {segment.style for row in rows(app.view) for segment in row if "let" in segment.text}

        def coloured() -> bool:
            return {segment.style for row in rows(app.view) for segment in row if "let" in segment.text} != plain

        assert await poll(coloured)
        assert threads
        assert threading.main_thread() not in threads
        assert "let rec f x = if x then 1 else 2" in "\n".join(app.shown())


async def test_code_in_a_language_nobody_knows_stays_plain() -> None:
    app = TranscriptApp()
    async with app.run_test(size=(60, 20)):
        app.view.show(snapshot([said(1, "code?"), answered(2, CODE.replace("ocaml", "klingon"))]))
        assert await poll(lambda: not app.view.canvas.has_plain_code())
        assert "let rec f x = if x then 1 else 2" in "\n".join(app.shown())


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
