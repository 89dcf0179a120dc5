"""Many keys in one read of the terminal, as from a slow line or a busy machine: they count in their order."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.cli import with_claude
from tests.support.environment_note import without_note
from tests.support.journeys import calls, result_text, says, starts_to_say
from tests.support.loopback import Seen, serve
from tests.support.program import ENTER, program
from tests.support.waiting import typing_guard

pytestmark = pytest.mark.pty
LEFT, RIGHT, UP, DOWN = b"\x1b[D", b"\x1b[C", b"\x1b[A", b"\x1b[B"
HOME, END, DELETE, BACKSPACE, TAB = b"\x1b[H", b"\x1b[F", b"\x1b[3~", b"\x7f", b"\t"
CTRL_A, CTRL_D, CTRL_E, CTRL_J, CTRL_K, CTRL_U, CTRL_W, CTRL_Y = (
    b"\x01",
    b"\x04",
    b"\x05",
    b"\n",
    b"\x0b",
    b"\x15",
    b"\x17",
    b"\x19",
)
ALT_B, ALT_D, ALT_F, UNDO, CTRL_LEFT, SHIFT_LEFT = b"\x1bb", b"\x1bd", b"\x1bf", b"\x1f", b"\x1b[1;5D", b"\x1b[1;2D"

BURSTS = (
    (b"ac" + LEFT + b"b" + RIGHT + b"d", "abcd"),
    (b"abcx" + BACKSPACE + b"d", "abcd"),
    (b"xabcd" + HOME + DELETE + END + b"e", "abcde"),
    (b"bc" + CTRL_A + b"a" + CTRL_E + b"d", "abcd"),
    (b"one two" + CTRL_W + b"2" + LEFT + LEFT + b"!", "one! 2"),
    (b"one two" + ALT_B + b"x" + ALT_F + b"y", "one xtwoy"),
    (b"one two" + CTRL_LEFT + CTRL_K + CTRL_A + CTRL_Y + b" ", "two one "),
    (b"one two" + HOME + ALT_D + DELETE + b"1", "1two"),
    (b"abx" + LEFT + CTRL_D + b"c", "abc"),
    (b"wrong" + CTRL_U + b"right", "right"),
    (b"ab" + CTRL_J + b"cd" + UP + b"x" + DOWN + b"y", "abx\ncdy"),
    (b"abX" + SHIFT_LEFT + b"c" + LEFT + LEFT + b"_", "a_bc"),
    (b"!ls" + TAB + BACKSPACE * 3 + b"x" + HOME + DELETE + b"y", "yx"),
)


def said(request: Seen) -> str:
    messages: Any = request.json["messages"]  # JSON whose shape the assertion is about
    return str(without_note(messages[-1]["content"])[-1]["text"])


async def test_editing_keys_of_one_read_count_in_the_order_of_typing(tmp_path: Path) -> None:
    answers = (says(f"Answer {number}.") for number in range(len(BURSTS)))
    async with serve(*answers) as server, program(with_claude(tmp_path, server.url)) as running:
        await running.ready()
        for number, (keys, text) in enumerate(BURSTS):
            running.type(keys + ENTER)
            await running.shows(f"Answer {number}.", "○ ready")
            assert said(server.requests[number]) == text


async def test_left_and_enter_of_one_read_open_the_pasted_text_they_stand_on(tmp_path: Path) -> None:
    async with serve(says("Never asked.")) as server, program(with_claude(tmp_path, server.url)) as running:
        await running.ready()
        running.type(b"\x1b[200~" + b"\r".join(b"line %d" % number for number in range(100)) + b"\x1b[201~")
        await running.shows("100 lines")
        running.type(LEFT + ENTER)
        await running.shows("Ctrl+S")
        assert server.requests == []


async def test_up_and_enter_of_one_read_edit_what_is_queued(tmp_path: Path) -> None:
    async with serve(starts_to_say("I begin")) as server, program(with_claude(tmp_path, server.url)) as running:
        await running.ready()
        await running.send("Go")
        await running.shows("I begin")
        running.type(b"and then?" + TAB)
        await running.shows("queue 1")
        running.type(UP + ENTER)
        await running.shows("Queued message", "Ctrl+S saves")
        assert len(server.requests) == 1


async def test_a_reason_of_one_read_with_its_key_goes_to_the_model(tmp_path: Path) -> None:
    asks = calls("bash", command="touch made")
    async with serve(asks, says("Fine.")) as server, program(with_claude(tmp_path, server.url)) as running:
        await running.ready()
        await running.send("Do it")
        await running.shows("1 y once", "asks")
        await typing_guard()
        running.type(b"rnot yet" + ENTER)
        await running.shows("Fine.")
        assert "not yet" in result_text(server.requests[1])


async def test_up_and_a_letter_of_one_read_answer_the_question(tmp_path: Path) -> None:
    asks = calls("bash", command="echo made $((40 + 2))")
    async with serve(asks, says("Fine.")) as server, program(with_claude(tmp_path, server.url)) as running:
        await running.ready()
        await running.send("Do it")
        await running.shows("1 y once", "asks")
        await typing_guard()
        running.type(UP + b"y")
        await running.shows("Fine.")
        assert "made 42" in result_text(server.requests[1])


async def test_a_chosen_completion_and_enter_of_one_read_run_it(tmp_path: Path) -> None:
    async with serve(says("Never asked.")) as server, program(with_claude(tmp_path, server.url)) as running:
        await running.ready()
        running.type(b"/hel" + TAB + ENTER)
        await running.shows("Keys")
        assert server.requests == []


async def test_letters_of_one_read_with_tab_are_the_argument_of_the_chosen_command(tmp_path: Path) -> None:
    async with serve(says("Done.")) as server, program(with_claude(tmp_path, server.url)) as running:
        await running.ready()
        await running.send("Go")
        await running.shows("Done.", "○ ready")
        running.type(b"/renam" + TAB + b"Another name" + ENTER)
        await running.shows("○ Another name")
