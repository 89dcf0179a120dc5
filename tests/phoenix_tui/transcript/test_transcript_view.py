"""The transcript in a bare app: its content, its position, the effects of clicks and keys."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence

import pytest
from msgspec.structs import replace
from textual.pilot import Pilot

from engine.codec import encode_display
from engine.machine.messages import (
    OWN_CALL,
    UNSENT_CALL,
    ImageBlock,
    Origin,
    Role,
    TextBlock,
    ThinkingBlock,
    ToolCall,
    ToolResult,
    ToolResultBlock,
    ToolStatus,
    ToolUseBlock,
)
from engine.machine.states import AwaitingLlm, Errored, Idle, Requesting, RetryWait, Run
from engine.records import StoredMessage, ToolCallRecord
from engine.updates import (
    LiveTextDropped,
    MessageSaved,
    RunEnded,
    RunningCall,
    StateChanged,
    TextArrived,
    ThinkingArrived,
    ToolDrafted,
    ToolEnded,
    ToolProgressed,
    ToolStarted,
)
from phoenix_tui.text.agent_text import INIT_ORDERS
from phoenix_tui.widgets.blocks.rows import ToolView
from phoenix_tui.widgets.blocks.tool_row import tool_block
from phoenix_tui.widgets.transcript.drawing import Drawing
from phoenix_tui.widgets.transcript.model import TranscriptModel
from phoenix_tui.widgets.transcript.stack import Stack
from tests.support.clocks import SteppedClock
from tests.support.screens import (
    TranscriptApp,
    answered,
    call_record,
    message,
    said,
    snapshot,
)
from tests.support.waiting import poll
from tools.contract import DiffDisplay, OutputChunk, ProcessStarted, TerminalDisplay, ToolRequest


async def settled(pilot: Pilot[None], condition: Callable[[], bool]) -> None:
    """Wait until `condition` holds."""
    assert await poll(condition), pilot.app.shown() if isinstance(pilot.app, TranscriptApp) else ""
    await pilot.pause()


def text_of(app: TranscriptApp) -> str:
    return "\n".join(app.shown()).strip("\n")


BASH = ToolUseBlock("t1", "bash", '{"command":"make test"}')


async def test_a_conversation_is_shown_from_its_snapshot_alone() -> None:
    app = TranscriptApp()
    async with app.run_test(size=(60, 22)):
        display = encode_display(TerminalDisplay("one\ntwo\nthree\nfour\nfive", 2))
        app.view.show(
            snapshot(
                [
                    said(1, "why?"),
                    answered(2, ThinkingBlock("a b c", "s"), "Because **so**.", BASH),
                    message(3, Role.USER, Origin.TOOL, ToolResultBlock("t1", (TextBlock("no"),), True)),
                    message(4, Role.SYSTEM, Origin.NOTICE, TextBlock("model changed")),
                    message(5, Role.USER, Origin.HUMAN, TextBlock("and?"), ImageBlock("a", 1568, 882)),
                ],
                [call_record("t1", "bash", BASH.input_json, ToolStatus.ERROR, display=display)],
                live_text="So",
            )
        )
        assert text_of(app).split("\n") == [
            "┃ why?",
            "",
            "  ⋯ thought · 3 words",
            "",
            "  Because so.",
            "",
            "  ✗ bash  make test               +2 lines · exit 2 · 0.4s",
            "  │ one",
            "  │ two",
            "  │ ⋯",
            "  │ five",
            "",
            "  · model changed",
            "",
            "┃ and?",
            "┃ [image 1: 1568×882]",
            "",
            "  So",
        ]


async def test_the_output_of_ones_own_command_is_shown_once_and_in_nobodys_name() -> None:
    app = TranscriptApp()
    async with app.run_test(size=(60, 30)):
        printed = "\n".join(f"line {number}" for number in range(1, 21))
        calls = [ToolUseBlock(f"shell_{n}", "bash", json.dumps({"command": f"run {n}"})) for n in (1, 2, 3)]
        outputs = ["one\ntwo", printed, ""]
        records = [
            call_record(
                call.id, "bash", call.input_json, ToolStatus.SUCCESS, display=encode_display(TerminalDisplay(output, 0))
            )
            for call, output in zip(calls, outputs, strict=True)
        ]
        app.view.show(
            snapshot(
                [
                    message(1, Role.SYSTEM, Origin.NOTICE, calls[0]),
                    message(2, Role.USER, Origin.NOTICE, TextBlock("$ run 1\none\ntwo\n[exit code 0]")),
                    message(3, Role.SYSTEM, Origin.NOTICE, calls[1]),
                    message(4, Role.SYSTEM, Origin.NOTICE, calls[2]),
                ],
                records,
            )
        )
        assert text_of(app).split("\n") == [
            "  ! run 1                                             0.4s",
            "  │ one",
            "  │ two",
            "  ! run 2                                  +7 lines · 0.4s",
            *(f"  │ line {number}" for number in range(1, 13)),
            "  │ ⋯",
            "  │ line 20",
            "  ! run 3                                             0.4s",
        ]


async def test_a_tool_that_printed_nothing_opens_to_these_words() -> None:
    app = TranscriptApp()
    async with app.run_test(size=(60, 10)) as pilot:
        record = call_record(
            "t1", "bash", BASH.input_json, ToolStatus.SUCCESS, display=encode_display(TerminalDisplay("", 0))
        )
        app.view.show(snapshot([said(1, "go"), answered(2, BASH)], [record]))
        app.view.action_view("details")
        await settled(pilot, lambda: "│ (no output)" in text_of(app))


async def test_live_text_becomes_the_stored_message_without_a_jump() -> None:
    app = TranscriptApp()
    async with app.run_test(size=(60, 20)) as pilot:
        app.view.show(snapshot([said(1, "hi")]))
        for piece in ("Hel", "lo **wor", "ld**\n\n- a\n", "- b"):
            app.view.apply(TextArrived(piece))
        await settled(pilot, lambda: "• b" in text_of(app))
        before = text_of(app)
        assert before.split("\n") == ["┃ hi", "", "  Hello world", "", "  • a", "  • b"]
        app.view.apply(MessageSaved(answered(2, "Hello **world**\n\n- a\n- b")))
        await settled(pilot, lambda: app.view.canvas.stack.last == 2)
        assert text_of(app) == before
        app.view.show(snapshot([said(1, "hi"), answered(2, "Hello **world**\n\n- a\n- b")]))
        assert text_of(app) == before


async def test_a_call_goes_through_its_states_in_one_row() -> None:
    clock = SteppedClock()
    app = TranscriptApp(clock)
    async with app.run_test(size=(60, 12)) as pilot:
        app.view.show(snapshot([said(1, "go")]))
        app.view.apply(ToolDrafted("bash", 120))
        await settled(pilot, lambda: "preparing the call…" in text_of(app))
        app.view.apply(MessageSaved(answered(2, BASH)))
        await settled(pilot, lambda: "· bash  make test" in text_of(app))
        call = ToolCall("t1", "bash", BASH.input_json)
        app.view.apply(ToolStarted(call, ToolRequest("make test -j2")))
        app.view.apply(ToolProgressed("t1", OutputChunk("a\nb\nc\nd\x1b]0;x\x07\n")))
        await settled(pilot, lambda: "│ d" in text_of(app))
        assert text_of(app).split("\n")[2:] == [
            "  ▸ bash  make test -j2                               0.0s",
            "  │ b",
            "  │ c",
            "  │ d",
        ]
        clock.seconds += 12
        await settled(pilot, lambda: "12s" in text_of(app))
        result = ToolResult("t1", "ok", ToolStatus.SUCCESS, display_json=encode_display(TerminalDisplay("x\n" * 38, 0)))
        app.view.apply(ToolEnded(result, 12.4))
        await settled(pilot, lambda: "✓" in text_of(app))
        assert text_of(app).split("\n")[2:] == ["  ✓ bash  make test -j2                    +38 lines · 12s"]


async def test_nothing_ticks_once_nothing_runs() -> None:
    app = TranscriptApp()
    async with app.run_test(size=(60, 12)) as pilot:
        app.view.show(snapshot([said(1, "go"), answered(2, BASH)]))
        app.view.apply(ToolStarted(ToolCall("t1", "bash", BASH.input_json), None))
        await pilot.pause()
        assert len(app.view._timers) == 1
        app.view.apply(ToolEnded(ToolResult("t1", "", ToolStatus.SUCCESS), 0.1))
        await settled(pilot, lambda: not app.view._timers)


async def test_a_stopped_turn_keeps_its_text_until_the_conversation_is_left() -> None:
    clock = SteppedClock()
    app = TranscriptApp(clock)
    async with app.run_test(size=(60, 14)) as pilot:
        app.view.show(snapshot([said(1, "go")]))
        app.view.apply(StateChanged(AwaitingLlm(1, Run("r", 5), Requesting()), clock.monotonic()))
        app.view.apply(TextArrived("half of it"))
        clock.seconds += 12
        app.view.apply(LiveTextDropped(cancelled=True))
        app.view.apply(StateChanged(Idle(2), clock.monotonic()))
        app.view.apply(RunEnded("r", "cancelled", "", "", 1))
        await settled(pilot, lambda: "■" in text_of(app))
        shown = text_of(app).split("\n")
        assert shown[2:] == [
            "  half of it",
            "",
            "  ■ stopped by you after 12s · this text is not kept ·",
            "    /copy",
        ]
        assert app.view.canvas.model.last_answer() == "half of it"
        app.view.apply(MessageSaved(said(2, "again")))
        await settled(pilot, lambda: "again" in text_of(app))
        row = "  ■ stopped by you after 12s · this text is not kept"
        assert text_of(app).split("\n")[2:] == ["  half of it", "", f"{row} ·", "    /copy", "", "┃ again"]
        app.view.apply(MessageSaved(message(3, Role.ASSISTANT, Origin.LLM, TextBlock("All of it."))))
        await settled(pilot, lambda: "All of it." in text_of(app))
        assert text_of(app).split("\n")[2:] == ["  half of it", "", row, "", "┃ again", "", "  All of it."]
        app.view.show(snapshot([said(1, "go"), said(2, "again")]))
        await settled(pilot, lambda: "half" not in text_of(app))


async def test_a_stopped_text_that_begins_as_an_earlier_answer_stays_what_it_is_after_a_resize() -> None:
    earlier = message(2, Role.ASSISTANT, Origin.LLM, TextBlock("It is done, all of it."))
    app = TranscriptApp()
    async with app.run_test(size=(60, 14)) as pilot:
        app.view.show(snapshot([said(1, "go"), earlier, said(3, "again")]))
        app.view.apply(StateChanged(AwaitingLlm(1, Run("r", 5), Requesting()), 0.0))
        app.view.apply(TextArrived("It is"))
        app.view.apply(LiveTextDropped(cancelled=True))
        app.view.apply(StateChanged(Idle(2), 0.0))
        app.view.apply(RunEnded("r", "cancelled", "", "", 1))
        await settled(pilot, lambda: "■" in text_of(app))
        for width in (50, 70):
            await pilot.resize_terminal(width, 14)
            await settled(pilot, lambda: "■" in text_of(app))
            assert [row for row in text_of(app).split("\n") if "It is" in row] == [
                "  It is done, all of it.",
                "  It is",
            ]


async def test_the_stored_row_of_a_stop_stands_below_the_text_it_stopped_and_stays_afterwards() -> None:
    notice = message(2, Role.SYSTEM, Origin.NOTICE, TextBlock("Stopped by you after 12 s · 2 processes ended"))
    app = TranscriptApp()
    async with app.run_test(size=(90, 14)) as pilot:
        app.view.show(snapshot([said(1, "go")]))
        app.view.apply(StateChanged(AwaitingLlm(1, Run("r", 5), Requesting()), 0.0))
        app.view.apply(TextArrived("half of it"))
        app.view.apply(LiveTextDropped(cancelled=True))
        app.view.apply(MessageSaved(notice))
        app.view.apply(RunEnded("r", "cancelled", "", "", 1))
        app.view.apply(StateChanged(Idle(2), 0.0))
        row = "  ■ stopped by you after 12 s · 2 processes ended"
        await settled(pilot, lambda: "■" in text_of(app))
        assert text_of(app).split("\n")[1:] == [
            "",
            "  half of it",
            "",
            f"{row} · this text is not kept · /copy",
        ]
        app.view.apply(MessageSaved(said(3, "again")))
        await settled(pilot, lambda: "again" in text_of(app))
        rows = ["", "  half of it", "", f"{row} · this text is not kept · /copy", "", "┃ again"]
        assert text_of(app).split("\n")[1:] == rows


async def test_the_stored_row_of_a_stop_is_there_after_a_restart() -> None:
    notice = message(2, Role.SYSTEM, Origin.NOTICE, TextBlock("Stopped at the time limit after 30 s"))
    app = TranscriptApp()
    async with app.run_test(size=(60, 14)) as pilot:
        app.view.show(snapshot([said(1, "go"), notice]))
        await settled(pilot, lambda: "■" in text_of(app))
        assert text_of(app).split("\n")[1:] == ["", "  ■ stopped at the time limit after 30 s"]


async def test_a_call_that_ran_before_one_looked_has_its_clock_and_its_output() -> None:
    clock = SteppedClock()
    app = TranscriptApp(clock)
    running = RunningCall("t1", clock.monotonic() - 65, "collected 12 items\ntests/test_a.py ..\n")
    begun = snapshot([said(1, "go"), answered(2, BASH)])
    async with app.run_test(size=(60, 14)) as pilot:
        app.view.show(replace(begun, running=running))
        await settled(pilot, lambda: "test_a" in text_of(app))
        assert text_of(app).split("\n")[2:] == [
            "  ▸ bash  make test                                 1m 05s",
            "  │ collected 12 items",
            "  │ tests/test_a.py ..",
        ]


async def test_text_that_will_be_asked_again_is_gone_at_once() -> None:
    app = TranscriptApp()
    async with app.run_test(size=(60, 14)) as pilot:
        app.view.show(snapshot([said(1, "go")]))
        app.view.apply(TextArrived("half of it"))
        app.view.apply(LiveTextDropped(cancelled=False))
        await settled(pilot, lambda: "half" not in text_of(app))
        app.view.apply(TextArrived("whole"))
        await settled(pilot, lambda: "whole" in text_of(app))
        assert "half" not in text_of(app)


async def test_text_that_broke_stands_while_a_retry_waits_and_the_call_that_was_begun_does_not() -> None:
    app = TranscriptApp()
    async with app.run_test(size=(60, 14)) as pilot:
        app.view.show(snapshot([said(1, "go")]))
        app.view.apply(StateChanged(AwaitingLlm(1, Run("r", 5), Requesting()), 0.0))
        app.view.apply(TextArrived("half of it"))
        app.view.apply(ToolDrafted("bash", 12))
        await settled(pilot, lambda: "bash" in text_of(app))
        app.view.apply(StateChanged(AwaitingLlm(2, Run("r", 5), RetryWait(4.0, "It broke."), 1), 0.0))
        await settled(pilot, lambda: "bash" not in text_of(app))
        assert "half of it" in text_of(app)


async def test_an_error_shows_its_cause_and_the_next_key() -> None:
    app = TranscriptApp()
    async with app.run_test(size=(60, 14)):
        app.view.show(snapshot([said(1, "go")], state=Errored(1, "auth", "The key was refused.", False, "r")))
        assert text_of(app).split("\n")[2:] == [
            "  ✗ The key was refused.",
            "    /key sets another key · /model changes the model ·",
            "    then Enter retries · Esc dismisses",
        ]


async def test_an_empty_conversation_says_where_it_is() -> None:
    app = TranscriptApp()
    async with app.run_test(size=(60, 14)):
        app.view.show(snapshot())
        assert text_of(app).split("\n")[:2] == ["  /home/me/src/relay", "  anthropic/claude-sonnet-5-5 · ask"]


async def test_live_thinking_is_one_quiet_line() -> None:
    app = TranscriptApp()
    async with app.run_test(size=(60, 14)) as pilot:
        app.view.show(snapshot([said(1, "go")]))
        app.view.apply(ThinkingArrived("first thing\nthen the pool"))
        await settled(pilot, lambda: "thinking · 5 words · then the pool" in text_of(app))
        app.view.apply(TextArrived("Answer"))
        await settled(pilot, lambda: "⋯ thought · 5 words" in text_of(app))


async def test_quick_reads_share_a_row_with_their_names() -> None:
    app = TranscriptApp()
    async with app.run_test(size=(60, 14)):
        names = ["a.py", "b.py", "c.py", "d.py"]
        blocks = [ToolUseBlock(f"r{n}", "read_file", f'{{"path":"{n}"}}') for n in names]
        records = [call_record(b.id, "read_file", b.input_json, ToolStatus.SUCCESS, text="x", ms=10) for b in blocks]
        app.view.show(snapshot([said(1, "go"), answered(2, *blocks)], records))
        assert text_of(app).split("\n")[2:] == ["  ✓ read_file  a.py, b.py, c.py +1                    0.0s"]


async def test_quick_reads_of_several_replies_share_the_row_of_the_first() -> None:
    app = TranscriptApp()
    async with app.run_test(size=(60, 14)) as pilot:
        blocks = [ToolUseBlock(f"r{n}", "read_file", f'{{"path":"{n}.py"}}') for n in range(5)]
        app.view.show(snapshot([said(1, "go")]))
        for n, block in enumerate(blocks):
            app.view.apply(MessageSaved(answered(2 + 2 * n, block)))
            app.view.apply(ToolStarted(ToolCall(block.id, block.name, block.input_json), None))
            app.view.apply(ToolEnded(ToolResult(block.id, "x", ToolStatus.SUCCESS), 0.01))
            result = ToolResultBlock(block.id, (TextBlock("x"),))
            app.view.apply(MessageSaved(message(3 + 2 * n, Role.USER, Origin.TOOL, result)))
        await settled(pilot, lambda: "+2" in text_of(app))
        assert text_of(app).split("\n")[2:] == ["  ✓ read_file  0.py, 1.py, 2.py +2                    0.1s"]
        await pilot.press("enter")
        await settled(pilot, lambda: len(text_of(app).split("\n")) == 7)


async def test_a_diff_stays_open_up_to_twelve_rows() -> None:
    app = TranscriptApp()
    async with app.run_test(size=(60, 24)) as pilot:
        rows = "\n".join(f"+line {n}" for n in range(20))
        display = encode_display(DiffDisplay("a.py", f"@@ -1,0 +1,20 @@\n{rows}\n", 20, 0))
        edit = ToolUseBlock("e1", "patch", '{"path":"a.py"}')
        record = call_record("e1", "patch", edit.input_json, ToolStatus.SUCCESS, display=display)
        app.view.show(snapshot([said(1, "go"), answered(2, edit)], [record]))
        assert "  ± a.py  +20 -0" in app.shown()
        assert "     … +9 lines" in app.shown()
        assert " 9 + line 8" not in app.shown()
        await pilot.press("enter")
        await settled(pilot, lambda: "20 + line 19" in text_of(app))
        assert app.view.canvas.stack.is_open("call:e1")


async def test_the_place_is_held_while_text_streams_below() -> None:
    app = TranscriptApp()
    async with app.run_test(size=(60, 12)) as pilot:
        app.view.show(snapshot([said(1, "\n".join(f"line {n}" for n in range(30)))]))
        await pilot.press("pageup")
        held = app.shown()[:-1]
        app.view.apply(TextArrived("word " * 400))
        app.view.apply(MessageSaved(answered(2, "word " * 400)))
        app.view.apply(MessageSaved(answered(3, "more")))
        await settled(pilot, lambda: "↓ 2 new" in text_of(app))
        assert app.shown()[:-1] == held
        await pilot.press("end")
        await settled(pilot, lambda: text_of(app).endswith("more"))
        assert "new" not in text_of(app)


async def test_ones_own_message_brings_the_end_into_sight() -> None:
    app = TranscriptApp()
    async with app.run_test(size=(60, 12)) as pilot:
        app.view.show(snapshot([answered(1, "\n".join(f"line {n}" for n in range(60)))]))
        await pilot.press("home")
        app.view.apply(MessageSaved(said(2, "mine")))
        await settled(pilot, lambda: "┃ mine" in text_of(app))


async def test_a_closed_row_counts_the_lines_that_were_printed_not_those_that_are_kept() -> None:
    app = TranscriptApp()
    async with app.run_test(size=(60, 12)):
        display = encode_display(TerminalDisplay("1\n[… left out]\n200000\n", 0, lines=200_000))
        call = ToolUseBlock("t1", "bash", '{"command":"seq 1 200000"}')
        record = call_record("t1", "bash", call.input_json, ToolStatus.SUCCESS, display=display)
        app.view.show(snapshot([said(1, "go"), answered(2, call)], [record]))
        assert "bash  seq 1 200000" in text_of(app)
        assert "+200,000 lines" in text_of(app)


async def test_words_behind_a_paste_stay_in_sight_of_a_folded_prompt() -> None:
    app = TranscriptApp()
    async with app.run_test(size=(60, 40)) as pilot:
        paste = "\n".join(f"row {number}" for number in range(400))
        app.view.show(snapshot([said(1, f"Look at this:\n{paste}\nWhy does row 7 fail?")]))
        shown = text_of(app).split("\n")
        assert shown == [
            "┃ Look at this:",
            *(f"┃ row {number}" for number in range(7)),
            "┃ … +390 lines",
            *(f"┃ row {number}" for number in range(397, 400)),
            "┃ Why does row 7 fail?",
        ]
        app.view.action_view("details")
        await settled(pilot, lambda: "row 380" in text_of(app))


async def test_what_a_message_attaches_is_a_chip_until_it_is_opened() -> None:
    app = TranscriptApp()
    async with app.run_test(size=(60, 20)) as pilot:
        file = TextBlock("[File a.py:\n     1\tsecret words\n]", "a.py: 1 line")
        app.view.show(snapshot([message(1, Role.USER, Origin.HUMAN, TextBlock("see @a.py"), file)]))
        assert text_of(app).split("\n") == ["┃ see @a.py", "┃ [a.py: 1 line]"]
        app.view.action_view("details")
        await settled(pilot, lambda: "secret words" in text_of(app))


async def test_only_a_message_of_the_user_can_leave_text_to_a_chip() -> None:
    app = TranscriptApp()
    async with app.run_test(size=(60, 20)):
        hidden = TextBlock("do as I say", "a.py: 1 line")
        app.view.show(snapshot([message(1, Role.USER, Origin.COMPLETION, hidden), answered(2, hidden)]))
        assert text_of(app).count("do as I say") == 2


async def test_the_prompt_stays_on_top_of_its_answer() -> None:
    app = TranscriptApp()
    async with app.run_test(size=(60, 12)) as pilot:
        app.view.show(snapshot([said(1, "why?\nreally"), answered(2, "\n".join(f"line {n}" for n in range(60)))]))
        assert app.shown()[0] == "┃ why?"
        assert app.shown()[-1] == "  line 59"
        await pilot.press("home")
        assert app.shown()[:2] == ["┃ why?", "┃ really"]


async def test_the_prompt_stays_on_top_where_an_answer_begins_in_the_first_row() -> None:
    app = TranscriptApp()
    async with app.run_test(size=(60, 12)) as pilot:
        lines = "\n".join(f"line {n}" for n in range(9))
        app.view.show(snapshot([said(1, "why?"), answered(2, lines), answered(3, lines)]))
        for _ in range(12):
            await pilot.press("up")
            assert app.shown()[0] == "┃ why?"


async def test_the_prompt_stays_on_top_of_what_was_stopped_before_it_was_stored() -> None:
    app = TranscriptApp()
    async with app.run_test(size=(60, 12)) as pilot:
        app.view.show(snapshot([said(1, "why?")]))
        app.view.apply(TextArrived("\n".join(f"line {n}" for n in range(40))))
        await settled(pilot, lambda: "line 39" in text_of(app))
        assert app.shown()[0] == "┃ why?"


async def test_a_link_tells_its_real_target_and_opens_nothing_itself() -> None:
    app = TranscriptApp()
    async with app.run_test(size=(70, 12)) as pilot:
        app.view.show(snapshot([answered(1, "[https://good.org](https://evil.org/'\")x) [a](file:///etc/passwd)")]))
        assert app.shown()[0] == "  https://good.org (https://evil.org/'%22)x) [a](file:///etc/passwd)"
        await pilot.click(app.view, offset=(4, 0))
        await settled(pilot, lambda: bool(app.links))
        assert app.links[0].startswith("https://evil.org/")


@pytest.mark.parametrize(
    "hostile", ["[/]", "[1, 2]", "[@click=app.quit]x[/]", "[link=http://x]y[/link]", "\x1b]52;c;eA==\x07z"]
)
async def test_markup_and_escapes_are_shown_as_they_are(hostile: str) -> None:
    app = TranscriptApp()
    async with app.run_test(size=(70, 24)) as pilot:
        use = ToolUseBlock("t')", hostile, json.dumps({"command": hostile}))
        record = call_record("t')", hostile, use.input_json, ToolStatus.ERROR, text=hostile)
        app.view.show(
            snapshot(
                [said(1, hostile), answered(2, ThinkingBlock(hostile, "s"), f"`{hostile}`", use),
                 message(3, Role.SYSTEM, Origin.NOTICE, TextBlock(hostile))],
                [record], state=Errored(1, "x", hostile, True, "r"),
            )
        )  # fmt: skip
        await pilot.click(app.view, offset=(3, 0))
        shown = text_of(app)
        assert "\x1b" not in shown
        assert shown.count("z" if "\x1b" in hostile else hostile) >= 5
        assert app.is_running


async def test_a_drag_over_two_messages_copies_their_text() -> None:
    app = TranscriptApp()
    async with app.run_test(size=(40, 14)) as pilot:
        long = "a sentence that is too long for one row of this screen"
        app.view.show(snapshot([said(1, "first"), answered(2, long)]))
        await pilot.mouse_down(app.view, offset=(2, 0))
        await pilot.hover(app.view, offset=(8, 3))
        await pilot.mouse_up(app.view, offset=(8, 3))
        await pilot.pause()
        assert app.screen.get_selected_text() == "first\n\na sentence that is too long for one row of"


async def test_a_drag_over_every_kind_of_block_copies_words_without_bars_numbers_and_signs() -> None:
    app = TranscriptApp()
    async with app.run_test(size=(44, 30)) as pilot:
        long = "this line is much too long for one row of output here"
        records = [
            call_record(
                "t1", "bash", BASH.input_json, ToolStatus.ERROR, display=encode_display(TerminalDisplay(long, 1))
            ),
            call_record(
                "t2",
                "patch",
                "{}",
                ToolStatus.SUCCESS,
                display=encode_display(DiffDisplay("a", "@@ -1 +1 @@\n-b\n+c", 1, 1)),
            ),
        ]
        answer = "Words:\n\n- an item that goes over two rows of it\n\n```\ncode\n```"
        patch = ToolUseBlock("t2", "patch", "{}")
        app.view.show(snapshot([said(1, "first"), answered(2, answer, BASH, patch), said(3, "last")], records))
        app.view.action_view("details")
        await pilot.pause()
        end = next(place for place, row in enumerate(app.shown()) if row == "┃ last")
        await pilot.mouse_down(app.view, offset=(0, 0))
        await pilot.hover(app.view, offset=(6, end))
        await pilot.mouse_up(app.view, offset=(6, end))
        copied = app.screen.get_selected_text() or ""
        assert copied.split("\n") == [
            "first",
            "",
            "Words:",
            "",
            "• an item that goes over two rows of it",
            "",
            "code",
            "",
            "✗ bash  make test          exit 1 · 0.4s",
            long,
            "± a  +1 -1",
            "b",
            "c",
            "",
            "last",
        ]


async def test_a_selection_stays_on_its_text_when_rows_above_change() -> None:
    app = TranscriptApp()
    async with app.run_test(size=(40, 14)) as pilot:
        app.view.show(snapshot([said(1, "first"), answered(2, BASH), said(3, "third"), said(4, "fourth")]))
        await pilot.mouse_down(app.view, offset=(2, 4))
        await pilot.hover(app.view, offset=(6, 4))
        await pilot.mouse_up(app.view, offset=(6, 4))
        assert app.screen.get_selected_text() == "third"
        app.view.apply(ToolStarted(ToolCall("t1", "bash", BASH.input_json), None))
        app.view.apply(ToolProgressed("t1", OutputChunk("a\nb\nc\n")))
        await settled(pilot, lambda: "│ c" in text_of(app))
        assert app.screen.get_selected_text() == "third"


async def test_a_double_click_selects_the_block() -> None:
    app = TranscriptApp()
    async with app.run_test(size=(40, 14)) as pilot:
        app.view.show(snapshot([said(1, "first"), answered(2, "one\n\ntwo"), said(3, "third")]))
        await pilot.click(app.view, offset=(4, 2), times=2)
        assert app.screen.get_selected_text() == "one\n\ntwo"


async def test_a_click_on_a_tool_row_opens_it_and_details_opens_all() -> None:
    app = TranscriptApp()
    async with app.run_test(size=(60, 14)) as pilot:
        display = encode_display(TerminalDisplay("one\ntwo", 0))
        record = call_record("t1", "bash", BASH.input_json, ToolStatus.SUCCESS, display=display)
        app.view.show(snapshot([said(1, "go"), answered(2, BASH)], [record]))
        assert "│ two" not in text_of(app)
        await pilot.click(app.view, offset=(10, 2))
        await settled(pilot, lambda: "│ two" in text_of(app))
        await pilot.press("enter")
        await settled(pilot, lambda: "│ two" not in text_of(app))
        app.view.action_view("details")
        await settled(pilot, lambda: "│ two" in text_of(app))


async def test_no_color_reaches_the_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    app = TranscriptApp()
    async with app.run_test(size=(60, 14)):
        app.view.show(snapshot([said(1, "go"), answered(2, "`code`")]))
        rows = app.view.render_lines(app.view.size.region)
        colours = {segment.style.color for row in rows for segment in row if segment.style}
        assert all(colour is None or len(set(colour.get_truecolor())) == 1 for colour in colours)


async def test_a_theme_change_paints_the_same_rows_anew() -> None:
    app = TranscriptApp()
    async with app.run_test(size=(60, 14)) as pilot:
        app.view.show(snapshot([said(1, "go"), answered(2, "text")]))
        before, dark = text_of(app), app.view.render_lines(app.view.size.region)[0]
        app.theme = "phoenix-light"
        await pilot.pause()
        light = app.view.render_lines(app.view.size.region)[0]
        assert text_of(app) == before
        assert dark._segments[0].style != light._segments[0].style


class Book:
    """50,000 messages on demand; remembers what it was asked for."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.asked: list[tuple[int, int]] = []

    def window(self, before: int, limit: int) -> list[StoredMessage]:
        first = max(1, before - limit)
        return [
            said(n, f"message {n}") if n % 3 else answered(n, f"reply {n}\n\n- a\n- b") for n in range(first, before)
        ]

    async def load(self, before: int, limit: int) -> tuple[Sequence[StoredMessage], Sequence[ToolCallRecord]]:
        self.asked.append((before, limit))
        return self.window(before, limit), []


async def test_fifty_thousand_messages_scroll_from_end_to_start_and_jump() -> None:
    book = Book(50_000)
    app = TranscriptApp()
    async with app.run_test(size=(60, 20)) as pilot:
        app.view.history.use(book.load)
        app.view.show(snapshot(book.window(50_001, 50), count=50_000))
        assert app.shown()[-1] == "┃ message 50000"
        for _ in range(8):
            await pilot.press("pageup")
        assert len(book.asked) <= 2
        await pilot.press("home")
        await settled(pilot, lambda: app.shown()[0] == "┃ message 1")
        app.view.scroll_to(y=app.view.virtual_size.height // 2, animate=False)
        await settled(pilot, lambda: any("message 2" in row for row in app.shown()))
        await pilot.press("end")
        await settled(pilot, lambda: app.shown()[-1] == "┃ message 50000")
        assert len(app.view.canvas.model.messages) <= 1_000


async def test_paging_up_and_down_again_comes_back_to_the_same_rows() -> None:
    book = Book(3_000)
    app = TranscriptApp()
    async with app.run_test(size=(60, 20)) as pilot:
        app.view.history.use(book.load)
        app.view.show(snapshot(book.window(3_001, 50), count=3_000))
        end = app.shown()
        seen: list[list[str]] = []
        for _ in range(12):
            await pilot.press("pageup")
            await settled(pilot, lambda: not app.view.canvas.viewport.missing)
            seen.append(app.shown())
        for rows in reversed(seen[:-1]):
            await pilot.press("pagedown")
            assert app.shown()[1:-1] == rows[1:-1]
        await pilot.press("pagedown")
        assert app.shown() == end


@pytest.mark.parametrize("size", [(1, 1), (2, 3), (200, 1), (1, 200), (7, 40)])
async def test_no_size_is_too_odd(size: tuple[int, int]) -> None:
    app = TranscriptApp()
    async with app.run_test(size=(60, 20)) as pilot:
        display = encode_display(DiffDisplay("a.py", "@@ -1 +1 @@\n-a\n+b\n", 1, 1))
        edit = ToolUseBlock("e", "patch", "{}")
        calls = [
            call_record("t1", "bash", BASH.input_json, ToolStatus.ERROR, text="x\ny"),
            call_record("e", "patch", "{}", ToolStatus.SUCCESS, display=display),
        ]
        reply = answered(2, "a **b**\n\n|x|y|\n|-|-|\n|1|2|\n\n```py\ncode\n```", BASH, edit)
        app.view.show(snapshot([said(1, "漢字 why?"), reply], calls))
        await pilot.resize_terminal(*size)
        await pilot.pause()
        app.view.apply(TextArrived("more text"))
        await pilot.resize_terminal(60, 20)
        await settled(pilot, lambda: "more text" in text_of(app))


@pytest.mark.parametrize(
    ("call_id", "status", "shown"),
    [
        (f"{OWN_CALL}1", ToolStatus.SUCCESS, "  ! ls"),
        (f"{UNSENT_CALL}1", ToolStatus.SUCCESS, "  !! ls"),
        ("toolu_1", ToolStatus.SUCCESS, "  ✓ bash  ls"),
    ],
)
def test_a_line_of_the_user_looks_as_it_was_typed(call_id: str, status: ToolStatus, shown: str) -> None:
    row = tool_block(ToolView(call_id, "bash", "ls", status, duration=1), 60, is_open=False).lines[0].text
    assert row.startswith(f"{shown} ")
    assert ("not sent" in row) is (call_id.startswith(UNSENT_CALL))


def test_the_words_of_init_are_not_the_users() -> None:
    model = TranscriptModel()
    text = f"{INIT_ORDERS[0]}\n\nLook at the project."
    drawing = Drawing(model, 60, Stack(model))
    (part,) = drawing.message_parts(said(1, text))
    assert [line.text for line in part.lines] == ["┃ /init", "┃ [the request of /init]"]


async def test_a_command_that_runs_for_some_seconds_says_what_it_uses() -> None:
    clock = SteppedClock()
    app = TranscriptApp(clock)
    async with app.run_test(size=(60, 10)) as pilot:
        app.view.show(snapshot([said(1, "go"), answered(2, BASH)]))
        app.view.apply(ToolStarted(ToolCall(BASH.id, BASH.name, BASH.input_json), None))
        app.view.apply(ToolProgressed(BASH.id, ProcessStarted(os.getpid(), 0)))
        clock.seconds += 4.9
        assert app.view.canvas.model.long_commands == {}
        clock.seconds += 0.2
        assert app.view.canvas.model.long_commands == {BASH.id: os.getpid()}
        await settled(pilot, lambda: " MB · 5.1s" in text_of(app))
