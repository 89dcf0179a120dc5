"""Matches of a search in a transcript."""

from __future__ import annotations

import pytest

from engine.machine.messages import ToolStatus, ToolUseBlock
from engine.records import StoredMessage
from phoenix_tui.widgets.blocks.rows import ToolView
from phoenix_tui.widgets.blocks.tool_row import tool_block
from phoenix_tui.widgets.transcript.marks import Goal
from phoenix_tui.widgets.transcript.painted_rows import OlderMessages
from tests.support.screens import TranscriptApp, answered, call_record, said, snapshot
from tests.support.waiting import poll
from tools.contract import PlainDisplay

BASH = ToolUseBlock("t1", "bash", '{"command":"make test"}')


def marked(app: TranscriptApp, *, current: bool = False) -> list[str]:
    """Underlined and reversed text: every place, or the current one alone."""
    found = [
        (segment.text, bool(segment.style and segment.style.reverse))
        for strip in app.view.render_lines(app.view.size.region)
        for segment in strip
        if segment.style is not None and (segment.style.reverse or segment.style.underline)
    ]
    return [text for text, reverse in found if reverse or not current]


def show(app: TranscriptApp, words: tuple[str, ...], goal: Goal) -> None:
    app.view.canvas.marks.look_for(words)
    app.view.canvas.marks.go(goal)
    app.view.scroller.place_again()


async def test_every_place_is_marked_and_one_of_them_is_the_current_one() -> None:
    app = TranscriptApp()
    async with app.run_test(size=(60, 20)):
        app.view.show(snapshot([said(1, "a Needle"), answered(2, "needle and **needle**, `needle`")]))
        show(app, ("needle",), Goal(2, index=1))
        assert marked(app) == ["Needle", "needle", "needle", "needle"]
        assert marked(app, current=True) == ["needle"]
        app.view.canvas.marks.look_for(())
        app.view.scroller.place_again()
        assert marked(app) == []


async def test_words_broken_over_rows_and_over_looks_are_one_place() -> None:
    app = TranscriptApp()
    async with app.run_test(size=(30, 20)):
        app.view.show(snapshot([answered(1, "a long text that goes on until **the** very last words of it")]))
        show(app, ("until the very last words",), Goal(1, index=0))
        assert "".join(marked(app, current=True)).replace(" ", "") == "untiltheverylastwords"


async def test_wide_letters_are_marked_whole() -> None:
    app = TranscriptApp()
    async with app.run_test(size=(60, 20)):
        app.view.show(snapshot([said(1, "日本語のファイル名が壊れる 🦆 Ärger")]))
        show(app, ("ファイル", "ärger"), Goal(1, index=1))
        assert marked(app) == ["ファイル", "Ärger"]
        assert marked(app, current=True) == ["Ärger"]


async def test_a_folded_output_is_opened_for_its_place_and_folded_again() -> None:
    app = TranscriptApp()
    async with app.run_test(size=(60, 20)):
        output = "\n".join(f"line {number}" for number in range(200))
        record = call_record("t1", "bash", BASH.input_json, ToolStatus.SUCCESS, text=output)
        app.view.show(snapshot([said(1, "run"), answered(2, BASH), answered(3, "line 150 it is")], [record]))
        show(app, ("line 150",), Goal(2, "t1", 0))
        assert any("line 150" in row for row in app.shown())
        assert marked(app, current=True) == ["line 150"]
        show(app, ("line 150",), Goal(3, index=0))
        assert marked(app) == ["line 150"]
        assert any("make test" in row for row in app.shown())


async def test_a_read_that_shares_a_row_with_others_is_given_its_own() -> None:
    app = TranscriptApp()
    async with app.run_test(size=(60, 20)):
        blocks = [ToolUseBlock(f"r{number}", "read_file", f'{{"path":"file{number}"}}') for number in range(3)]
        records = [
            call_record(one.id, "read_file", one.input_json, ToolStatus.SUCCESS, text=f"text of {one.id}")
            for one in blocks
        ]
        app.view.show(snapshot([said(1, "read"), *(answered(2 + n, one) for n, one in enumerate(blocks))], records))
        assert sum("read_file" in row for row in app.shown()) == 1
        show(app, ("text of r1",), Goal(3, "r1", 0))
        assert marked(app, current=True) == ["text of r1"]


async def test_a_place_that_is_not_drawn_still_brings_its_message() -> None:
    app = TranscriptApp()
    async with app.run_test(size=(60, 20)):
        messages = [said(number, f"prompt {number}") for number in range(1, 61)]
        app.view.show(snapshot([*messages, answered(61, "see [this](https://hidden.example)")]))
        show(app, ("no such text",), Goal(5, index=0))
        assert any("prompt 5" in row for row in app.shown())
        assert marked(app) == []


async def test_the_best_of_several_words_is_where_most_stand_together() -> None:
    app = TranscriptApp()
    async with app.run_test(size=(80, 30)):
        text = "lock alone\n\n" + "x " * 300 + "\n\nlock and flush together"
        app.view.show(snapshot([answered(1, text)]))
        show(app, ("lock", "flush"), Goal(1))
        rows = app.shown()
        (row,) = [place for place, line in enumerate(rows) if "flush together" in line]
        strip = app.view.render_lines(app.view.size.region)[row]
        assert any(segment.style is not None and segment.style.reverse for segment in strip)


@pytest.mark.parametrize("seq", [1, 700, 1990])
async def test_a_place_far_from_what_is_in_memory_is_loaded_and_stays(seq: int) -> None:
    messages: dict[int, StoredMessage] = {
        number: answered(number, f"answer {number}\n\n" + "row\n\n" * (number % 7)) for number in range(1, 2001)
    }

    async def load(before_seq: int, limit: int) -> OlderMessages:
        return [messages[number] for number in range(max(before_seq - limit, 1), before_seq)], []

    app = TranscriptApp()
    async with app.run_test(size=(60, 20)) as pilot:
        app.view.history.use(load)
        app.view.show(snapshot([messages[number] for number in range(1990, 2001)]))
        show(app, (f"answer {seq}",), Goal(seq, index=0))
        assert await poll(lambda: marked(app, current=True)[:1] == [f"answer {seq}"]), app.shown()
        await pilot.pause()
        assert not app.view.canvas.viewport.missing
        assert any(f"answer {seq}" in row for row in app.shown())


SHOWN = PlainDisplay("2 results\nFirst  https://a.example/\nSecond  https://b.example/")


def drawn(display: PlainDisplay | None, status: ToolStatus = ToolStatus.SUCCESS, *, is_open: bool = False) -> list[str]:
    view = ToolView("c", "web_search", "new things", status, text="failed", display=display, duration=2.0)
    block = tool_block(view, 60, is_open=is_open)
    return [line.text.rstrip() for line in (*block.lines, *block.rows)]


def test_a_closed_row_has_the_words_and_the_number_of_results() -> None:
    (row,) = drawn(SHOWN)
    assert row.strip().startswith("✓ web_search  new things")
    assert row.endswith("2 results · 2.0s")


def test_an_open_row_lists_them() -> None:
    head, *lines = drawn(SHOWN, is_open=True)
    assert "results" not in head
    assert [line.strip("│ ") for line in lines] == SHOWN.text.split("\n")


def test_hostile_numbers_are_short_and_clean() -> None:
    (row,) = drawn(PlainDisplay("\x1b[2J" + "9" * 500))
    assert "\x1b" not in row
    assert len(row) <= 60


def test_a_failed_search_shows_its_reason() -> None:
    assert any("failed" in line for line in drawn(None, ToolStatus.ERROR))
