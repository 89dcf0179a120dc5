"""The focus view: prompts, answers and diffs stay, ended calls share one row that names each of them."""

from __future__ import annotations

from engine.codec import encode_display
from engine.machine.messages import (
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
from engine.updates import MessageSaved, ToolEnded, ToolStarted
from tests.phoenix_tui.transcript.test_transcript_view import settled, text_of
from tests.support.screens import TranscriptApp, answered, call_record, message, said, snapshot
from tools.contract import DiffDisplay

LS = ToolUseBlock("c1", "bash", '{"command":"ls -la"}')
TEST = ToolUseBlock("c2", "bash", '{"command":"make test"}')
READ = ToolUseBlock("c3", "read_file", '{"path":"src/a.py"}')
EDIT = ToolUseBlock("c4", "patch", '{"path":"a.py"}')
DIFF = encode_display(DiffDisplay("a.py", "@@ -1,0 +1,1 @@\n+new\n", 1, 0))
RECORDS = [
    call_record(LS.id, LS.name, LS.input_json, ToolStatus.SUCCESS, text="listed", ms=10),
    call_record(TEST.id, TEST.name, TEST.input_json, ToolStatus.ERROR, text="one\ntwo\nthree", ms=3_000),
    call_record(READ.id, READ.name, READ.input_json, ToolStatus.SUCCESS, text="x", ms=10),
    call_record(EDIT.id, EDIT.name, EDIT.input_json, ToolStatus.SUCCESS, display=DIFF),
]
WHOLE = snapshot(
    [
        said(1, "go"),
        answered(2, ThinkingBlock("hm", "s"), LS),
        message(3, Role.USER, Origin.TOOL, ToolResultBlock(LS.id, (TextBlock("listed"),))),
        answered(4, TEST, READ),
        answered(5, EDIT),
        answered(6, "Done."),
    ],
    RECORDS,
)
FOCUSED = [
    "┃ go",
    "",
    "  ✓ ls -la · ✗ make test · ✓ read_file src/a.py",
    "  ± a.py  +1 -0",
    "  1 + new",
    "",
    "  Done.",
]


async def test_calls_share_one_row_and_prompts_answers_and_diffs_stay() -> None:
    app = TranscriptApp()
    async with app.run_test(size=(60, 24)) as pilot:
        app.view.show(WHOLE)
        whole = text_of(app)
        assert "thought · 1 word" in whole
        assert "three" in whole
        app.view.focus_view(wanted=True)
        await settled(pilot, lambda: [row.rstrip() for row in text_of(app).split("\n")] == FOCUSED)
        app.view.focus_view(wanted=False)
        await settled(pilot, lambda: text_of(app) == whole)


async def test_the_row_wraps_rather_than_leave_a_command_out_and_opens_to_all_of_them() -> None:
    app = TranscriptApp()
    names = [f"command-number-{n} --with some arguments" for n in range(6)]
    blocks = [ToolUseBlock(f"b{n}", "bash", f'{{"command":"{name}"}}') for n, name in enumerate(names)]
    records = [call_record(b.id, "bash", b.input_json, ToolStatus.SUCCESS, text="x", ms=10) for b in blocks]
    async with app.run_test(size=(60, 24)) as pilot:
        app.view.focus_view(wanted=True)
        app.view.show(snapshot([said(1, "go"), *(answered(n + 2, one) for n, one in enumerate(blocks))], records))
        words = " ".join(text_of(app).split())
        assert all(name in words for name in names)
        await pilot.press("enter")
        await settled(pilot, lambda: text_of(app).count("✓ bash") == len(names))


async def test_a_running_call_is_shown_as_ever_and_folds_at_its_end() -> None:
    app = TranscriptApp()
    async with app.run_test(size=(60, 24)) as pilot:
        app.view.focus_view(wanted=True)
        app.view.show(snapshot([said(1, "go"), answered(2, LS)], RECORDS[:1]))
        app.view.apply(MessageSaved(answered(3, TEST)))
        app.view.apply(ToolStarted(ToolCall(TEST.id, TEST.name, TEST.input_json), None))
        await settled(pilot, lambda: "▸ bash  make test" in text_of(app))
        app.view.apply(ToolEnded(ToolResult(TEST.id, "x", ToolStatus.SUCCESS), 0.01))
        await settled(pilot, lambda: text_of(app).endswith("✓ ls -la · ✓ make test"))
