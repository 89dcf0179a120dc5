"""Writing: keys as they come, at once, and keys meant as text."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli import with_claude
from tests.support.environment_note import without_note
from tests.support.journeys import Claude, calls, result_text, rows, says, starts_to_say
from tests.support.loopback import Seen, serve
from tests.support.program import CTRL_Q, DOWN, ENTER, LEFT, RIGHT, TAB, UP, on_screen, program
from tests.support.waiting import keys_at, typing_guard

pytestmark = pytest.mark.pty
CTRL_R = b"\x12"
SHIFT_UP = b"\x1b[1;2A"


def spoken(request: Seen) -> list[str]:
    """Texts of the user in a request, in order."""
    messages: Any = request.json["messages"]
    return [
        block["text"]
        for message in messages
        if message["role"] == "user"
        for block in without_note(message["content"])
        if block["type"] == "text"
    ]


async def planted(folder: Path, names: list[str]) -> None:
    """Empty files on the disk: `@` asks no git."""
    for parent in {(folder / name).parent for name in names}:
        parent.mkdir(parents=True, exist_ok=True)

    def touched() -> None:
        for name in names:
            (folder / name).touch()

    await asyncio.to_thread(touched)


async def test_a_queue_outlives_kill_and_is_sent_in_its_order_when_the_user_goes_on(claude: Claude) -> None:
    answers = (starts_to_say("I look"), *(says(f"Answer {number}.") for number in (2, 3, 4)))
    phoenix, server = await claude(*answers)
    async with on_screen(phoenix) as running:
        await running.send("first", "I look")
        for number, text in enumerate(("second", "third"), start=1):
            await running.press(text, f"┃ {text}")
            await running.press(TAB, f"queue {number} ·", f"{number} {text}")
        await running.press(UP + SHIFT_UP, "1 third", "2 second")
        stored = "select json_extract(content_json, '$.text') from queued_messages order by ord"
        await running.until(lambda: rows(phoenix, stored) == [("third",), ("second",)], "the stored order")
        running.signal(signal.SIGKILL)
        assert await running.exit_code() == -signal.SIGKILL
    async with program(phoenix, "-c") as running:
        await running.shows("queue 2 · paused", "1 third", "2 second")
        assert len(server.requests) == 1
        await running.press(ENTER, "Answer 4.")
        await running.lacks("queue 1")
        await running.lacks("queue 2")
    assert [spoken(request)[-1] for request in server.requests[1:]] == ["first", "third", "second"]
    assert rows(phoenix, "select count(*) from queued_messages") == [(0,)]


async def test_an_older_prompt_is_found_by_a_few_letters_in_another_session(claude: Claude) -> None:
    phoenix, server = await claude(says("One."), says("Two."), says("Three."))
    async with on_screen(phoenix) as running:
        await running.send("explain the parser", "One.", "○ ready")
        await running.send("now the lexer", "Two.", "○ ready")
        running.type(CTRL_Q)
        assert await running.exit_code() == 0
    async with on_screen(phoenix) as running:
        await running.press(CTRL_R, "1 / 2 in this folder")
        await running.press("pars", "1 / 1 in this folder")
        await running.press(ENTER, "┃ explain the parser")
        await running.press(ENTER, "Three.")
    assert spoken(server.requests[-1]) == ["explain the parser"]


async def test_a_file_among_twenty_thousand_is_found_and_ignored_ones_are_not(claude: Claude) -> None:
    phoenix, _ = await claude(says("Read."))
    await planted(phoenix.cwd, [*(f"part{n % 100}/file_{n}.py" for n in range(20_000)), "part7/the_needle.py"])
    (phoenix.cwd / "build").mkdir()
    (phoenix.cwd / "build" / "the_needle.py").touch()
    (phoenix.cwd / ".gitignore").write_text("build/\n")
    async with on_screen(phoenix) as running:
        await running.press("read @", "+42 more")
        await running.press("thenee", "@part7/the_needle.py")
        assert "build/" not in running.text
        await running.press(TAB, "┃ read @part7/the_needle.py")


HOME, END, DELETE, BACKSPACE = b"\x1b[H", b"\x1b[F", b"\x1b[3~", b"\x7f"
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
    async with serve(*answers) as server, on_screen(with_claude(tmp_path, server.url)) as running:
        for number, (keys, text) in enumerate(BURSTS):
            await running.press(keys + ENTER, f"Answer {number}.", "○ ready")
            assert said(server.requests[number]) == text


async def test_left_and_enter_of_one_read_open_the_pasted_text_they_stand_on(tmp_path: Path) -> None:
    async with serve(says("Never asked.")) as server, on_screen(with_claude(tmp_path, server.url)) as running:
        running.type(b"\x1b[200~" + b"\r".join(b"line %d" % number for number in range(100)) + b"\x1b[201~")
        await running.shows("100 lines")
        await running.press(LEFT + ENTER, "Ctrl+S")
        assert server.requests == []


async def test_up_and_enter_of_one_read_edit_what_is_queued(tmp_path: Path) -> None:
    async with serve(starts_to_say("I begin")) as server, on_screen(with_claude(tmp_path, server.url)) as running:
        await running.send("Go", "I begin")
        await running.press(b"and then?" + TAB, "queue 1")
        await running.press(UP + ENTER, "Queued message", "Ctrl+S saves")
        assert len(server.requests) == 1


async def test_a_reason_of_one_read_with_its_key_goes_to_the_model(tmp_path: Path) -> None:
    asks = calls("bash", command="touch made")
    async with serve(asks, says("Fine.")) as server, on_screen(with_claude(tmp_path, server.url)) as running:
        await running.send("Do it", "y Yes, once", "asks")
        await typing_guard()
        await running.press(b"rnot yet" + ENTER, "Fine.")
        assert "not yet" in result_text(server.requests[1])


async def test_up_and_a_letter_of_one_read_answer_the_question(tmp_path: Path) -> None:
    asks = calls("bash", command="echo made $((40 + 2))")
    async with serve(asks, says("Fine.")) as server, on_screen(with_claude(tmp_path, server.url)) as running:
        await running.send("Do it", "y Yes, once", "asks")
        await typing_guard()
        await running.press(UP + b"y", "Fine.")
        assert "made 42" in result_text(server.requests[1])


async def test_a_chosen_completion_and_enter_of_one_read_run_it(tmp_path: Path) -> None:
    async with serve(says("Never asked.")) as server, on_screen(with_claude(tmp_path, server.url)) as running:
        await running.press(b"/hel" + TAB + ENTER, "Everyday keys")
        assert server.requests == []


async def test_letters_of_one_read_with_tab_are_the_argument_of_the_chosen_command(tmp_path: Path) -> None:
    async with serve(says("Done.")) as server, on_screen(with_claude(tmp_path, server.url)) as running:
        await running.send("Go", "Done.", "○ ready")
        await running.press(b"/renam" + TAB + b"Another name" + ENTER, "○ Another name")


PROSE = "stop, use make clean instead"


@pytest.mark.parametrize("pace", [0.08, 0.0])
async def test_words_typed_as_an_answer_say_no_with_themselves_as_the_reason(tmp_path: Path, pace: float) -> None:
    asks = calls("bash", command="touch made")
    async with serve(asks, says("Fine.")) as server, on_screen(phoenix := with_claude(tmp_path, server.url)) as running:
        await running.send("Clean up", "y Yes, once", "asks")
        await typing_guard()
        await keys_at(running.type, PROSE, pace)
        await running.shows("Enter: no, with this reason")
        assert len(server.requests) == 1
        await running.press(ENTER, "Fine.")
        assert PROSE in result_text(server.requests[1])
    assert not (phoenix.cwd / "made").exists()


@pytest.mark.parametrize("pace", [0.08, 0.0])
async def test_tab_behind_a_text_leaves_the_list_alone(tmp_path: Path, pace: float) -> None:
    async with serve(says("One."), says("Two.")) as server, on_screen(with_claude(tmp_path, server.url)) as running:
        await running.send("first", "One.", "○ ready")
        await keys_at(running.type, "fix it \tand add a test", pace)
        await running.shows("fix it and add a test")
        await running.press(ENTER, "Two.")
    kept = rows(with_claude(tmp_path, server.url), "SELECT archived_at, deleted_at, pinned_at FROM conversations")
    assert all(not any(row) for row in kept)
