"""Rows that are kept: styles, output of terminals, what makes one anew."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from textual.color import Color
from textual.strip import Strip

from engine.machine import texts
from engine.machine.messages import OWN_CALL, Origin, Role, TextBlock, ToolCall, ToolStatus, ToolUseBlock
from engine.records import StoredMessage, ToolCallRecord
from phoenix_tui.markdown.lines import StyledLine
from phoenix_tui.widgets.blocks.rows import ToolView, view_queued_call
from phoenix_tui.widgets.blocks.speech import is_summary_notice
from phoenix_tui.widgets.blocks.tool_row import colour_rows, colour_whole, tool_block
from phoenix_tui.widgets.transcript import painted_rows
from phoenix_tui.widgets.transcript.painter import ProgramColours
from tests.support.screens import TranscriptApp, answered, call_record, message, said, snapshot
from tests.support.waiting import poll
from tools.contract import TerminalDisplay
from tools.terminal.values import TextRun

COUNT = 2_000


class Failing:
    """A store that cannot be read at first."""

    def __init__(self) -> None:
        self.asked = 0

    async def __call__(
        self, before_seq: int, limit: int
    ) -> tuple[Sequence[StoredMessage], Sequence[ToolCallRecord]] | None:
        self.asked += 1
        if self.asked < 3:
            return None
        return [said(seq, f"message {seq}") for seq in range(max(before_seq - limit, 1), before_seq)], ()


class Slow:
    """A store that answers on request."""

    def __init__(self) -> None:
        self.asked: list[tuple[int, int]] = []
        self.may = asyncio.Event()

    async def __call__(self, before_seq: int, limit: int) -> tuple[Sequence[StoredMessage], Sequence[ToolCallRecord]]:
        self.asked.append((before_seq, limit))
        await self.may.wait()
        return [said(seq, f"message {seq}") for seq in range(max(before_seq - limit, 1), before_seq)], ()


def opened(app: TranscriptApp, store: Slow) -> None:
    app.view.history.use(store)
    app.view.show(snapshot([said(seq, f"message {seq}") for seq in range(COUNT - 60, COUNT + 1)]))


def shows(app: TranscriptApp, seq: int) -> bool:
    return any(row.endswith(f" {seq}") for row in app.shown())


async def test_the_rows_of_before_stay_until_those_of_a_far_place_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(painted_rows, "PATIENCE", 3_600.0)
    app, store = TranscriptApp(), Slow()
    async with app.run_test(size=(60, 12)) as pilot:
        opened(app, store)
        await pilot.pause()
        before = app.shown()
        assert shows(app, COUNT)
        app.view.scroller.jump(700)
        assert await poll(lambda: store.asked)
        await pilot.pause()
        assert app.shown() == before
        store.may.set()
        assert await poll(lambda: shows(app, 700))
        assert not shows(app, COUNT)


async def test_reading_that_takes_long_is_said_in_one_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(painted_rows, "PATIENCE", 0.001)
    app, store = TranscriptApp(), Slow()
    async with app.run_test(size=(60, 12)) as pilot:
        opened(app, store)
        await pilot.pause()
        await pilot.press("home")
        assert await poll(lambda: [row for row in app.shown() if row] == ["  reading…"])
        store.may.set()
        assert await poll(lambda: shows(app, 1))
        assert await poll(lambda: not any("reading" in row for row in app.shown()))


async def test_a_way_back_before_anything_was_read_shows_what_was_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(painted_rows, "PATIENCE", 0.001)
    app, store = TranscriptApp(), Slow()
    async with app.run_test(size=(60, 12)) as pilot:
        opened(app, store)
        await pilot.pause()
        await pilot.press("home")
        assert await poll(lambda: any("reading" in row for row in app.shown()))
        await pilot.press("end")
        assert await poll(lambda: shows(app, COUNT))
        assert not any("reading" in row for row in app.shown())


async def test_rows_of_one_conversation_never_stand_for_those_of_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(painted_rows, "PATIENCE", 3_600.0)
    app, store = TranscriptApp(), Slow()
    async with app.run_test(size=(60, 12)) as pilot:
        opened(app, store)
        await pilot.pause()
        app.view.show(snapshot([said(3_000, "another one")]))
        await pilot.press("home")
        assert await poll(lambda: store.asked)
        await pilot.pause()
        assert not any("message" in row for row in app.shown())


async def test_rows_that_cannot_be_read_are_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(painted_rows, "AGAIN_SECONDS", 0.01)
    app, store = TranscriptApp(), Failing()
    async with app.run_test(size=(60, 12)) as pilot:
        app.view.history.use(store)
        app.view.show(snapshot([said(seq, f"message {seq}") for seq in range(COUNT - 60, COUNT + 1)]))
        await pilot.press("home")
        assert await poll(lambda: shows(app, 1))
        assert store.asked >= 3


CALLS = 40


async def test_forty_calls_are_written_in_the_styles_of_one() -> None:
    app = TranscriptApp()
    async with app.run_test(size=(60, 14)) as pilot:
        kept: list[int] = []
        for first in (0, CALLS):
            calls = [ToolUseBlock(f"call-{first + number}", "bash", '{"command":"make"}') for number in range(CALLS)]
            records = [call_record(call.id, "bash", call.input_json, ToolStatus.SUCCESS) for call in calls]
            app.view.show(snapshot([said(1, "go"), answered(2, *calls)], records))
            app.view.action_view("top")
            await pilot.pause()
            for slot in range(2):
                written(app, slot)
            kept.append(Strip.render_ansi.cache_info().currsize)
        assert kept[0] == kept[1], "other calls in the same places were written in other styles"


async def test_a_click_beside_the_words_of_a_line_does_nothing() -> None:
    app = TranscriptApp()
    async with app.run_test(size=(60, 14)):
        call = ToolUseBlock('it\'s "one"', "bash", '{"command":"make"}')
        records = [call_record(call.id, "bash", call.input_json, ToolStatus.SUCCESS)]
        app.view.show(snapshot([said(1, "go"), answered(2, call)], records))
        row = next(y for y in range(14) if app.view.canvas.action_at(4, y))
        assert app.view.canvas.action_at(4, row) == f"fold({'call:' + call.id!r})"
        assert [app.view.canvas.action_at(x, y) for x, y in ((4, 0), (59, row), (4, 13), (4, 99))] == [""] * 4


def written(app: TranscriptApp, slot: int) -> None:
    """Write every row of a message as it goes to the terminal."""
    app.view.render_lines(app.view.size.region)
    painter = app.view._rows._painter
    drawn = app.view.canvas.stack.draw(slot)
    assert painter is not None and drawn is not None
    for part in drawn.parts:
        for line in part.lines:
            painter.strip(line).render(app.console)


RED = "31"
RUNS: Any = {"id": f"{OWN_CALL}1", "name": "bash", "summary": "top", "status": ToolStatus.RUNNING}


def looks(line: StyledLine) -> list[tuple[str, str]]:
    """The pieces behind the bar, and their looks of the program."""
    return [(span.text, span.look.program) for span in line.spans[2:]]


def test_a_piece_has_its_colour_where_it_is_wrapped_and_where_it_is_cut() -> None:
    text, runs = "ab" * 20 + "\nnext", (TextRun(0, 10, 14, RED), TextRun(1, 0, 2, "1"))
    cut = colour_rows(text, runs, 24, head=12)
    assert looks(cut[0]) == [("ab" * 5, ""), ("abab", RED), ("ababa…", "")]
    wrapped = list(colour_whole(text, runs, 16))
    assert [looks(line) for line in wrapped[:2]] == [[("ab" * 5, ""), ("ab", RED)], [("ab", RED), ("ab" * 5, "")]]
    assert looks(wrapped[-1]) == [("ne", "1"), ("xt", "")]


def test_the_middle_is_left_out_with_its_colours() -> None:
    text = "\n".join(str(number) for number in range(20))
    rows = colour_rows(text, (TextRun(19, 0, 2, RED),), 80, head=3)
    assert [looks(row) for row in rows] == [[("0", "")], [("1", "")], [("2", "")], [("⋯", "")], [("19", RED)]]


@pytest.mark.parametrize(
    ("tail", "cursor", "rows"),
    [
        ("pw: x", (0, 1), ["p[w]: x"]),
        ("pw: ", (0, 4), ["pw: [ ]"]),
        ("pw: ", (0, 6), ["pw:   [ ]"]),
        ("one\n", (1, 0), ["one", "[ ]"]),
        ("", (0, 0), ["[ ]"]),
        ("pw:", (0, 500), ["pw:"]),
        ("pw:", (-3, 0), ["pw:"]),
        ("pw:", None, ["pw:"]),
        ("", None, []),
    ],
)
def test_a_running_line_shows_its_cursor(tail: str, cursor: tuple[int, int] | None, rows: list[str]) -> None:
    view = ToolView(f"{OWN_CALL}1", "bash", "read", ToolStatus.RUNNING, tail=tail, cursor=cursor)
    block = tool_block(view, 80, is_open=False)
    shown = ["".join(f"[{text}]" if look == "7" else text for text, look in looks(line)) for line in block.lines[1:]]
    assert shown == rows


def test_the_folder_of_a_line_is_beside_it() -> None:
    display = TerminalDisplay("out", 0, folder="/very/long/" + "x" * 40 + "/end")
    block = tool_block(ToolView(f"{OWN_CALL}1", "bash", "ls", ToolStatus.SUCCESS, display=display), 100, is_open=False)
    assert block.lines[0].text.rstrip().endswith("in …" + "x" * 25 + "/end")


def test_no_output_hides_in_the_colour_of_its_ground() -> None:
    black, white = Color(0, 0, 0), Color(255, 255, 255)
    colours = ProgramColours((black,) * 7 + (white,), white, black)
    for code in ("30", "30;40", "37;47", "38;2;1;1;1", "7;38;5;231", "8", "48;5;231"):
        style = colours.style(code)
        assert style.color is not None
        assert style.bgcolor is not None
        assert style.color.triplet != style.bgcolor.triplet


@pytest.mark.parametrize(
    ("view", "row"),
    [
        (ToolView(wants_screen=True, **RUNS), "needs your terminal · Enter gives it yours · Ctrl+] twice returns"),
        (ToolView(tail="load 1", reads_keys=True, **RUNS), "Enter gives it your terminal · Ctrl+] twice returns"),
        (ToolView(tail="load 1", **RUNS), "load 1"),
    ],
)
def test_a_program_for_a_whole_terminal_can_be_given_the_users(view: ToolView, row: str) -> None:
    last = tool_block(view, 80, is_open=False).lines[-1]
    assert "".join(span.text for span in last.spans[2:]) == row


def test_a_stopped_command_of_a_model_shows_the_ends_of_its_output_and_how_much_is_hidden() -> None:
    output = "".join(f"{number}\n" for number in range(9)) + "[stopped by the user after 3 s]"
    view = ToolView("toolu_1", "bash", "make", ToolStatus.CANCELLED, display=TerminalDisplay(output, None))
    head, *rows = ("".join(span.text for span in line.spans) for line in tool_block(view, 80, is_open=False).lines)
    assert "+7 lines · stopped" in head
    assert [row.split("│ ")[1] for row in rows] == ["0", "1", "⋯", "[stopped by the user after 3 s]"]


WIDE = 60


def rows(view: ToolView) -> list[str]:
    return [line.text.rstrip() for line in tool_block(view, WIDE, is_open=False).lines]


def test_a_call_of_a_server_is_named_once_with_its_arguments() -> None:
    view = view_queued_call(ToolCall("c", "mcp__tracker__create_issue", '{"repo": "a/b", "title": "Say it once"}'))
    assert rows(view) == ['  · tracker: create_issue  repo=a/b title="Say it o…  queued']


def test_a_reason_in_one_line_is_wrapped_and_does_not_name_the_tool_again() -> None:
    reason = "src/a.py exists and was not read in this conversation; read it with read_file first."
    view = ToolView("c", "write_file", "src/a.py", ToolStatus.ERROR, text=f"write_file: {reason}")
    assert rows(view)[1:] == [
        "  │ src/a.py exists and was not read in this conversation;",
        "  │ read it with read_file first.",
    ]


def test_a_very_long_reason_keeps_three_rows() -> None:
    view = ToolView("c", "bash", "x", ToolStatus.ERROR, text="word " * 20_000)
    first, *said = rows(view)
    assert len(said) == 3
    assert said[-1].endswith("…")
    assert max(map(len, [first, *said])) <= WIDE


def test_a_long_path_keeps_its_end() -> None:
    path = "src/services/payment_gateway/adapters/legacy/reconciler.py"
    (row,) = rows(ToolView("c", "read_file", path, ToolStatus.SUCCESS))
    assert "…" in row
    assert row.endswith("legacy/reconciler.py")


SUMMARY = "## Under way\nthe queue of each peer \x1b[31m[/red]\n\nThe user's own words, newest first:\n- one queue"
ROW = texts.describe_summary(62, 26, "150k → ~40k tokens", SUMMARY)


async def test_a_summary_is_folded_under_its_row_and_opens() -> None:
    notice = message(2, Role.SYSTEM, Origin.NOTICE, TextBlock(ROW))
    app = TranscriptApp()
    async with app.run_test(size=(90, 20)) as pilot:
        app.view.show(snapshot([said(1, "go on"), notice]))
        assert await poll(lambda: "Summarized" in "\n".join(app.shown()))
        [row] = [line for line in app.shown() if "Summarized" in line]
        assert " ".join(row.split()) == "· Summarized 62 messages, kept 26 · 150k → ~40k tokens +5 lines"
        assert not any("the queue" in line for line in app.shown())
        app.view.action_view("details")
        await pilot.pause()
        assert await poll(lambda: "the queue of each peer" in "\n".join(app.shown()))
        shown = "\n".join(app.shown())
        assert "- one queue" in shown
        assert "\x1b" not in shown
        assert "+5 lines" not in shown


def test_only_the_row_of_a_compaction_is_one() -> None:
    assert is_summary_notice(ROW)
    assert not is_summary_notice("Shortened 3 old tool results for the model · 150k → ~40k tokens")
    assert not is_summary_notice("Summarized nothing")
