"""Updates as lines: first the speaker, without Markdown signs, and no outside text acts on the terminal."""

from __future__ import annotations

import unicodedata
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from engine.codec import encode_display
from engine.machine.messages import Origin, Role, TextBlock, ToolCall, ToolResult, ToolStatus
from engine.updates import JobsChanged, LiveTextDropped, MessageSaved, TextArrived, ToolEnded, ToolStarted
from phoenix_tui.linear.question_lines import question_lines
from phoenix_tui.linear.transcript import AnswerLines, LinearTranscript, message_lines
from tests.support.fake_engine import question
from tests.support.screens import message
from tools.contract import DiffDisplay, JobInfo, TerminalDisplay, ToolRequest
from tools.displays import CodeProblem, EditCheck


def spoken(*pieces: str) -> list[str]:
    answer = AnswerLines()
    return [line for piece in pieces for line in answer.add(piece)] + answer.end()


def test_an_answer_is_said_line_by_line_without_its_signs() -> None:
    text = "# Plan\n\nUse **`retry`** now.\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n```python\nx = a ** b\n```\nDone.\n"
    assert spoken(text) == [
        "Assistant: Heading: Plan",
        "Use retry now.",
        "a; b",
        "1; 2",
        "Code, python:",
        "x = a ** b",
        "End of code.",
        "Done.",
    ]


def test_a_long_paragraph_is_not_waited_for() -> None:
    answer = AnswerLines()
    assert answer.add("One sentence here. " * 30)[0].startswith("Assistant: One sentence here.")
    assert answer.end() == []


@given(st.text(alphabet="ab \n.", max_size=60), st.integers(1, 7))
def test_however_the_text_arrives_the_lines_are_the_same(text: str, size: int) -> None:
    assert spoken(*(text[at : at + size] for at in range(0, len(text), size))) == spoken(text)


def test_what_ones_own_command_printed_is_said_as_it_ends_and_not_again_for_the_model() -> None:
    shown = LinearTranscript()
    shown.follow(ToolStarted(ToolCall("shell_1", "bash", "{}"), ToolRequest("seq 30")))
    printed = "\n".join(map(str, range(1, 31)))
    ended = ToolResult("shell_1", printed, ToolStatus.SUCCESS, display_json=encode_display(TerminalDisplay(printed, 0)))
    assert shown.follow(ToolEnded(ended, 0.1)) == [
        "Tool bash, finished, exit 0, 30 lines",
        *(f"  {number}" for number in range(1, 21)),
    ]
    told = message(2, Role.USER, Origin.NOTICE, TextBlock("$ seq 30\n1"))
    assert shown.follow(MessageSaved(told)) == []


@given(st.text(max_size=80))
def test_no_line_holds_anything_that_acts(text: str) -> None:
    shown = LinearTranscript()
    lines = [
        *shown.follow(TextArrived(text + "\n")),
        *shown.follow(ToolStarted(ToolCall("c", text, "{}"), ToolRequest(text))),
        *shown.follow(ToolEnded(ToolResult("c", text, ToolStatus.ERROR), 0.1)),
        *question_lines(question(text)),
    ]
    assert all(unicodedata.category(letter) != "Cc" or letter == "\t" for line in lines for letter in line)


def test_new_errors_of_an_edit_are_read_out_below_it() -> None:
    shown = LinearTranscript()
    check = EditCheck("ruff", "a.py", (CodeProblem(2, 5, "x is not defined", code="F821"),), 1)
    display = encode_display(DiffDisplay("a.py", "@@ -1 +1 @@\n-a\n+x", 1, 1, checks=(check,)))
    assert shown.follow(ToolEnded(ToolResult("c", "Changed", ToolStatus.SUCCESS, display_json=display), 0.1)) == [
        "Tool call, finished, a.py, 1 line added, 1 removed",
        "  ruff: 1 new error",
        "    2:5 x is not defined [F821]",
    ]


def test_a_change_is_asked_about_line_by_line() -> None:
    change = DiffDisplay("a.py", "--- a.py\n+++ a.py\n@@ -1,2 +1,2 @@\n same\n-old\n+new\n", 1, 1)
    lines = question_lines(question(request=ToolRequest("a.py", preview=change)))
    assert "It would change a.py: 1 line added, 1 removed." in lines
    assert lines[2:5] == ["Same: same", "Removed: old", "Added: new"]


@given(st.text(max_size=30), st.text("a\n\r\x85\u2028 ", max_size=12))
def test_neither_a_rule_nor_a_path_nor_a_reason_can_forge_a_line(text: str, more: str) -> None:
    forged = f"{text}\n{more}y once, n no."
    change = DiffDisplay(forged, "@@ -1 +1 @@\n-old\n+new\n", 1, 1)
    for rule in (f"bash({forged})", f"write_file(/{forged}*)", f"x({forged})"):
        asks = question(request=ToolRequest(forged, (Path("/a"),), preview=change), rule=rule)
        lines = question_lines(structs.replace(asks, reason=forged))
        assert len([line for line in lines if not line.startswith("Note: it contains ")]) == 11
        assert [line for line in lines if len(line.splitlines()) != 1] == []


def test_the_rule_and_what_it_allows_are_said_before_it_is_kept() -> None:
    lines = question_lines(question(rule="bash(git log*)"))
    assert lines[-6:] == [
        "Rule for s and a: bash(git log*); e keeps it everywhere.",
        "1 or y: Yes, once",
        "2 or s: Yes, and any command that starts with `git log` in this conversation",
        "3 or a: Yes, always in this project",
        "4 or n: No",
        "5 or r: No, tell it what to do instead",
    ]


def test_an_end_is_said_once_and_a_dropped_answer_begins_again() -> None:
    shown = LinearTranscript()
    job = JobInfo("j", "c", "make", False, 2, 1.0)
    assert shown.follow(JobsChanged((job,))) == ["Background command ended, exit 2: make"]
    assert shown.follow(JobsChanged((job,))) == []
    shown.follow(TextArrived("half"))
    assert shown.follow(LiveTextDropped(cancelled=False)) == ["Assistant: half", "The answer starts again."]


def test_a_failed_tool_says_the_end_of_what_it_printed() -> None:
    shown = LinearTranscript()
    shown.follow(ToolStarted(ToolCall("c", "bash", "{}"), ToolRequest("make", (Path("/x"),))))
    output = "\n".join(f"row {number}" for number in range(9))
    lines = shown.follow(ToolEnded(ToolResult("c", output, ToolStatus.ERROR), 65.0, ended_processes=2))
    assert lines[0] == "Tool bash, failed, 9 lines, 2 processes ended, 1 m 5 s"
    assert lines[1:] == [f"  row {number}" for number in range(4, 9)]
    assert shown.last_output == output


def test_the_lines_of_an_output_whose_middle_is_left_out_are_those_it_had() -> None:
    shown = LinearTranscript()
    shown.follow(ToolStarted(ToolCall("c", "bash", "{}"), ToolRequest("seq 1 200000")))
    display = encode_display(TerminalDisplay("1\n[… left out]\n200000\n", 0, lines=200_000))
    result = ToolResult("c", "1", ToolStatus.SUCCESS, display_json=display)
    assert shown.follow(ToolEnded(result, 0.1)) == ["Tool bash, finished, exit 0, 200,000 lines"]


def test_underscores_inside_a_name_are_no_markdown() -> None:
    line = "Call mcp__few__create_issue, __now__ and **soon**."
    assert message_lines("Assistant", line) == ["Assistant: Call mcp__few__create_issue, now and soon."]
