"""Rows painted again, and rows reused."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import pytest
from textual.app import App, ComposeResult
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

from phoenix_tui.markdown import code
from phoenix_tui.styles.themes import THEMES
from phoenix_tui.widgets.bases import Still, StillColumn
from tests.support.screens import TranscriptApp, answered, said, snapshot
from tests.support.waiting import poll

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
