"""Marks of blocks and messages, and what is in sight."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from engine.machine.messages import TextBlock, ToolStatus, ToolUseBlock
from engine.records import StoredMessage
from engine.updates import MessageSaved, TextArrived
from phoenix_tui.cli.reporters import progress_line
from phoenix_tui.linear.transcript import LinearTranscript, message_text
from phoenix_tui.text.agent_text import marks
from phoenix_tui.widgets.blocks.rows import ToolView
from phoenix_tui.widgets.blocks.tool_row import tool_block
from phoenix_tui.widgets.transcript.drawing import DrawnKind, DrawnPart, with_gaps
from phoenix_tui.widgets.transcript.marks import Goal
from phoenix_tui.widgets.transcript.painted_rows import OlderMessages, VisibleRows
from phoenix_tui.widgets.transcript.painter import Painter
from phoenix_tui.widgets.transcript.scroller import Canvas
from phoenix_tui.widgets.transcript.view import follow
from tests.support.bare_transcript import canvas_of, plain_painter
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


SUSPECT = replace(said(1, "hello there"), suspected=("ignore_instructions", "system_tags"))
HOSTILE = replace(said(1, "hello there"), suspected=("a\x1b[31m\nb",))
LONG = said(1, "word " * 8_000)


def test_marks_are_for_the_users_own_messages_alone() -> None:
    assert marks(said(1, "x" * 32_768)) == []
    assert marks(LONG) == ["cut to 32,768 of 40,000 characters for the model"]
    assert marks(SUSPECT) == ["looks like an injection: ignore_instructions, system_tags"]
    assert len(marks(replace(LONG, suspected=("system_tags",)))) == 2
    assert marks(answered(1, TextBlock("x" * 99_999))) == []


async def test_the_screen_shows_them_quietly_below_the_message() -> None:
    app = TranscriptApp()
    async with app.run_test(size=(90, 30)):
        app.view.show(snapshot([SUSPECT, answered(2, "hi"), replace(LONG, seq=3)]))
        assert await poll(lambda: "cut to" in "\n".join(app.shown()))
        app.view.scroll_home(animate=False)
        assert await poll(lambda: "hello there" in "\n".join(app.shown()))
        shown = [line.strip() for line in app.shown()]
        place = shown.index("┃ hello there")
        assert shown[place + 1] == "┃ ⚠ looks like an injection: ignore_instructions, system_tags"
        assert "┃ ⚠ cut to 32,768 of 40,000 characters for the model" in shown


def test_lines_read_them_behind_the_message_typed_here_or_not() -> None:
    lines = LinearTranscript()
    assert lines.follow(MessageSaved(SUSPECT)) == [
        "You: hello there",
        "Looks like an injection: ignore_instructions, system_tags.",
    ]
    lines.own.add("m1")
    assert lines.follow(MessageSaved(LONG)) == ["Cut to 32,768 of 40,000 characters for the model."]


def test_a_script_reads_them_on_stderr() -> None:
    assert progress_line(MessageSaved(LONG)) == "• cut to 32,768 of 40,000 characters for the model"


def test_names_from_an_imported_file_do_not_act() -> None:
    assert "\x1b" not in message_text(HOSTILE)
    assert message_text(HOSTILE).count("\n") == 1


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
    assert rows[-1].endswith("↓ 1 new · Ctrl+End")


def test_an_answer_that_goes_on_out_of_sight_is_told_below() -> None:
    canvas = canvas_of([said(1, "the question"), answered(2, "\n\n".join(f"part {part}" for part in range(20)))])
    canvas.viewport.move_to(6)
    canvas.place()
    assert not rows_of(canvas)[-1].endswith("new text · Ctrl+End")
    follow(TextArrived("and on"), canvas.model)
    canvas.place()
    assert rows_of(canvas)[-1].endswith("↓ new text · Ctrl+End")
    canvas.viewport.following = True
    canvas.place()
    assert not rows_of(canvas)[-1].endswith("new text · Ctrl+End")


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
