"""The cursor over blocks, and what each key does with a block."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.codec import encode_display
from engine.machine.messages import Origin, Role, TextBlock, ThinkingBlock, ToolResultBlock, ToolStatus, ToolUseBlock
from engine.records import StoredMessage, ToolCallRecord
from engine.updates import MessageSaved, TextArrived
from phoenix_tui.keys.keymap import KEYS, Scope
from phoenix_tui.terminal.lending import place_arguments
from phoenix_tui.widgets.transcript.block_cursor import REFUSALS, BlockAction, Stop, Target, extent, next_stop
from phoenix_tui.widgets.transcript.block_keys import BlockKeys
from phoenix_tui.widgets.transcript.model import TranscriptModel
from phoenix_tui.widgets.transcript.scroller import Canvas, Scroller, TranscriptBar
from phoenix_tui.widgets.transcript.signals import (
    BlockRequest,
    BlockSignal,
    BlockWanted,
    CursorMoved,
    Remark,
    SelectionCopied,
)
from phoenix_tui.widgets.transcript.stack import Stack
from phoenix_tui.widgets.transcript.view import TranscriptView
from tests.support.bare_transcript import RecordedBar, RecordedView, canvas_of
from tests.support.screens import TranscriptApp, answered, call_record, message, said, snapshot
from tests.support.waiting import poll
from tools.contract import DiffDisplay, TerminalDisplay

BASH = ToolUseBlock("b1", "bash", '{"command":"make test"}')
READ = ToolUseBlock("r1", "read_file", '{"path":"src/a.py","offset":40}')
PATCH = ToolUseBlock("p1", "patch", '{"path":"src/b.py"}')
DIFF = "@@ -7,2 +7,2 @@\n a\n-b\n+c"
CODE = "Look:\n\n```make\nall:\n\techo one\n```\n\nand\n\n```\nplain\n```"


def worked() -> tuple[list[StoredMessage], list[ToolCallRecord]]:
    messages = [
        said(1, "first"),
        answered(2, ThinkingBlock("hm", "s"), CODE, BASH, READ, PATCH),
        message(3, Role.USER, Origin.TOOL, ToolResultBlock("b1", (TextBlock("x"),))),
        said(4, "second"),
        answered(5, "done"),
    ]
    calls = [
        call_record(
            "b1", "bash", BASH.input_json, ToolStatus.SUCCESS, display=encode_display(TerminalDisplay("1\n2", 0))
        ),
        call_record("r1", "read_file", READ.input_json, ToolStatus.SUCCESS, text="text of a"),
        call_record(
            "p1",
            "patch",
            PATCH.input_json,
            ToolStatus.SUCCESS,
            display=encode_display(DiffDisplay("src/b.py", DIFF, 1, 1)),
        ),
    ]
    return messages, calls


def target(app: TranscriptApp) -> Target:
    found = app.view.blocks.target()
    assert found is not None
    return found


async def test_every_block_has_its_text_and_what_can_be_done_with_it() -> None:
    app = TranscriptApp()
    async with app.run_test(size=(80, 40)) as pilot:
        app.view.show(snapshot(*worked()))
        app.view.blocks.take()
        await pilot.press("g")
        seen: list[tuple[str, str]] = []
        places: dict[str, tuple[str, int]] = {}
        ends: dict[str, int] = {}
        for _ in range(9):
            found = target(app)
            seen.append((found.name, found.text))
            places[found.name] = (found.path, found.line)
            ends[found.name] = found.last_seq
            await pilot.press("j")
        assert seen == [
            ("prompt", "first"),
            ("thinking", "hm"),
            ("answer", CODE),
            ("make code", "all:\n\techo one"),
            ("plain code", "plain"),
            ("bash", "1\n2"),
            ("read_file", "text of a"),
            ("patch", DIFF),
            ("prompt", "second"),
        ]
        assert (places["read_file"], places["patch"], places["bash"]) == (("src/a.py", 40), ("src/b.py", 8), ("", 0))
        assert ends["bash"] == 3, "a copy that ends here keeps the results of its calls"
        assert (target(app).name, target(app).actions) == ("answer", (BlockAction.COPY, BlockAction.FORK))


async def test_the_row_of_keys_says_what_enter_does_and_enter_does_it() -> None:
    app = TranscriptApp()
    async with app.run_test(size=(80, 40)) as pilot:
        app.view.show(snapshot(*worked()))
        app.view.blocks.take()
        await pilot.press("g", "j", "j", "j", "j", "j")
        assert app.shown()[-1].startswith(" ▌bash  Enter open · c copy · f fork here · [ ] prompts")
        await pilot.press("enter")
        await pilot.pause()
        assert "  │ 2" in [row.replace("▌", " ") for row in app.shown()]
        assert app.shown()[-1].startswith(" ▌bash  Enter fold")
        assert target(app).name == "bash"


async def test_what_a_sub_agent_hands_in_stands_whole_below_its_call_and_is_copied_as_it_was_written() -> None:
    found = "Found **7 files**\n\n- a.py\n- b.py"
    submits = ToolUseBlock("s1", "submit_result", json.dumps({"result": found}))
    call = call_record("s1", "submit_result", submits.input_json, ToolStatus.SUCCESS, text="Submitted.")
    app = TranscriptApp()
    async with app.run_test(size=(80, 40)) as pilot:
        app.view.show(snapshot([said(1, "look"), answered(2, submits)], [call]))
        app.view.blocks.take()
        await pilot.press("G")
        assert target(app).text == app.view.canvas.model.last_answer() == found
        assert [row.strip(" ▌") for row in app.shown() if row][1:6] == [
            f"✓ submit_result{'0.4s':>61}",
            "Found 7 files",
            "",
            "• a.py",
            "• b.py",
        ]


async def test_a_row_of_reads_is_opened_and_folded_again() -> None:
    reads = [ToolUseBlock(f"r{n}", "read_file", f'{{"path":"{n}.py"}}') for n in range(3)]
    calls = [call_record(one.id, one.name, one.input_json, ToolStatus.SUCCESS, text="text") for one in reads]
    app = TranscriptApp()
    async with app.run_test(size=(60, 14)) as pilot:
        app.view.show(snapshot([said(1, "go"), answered(2, *reads)], calls))
        app.view.blocks.take()
        assert app.shown()[2].startswith("▌ ✓ read_file  0.py, 1.py, 2.py")
        await pilot.press("enter", "j")
        assert app.shown()[3].startswith("▌ ✓ read_file  1.py")
        await pilot.press("enter")
        assert app.shown()[4] == "▌ │ text"
        await pilot.press("h", "h")
        assert app.shown()[2].startswith("▌ ✓ read_file  0.py, 1.py, 2.py")


async def test_a_tall_block_below_the_window_shows_its_beginning_under_the_prompt() -> None:
    app = TranscriptApp()
    async with app.run_test(size=(60, 12)) as pilot:
        app.view.show(snapshot([said(1, "go"), answered(2, "\n\n".join(f"row {n}" for n in range(40))), said(3, "on")]))
        app.view.blocks.take()
        await pilot.press("k")
        await pilot.pause()
        assert app.shown()[:3] == ["┃ go", "", "▌ row 0"]


async def test_paging_away_takes_the_cursor_along() -> None:
    app = TranscriptApp()
    async with app.run_test(size=(60, 12)) as pilot:
        app.view.show(snapshot([said(seq, f"message {seq}") for seq in range(1, 60)]))
        app.view.blocks.take()
        await pilot.press("pageup", "pageup")
        assert target(app).seq < 59
        assert any(row.startswith("▌ message") for row in app.shown())
        above = target(app).seq
        await pilot.press("pagedown", "pagedown")
        assert target(app).seq > above
        assert any(row.startswith("▌ message") for row in app.shown())


async def test_going_up_into_messages_that_are_not_in_memory_loads_them_first() -> None:
    asked: list[tuple[int, int]] = []

    async def load(before_seq: int, limit: int) -> tuple[Sequence[StoredMessage], Sequence[ToolCallRecord]]:
        asked.append((before_seq, limit))
        first = max(before_seq - limit, 1)
        return [said(seq, f"message {seq}") for seq in range(first, before_seq)], []

    app = TranscriptApp()
    async with app.run_test(size=(60, 12)) as pilot:
        app.view.history.use(load)
        app.view.show(snapshot([said(5000, "last")], count=5000))
        app.view.blocks.take()
        await pilot.press("g")
        assert await poll(lambda: app.view.blocks.target() is not None and target(app).seq == 1)
        assert app.shown()[0] == "▌ message 1"
        await pilot.press("j", "G")
        assert await poll(lambda: target(app).seq == 5000)
        assert sum(limit for _, limit in asked) < 500


async def test_the_cursor_stays_on_an_answer_that_is_stored_while_it_stands_there() -> None:
    app = TranscriptApp()
    async with app.run_test(size=(60, 12)) as pilot:
        app.view.show(snapshot([said(1, "go")]))
        app.view.apply(TextArrived("half"))
        await pilot.pause()
        app.view.blocks.take()
        assert (target(app).name, target(app).text, target(app).seq) == ("answer", "half", 0)
        app.view.apply(MessageSaved(answered(2, "half of it")))
        await pilot.pause()
        assert (target(app).text, target(app).seq) == ("half of it", 2)


async def test_what_a_block_cannot_do_is_said() -> None:
    app = TranscriptApp()
    async with app.run_test(size=(60, 12)) as pilot:
        app.view.show(snapshot([said(1, "go"), answered(2, "there")]))
        app.view.blocks.take()
        await pilot.press("e", "o")
        assert [request.text for request in app.wanted if isinstance(request, Remark)] == [
            "Only your prompts can be edited and resent; [ goes to the previous one.",
            "This block has no file.",
        ]


async def test_without_a_block_there_is_nothing_to_take() -> None:
    app = TranscriptApp()
    async with app.run_test(size=(60, 12)):
        app.view.show(snapshot([]))
        assert not app.view.blocks.take()
        assert not app.view.canvas.cursor.is_on


SPOKEN = st.sampled_from(["words", CODE, "```\nopen", "", "- a\n\n  ```\n  b\n  ```", "\t\n"])


@settings(max_examples=80, deadline=None)
@given(st.lists(st.tuples(SPOKEN, st.integers(0, 2)), max_size=8), st.integers(12, 90))
def test_walking_down_and_up_again_stands_on_every_block_once_and_each_has_rows(
    spoken: list[tuple[str, int]], width: int
) -> None:
    messages = [said(1, "go")]
    for text, calls in spoken:
        seq = len(messages) + 1
        messages.append(answered(seq, text, *(ToolUseBlock(f"{seq}-{n}", "bash", "{}") for n in range(calls))))
    model = TranscriptModel()
    model.show(snapshot(messages))
    stack = Stack(model)
    stack.reset()
    stack.resize(width)
    down: list[Stop] = [Stop(0, "message:1")]
    while isinstance(found := next_stop(stack, down[-1], 1), Stop):
        down.append(found)
    up = [down[-1]]
    while isinstance(found := next_stop(stack, up[-1], -1), Stop):
        up.append(found)
    assert up == down[::-1]
    assert len(set(down)) == len(down)
    for stop in down:
        drawn = stack.draw(stop.slot)
        assert drawn is not None
        place = extent(stop, drawn)
        assert place is not None
        assert 0 <= place.first < place.after <= drawn.height


@pytest.mark.parametrize(
    ("program", "arguments"),
    [
        ("vim", ("+7", "/a")),
        ("/usr/bin/nano", ("+7", "/a")),
        ("code", ("--goto", "/a:7")),
        ("hx", ("/a:7",)),
        ("gedit", ("/a",)),
    ],
)
def test_an_editor_is_told_the_line_in_its_own_way(program: str, arguments: tuple[str, ...]) -> None:
    assert place_arguments(program, Path("/a"), 7) == arguments


class Bench:
    """The keys of one canvas, and what came of them."""

    def __init__(self, canvas: Canvas, *, on: bool = True) -> None:
        self.canvas = canvas
        self.view = RecordedView(60, 12)
        self.folded: list[str] = []
        scroller = Scroller(self.view, canvas, lambda: cast("TranscriptBar", RecordedBar()))
        scroller.place_again()
        self.keys = BlockKeys(self.view, canvas, scroller, self.folded.append)
        if on:
            assert canvas.cursor.start()

    def order(self, *names: str) -> None:
        for name in names:
            self.keys.orders[name]()

    @property
    def part(self) -> str:
        chosen = self.canvas.cursor.find_chosen()
        return "" if chosen is None else chosen.part.key

    @property
    def wanted(self) -> list[BlockSignal]:
        return [message.request for message in self.view.told if isinstance(message, BlockWanted)]


def canvas_of_work() -> Canvas:
    display = encode_display(TerminalDisplay("one\ntwo", 0))
    record = call_record("b1", "bash", BASH.input_json, ToolStatus.SUCCESS, display=display)
    return canvas_of([said(1, "first"), answered(2, "an answer", BASH), said(3, "second")], [record], height=30)


def named(action: str) -> set[str]:
    return {found[1] for key in KEYS if (found := re.fullmatch(rf"{action}\('(\w+)'\)", key.action))}


def test_every_key_of_the_blocks_names_an_order_and_every_order_has_a_key() -> None:
    assert named("block") == set(Bench(canvas_of_work()).keys.orders)
    assert {key.action.partition("(")[0] for key in KEYS if key.scope is Scope.BLOCKS} == {"block"}


def test_every_key_that_moves_the_view_from_afar_names_a_move() -> None:
    assert named("view") == set(TranscriptView().moves)


def test_the_cursor_goes_from_block_to_block_and_to_either_end() -> None:
    bench = Bench(canvas_of_work())
    places = [bench.part]
    for order in ("up", "up", "first", "down", "last"):
        bench.order(order)
        places.append(bench.part)
    first, last = "message:1", "message:3"
    assert places == [last, "call:b1", "answer:2:0", first, "answer:2:0", last]


def test_without_the_cursor_the_same_keys_scroll_and_deeds_do_nothing() -> None:
    bench = Bench(canvas_of_work(), on=False)
    bench.order("down", "last", "copy", "fold", "prompt_above", "leave")
    assert bench.view.moves == [bench.view.scroll_y + 1, bench.view.virtual_size.height]
    assert (bench.view.told, bench.folded) == ([], [])


def test_prompts_are_gone_to_over_what_stands_between() -> None:
    bench = Bench(canvas_of_work())
    bench.order("prompt_above")
    assert bench.part == "message:1"
    bench.order("prompt_below")
    assert bench.part == "message:3"


def test_a_call_is_opened_and_folded_and_copied_whole() -> None:
    bench = Bench(canvas_of_work())
    bench.order("up", "toggle", "copy")
    assert bench.folded == ["call:b1"]
    copied = [message.text for message in bench.view.told if isinstance(message, SelectionCopied)]
    assert copied == ["one\ntwo"]


@pytest.mark.parametrize(("order", "action"), [("edit", BlockAction.EDIT), ("fork", BlockAction.FORK)])
def test_what_needs_the_engine_is_asked_for_with_its_block(order: str, action: BlockAction) -> None:
    bench = Bench(canvas_of_work())
    bench.order(order)
    assert [(one.action, one.target.seq) for one in bench.wanted if isinstance(one, BlockRequest)] == [(action, 3)]


def test_what_a_block_cannot_be_asked_for_is_said() -> None:
    bench = Bench(canvas_of_work())
    bench.order("file")
    assert bench.wanted == [Remark(REFUSALS[BlockAction.OPEN_FILE])]


def test_leaving_is_told_once() -> None:
    bench = Bench(canvas_of_work())
    bench.order("leave", "leave")
    assert [message.is_on for message in bench.view.told if isinstance(message, CursorMoved)] == [False]
