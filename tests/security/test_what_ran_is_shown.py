"""SECURITY V12: a carriage return in a command made rows, progress lines and jobs show another command than ran."""

from __future__ import annotations

import json
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.machine.messages import ToolCall
from engine.updates import ToolStarted
from phoenix_tui.cli.reporters import progress_line
from phoenix_tui.linear.transcript import LinearTranscript
from phoenix_tui.text.agent_text import end_line
from phoenix_tui.widgets.blocks.rows import view_queued_call
from tools.clean import clean_line, reveal, reveal_line
from tools.contract import JobInfo, PlainDisplay, ToolRequest

ODD = {
    "carriage return": "\r", "escape": "\x1b[2K\x1b[1G", "bell": "\x07", "backspace": "\b\b\b\b", "delete": "\x7f",
    "C1": "\x9b2K", "NUL-like": "\x01", "zero width": "\u200b", "joiner": "\u200d", "override": "\u202e",
    "isolate": "\u2066", "tag": "\U000e0041", "no-break space": "\u00a0", "ideographic space": "\u3000",
    "line separator": "\u2028", "soft hyphen": "\u00ad", "variation selector": "\ufe01", "tab": "\t",
    "newline": "\n", "mark at the start": "\u0338", "filler": "\u3164", "next line": "\x85", "OSC": "\x1b]0;ls\x07",
}  # fmt: skip
REAL, DECOY = "rm -rf build", "ls -l"


def command_with(odd: str) -> str:
    return f"{REAL};{odd}{DECOY}"


def assert_shows(shown: str, odd: str) -> None:
    assert REAL in shown
    assert DECOY in shown
    between = shown[shown.index(REAL) + len(REAL) + 1 : shown.rindex(DECOY)]
    assert between, "what stands between them shows"
    assert not any(unicodedata.category(character)[0] == "C" for character in shown.replace("\n", ""))
    assert odd not in shown or odd == "\n"


@pytest.mark.parametrize("odd", ODD.values(), ids=ODD)
def test_rows_progress_jobs_and_lines_show_the_command_that_ran(odd: str) -> None:
    command = command_with(odd)
    call = ToolCall("call-1", "bash", json.dumps({"command": command}))
    request = ToolRequest(command, (), PlainDisplay(command), command)
    started = ToolStarted(call, request)
    said = [
        request.summary,
        view_queued_call(call).summary,
        progress_line(started),
        end_line(JobInfo("1", "c", command, running=False, exit_code=0, elapsed=1.0)),
        "".join(LinearTranscript().follow(started)),
    ]
    for shown in said:
        assert_shows(shown, odd)
    assert request.command == command, "what runs is untouched"


@given(st.text(max_size=80))
def test_a_row_has_one_line_and_revealing_twice_is_revealing_once(text: str) -> None:
    shown = reveal_line(text)
    assert "\n" not in shown
    assert reveal(reveal(text)) == reveal(text)
    assert clean_line(shown) == shown, "no later gate takes anything of it"


@given(st.text(alphabet="ab\r\b\x1b[K2", max_size=30))
def test_in_a_name_nothing_writes_over_anything(text: str) -> None:
    plain = text.replace("\r\n", "\n").removesuffix("\r")
    letters = [character for character in plain if character in "ab"]
    shown = clean_line(plain)
    if "\x1b" not in text:
        assert [character for character in shown if character in "ab"] == letters


def test_a_file_name_with_a_carriage_return_shows_it() -> None:
    assert clean_line(str(Path("safe.txt\rrm -rf"))) == "safe.txt␍rm -rf"
