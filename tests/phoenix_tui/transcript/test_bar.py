"""The transcript's scrollbar looks as Textual's would, and is painted only when its thumb moved."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.color import Color
from rich.segment import Segment
from rich.style import Style
from textual.geometry import Region
from textual.scrollbar import ScrollBarRender

from phoenix_tui.widgets.transcript.bar import kinds_of, segment_of, thumb
from tests.support.screens import TranscriptApp, said, snapshot
from tests.support.waiting import poll

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
