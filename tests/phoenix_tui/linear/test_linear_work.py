"""Work in lines: the typed line, images, the queue, the context, approvals, drafts and background commands."""

from __future__ import annotations

import asyncio
import re
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pyte
import pytest
from hypothesis import given
from hypothesis import strategies as st

from phoenix_tui.features.catalogue import LINE_COMMANDS
from phoenix_tui.features.composing import PromptHistory
from phoenix_tui.linear.context import next_proposal
from phoenix_tui.linear.line_buffer import LeaveTyped, LineBuffer, LineTyped, StopWanted
from phoenix_tui.linear.terminal import LineTerminal, find_unfinished
from tests.support.cli import phoenix_in
from tests.support.hooked import write_hooks
from tests.support.journeys import Claude, calls, result_text, rows, says, starts_to_say
from tests.support.loopback import Talk
from tests.support.loopback_anthropic import TINY_PNG
from tests.support.program import CTRL_C, ESC, Program, alive, in_lines, mark, program
from tests.support.skills import command


async def test_an_image_is_attached_by_its_path_said_and_sent(claude: Claude, tmp_path: Path) -> None:
    shot = tmp_path / "a shot.png"
    shot.write_bytes(TINY_PNG)
    phoenix, server = await claude(says("A dot."))
    async with in_lines(phoenix) as running:
        await running.press("/images\r", "No image is attached.")
        running.paste(f"'{shot}'")
        await running.press("\r", "Attached 1: image, 1 by 1, 1 KB, png, from a shot.png.")
        await running.press(f"/attach {shot}\r", "Attached 2:")
        running.type("/images\r")
        await running.shows(
            "2 images attached to the next message.", "1. image, 1 by 1, 1 KB, png", "Number, or Enter for none:"
        )
        await running.press("2\r", "Removed. 1 image attached.")
        await running.press("/images 1\r", "Image 1: image, 1 by 1, 1 KB, png", "1. Keep it", "2. Remove it")
        running.type("1\r")
        await running.until(lambda: running.words.endswith("You:"), "the image is kept")
        await running.press("/image\r", "Image file:")
        await running.press("nowhere.png\r", "Refused: nowhere.png cannot be read: No such file or directory.")
        await running.press("/image nothing.png\r", "Refused: nothing.png cannot be read: No such file or directory.")
        await running.press("what is it\r", "Assistant: A dot.")
        await running.press(f"/images\r/read {'9' * 5_000}\r", "Image, 1 by 1.")
    assert server.requests[0].body.count(b'"type":"image"') == 1


async def test_a_message_sent_while_the_agent_works_is_queued_changed_and_sent(claude: Claude) -> None:
    phoenix, _ = await claude(starts_to_say("Once.\n"), says("Both done."))
    async with in_lines(phoenix) as running:
        await running.press("tell\r", "Assistant: Once.")
        await running.press("second\r", "Queued as number 1")
        await running.press("/queue third\r", "Queued as number 2")
        await running.press("/queue\r", "2 messages waiting.", "1. second", "2. third", "Number, or Enter for none:")
        await running.press("2\r", "third:", "3. Remove it")
        await running.press("3\r", "Removed.")
        await running.press("/queue\r", "1 message waiting.")
        await running.press("1\r", "second:")
        await running.press("2\r", "New text: second")
        await running.press(" thing\r", "Changed.")
        await running.press(ESC, "Stopped by you", "1 message paused.")
        await running.press("\r", "You: second thing", "Assistant: Both done.", "Ready")


async def test_another_conversation_that_asks_is_said_and_answered_from_here(claude: Claude) -> None:
    gate = asyncio.Event()

    async def later(talk: Talk) -> None:
        await gate.wait()
        await calls("bash", command="echo ho")(talk)

    phoenix, server = await claude(later, says("Done there."))
    async with in_lines(phoenix) as running:
        await running.press("please\r", "Assistant is working.")
        await running.press("/new\r", "New conversation.")
        gate.set()
        await running.shows("Another conversation, please, asks: bash, echo ho. /approvals answers it.")
        await running.press("/approvals\r", "Pending approvals:", "1. please: bash, echo ho")
        await running.press("1\r", "It would run: echo ho", "Answer, or Enter for later:")
        await running.press("y\r", "Answered.")
        await running.until(lambda: len(server.requests) == 2, "the run goes on")
        await running.press("/approvals\r", "No approvals are pending.")


async def test_context_finding_and_export_are_text(tmp_path: Path) -> None:
    phoenix = phoenix_in(tmp_path)
    lines = [
        "say wombat",
        "/context",
        "/context threshold 80",
        "/context threshold 7",
        "/context nonsense",
        "/context prune",
        "/find wombat",
        "1",
        "/find zebra",
        "/export talk.md",
        "/export talk.md",
        "/queue",
        "/jobs",
        "/undo",
    ]
    said = (await phoenix.run("--screen-reader", stdin="\n".join([*lines, ""]).encode())).out
    order = [
        "Context: ",
        "messages: about ",
        "Older messages are summarized at ",
        "summarized at 80 per cent",
        "The threshold must be 30 to 95 per cent, or never.",
        "There is no /context nonsense.",
        "Refused: There are no old tool results",
        "1. message 1, 1 time",
        "You: say wombat",
        "No matches in this conversation.",
        "Written to ",
        "talk.md already exists; give another file name.",
        "The queue is empty.",
        "This conversation has no background commands.",
        "There is no rewind to undo.",
    ]
    places = [said.find(piece) for piece in order]
    assert -1 not in places, (order[places.index(-1)], said)
    assert "You: say wombat" in said[said.index("1. message 1") :]
    assert "## You\n\nsay wombat\n" in (phoenix.cwd / "talk.md").read_text()


async def test_going_back_is_numbered_choices(tmp_path: Path) -> None:
    phoenix = phoenix_in(tmp_path)
    made = phoenix.cwd / "made.txt"
    async with in_lines(phoenix, "--permission-mode", "auto") as running:
        await running.press("run echo one > made.txt\r", "Ready, after")
        assert made.exists()
        await running.press("/diff\r", "1. all of this conversation, 1 file", "Number, or Enter for none:")
        await running.press("1\r", "1. New made.txt, 1 line added, 0 removed")
        await running.press("1\r", "@@ -0,0 +1 @@", "+one")
        await running.press("\r/prompt\r", "You are Phoenix", "Permission mode: auto.")
        await running.press("/rewind\r", "1. run echo one > made.txt", "1 file changed", "Number, or Enter for none:")
        await running.press("1\r", "Delete made.txt", "Rewind what?", "1. Conversation and files", "3. Files only")
        running.type("1\r")
        await running.shows(
            "1 file restored. You are in a new branch; /undo returns to the previous one.",
            "You: run echo one > made.txt",
        )
        assert not made.exists()
        await running.press("\x15/undo\r", "Create made.txt")
        await running.until(lambda: running.words.count("1 file restored.") == 2, "it is undone")
        assert "The rewind is undone. 1 file restored." in running.words
        assert made.read_text() == "one\n"


async def test_a_summary_is_read_out_and_decided_on(claude: Claude) -> None:
    answers = [says("word " * 200) for _ in range(5)]
    phoenix, server = await claude(*answers, says("NO_REPLY"), says("First plan."), says("Second plan."))
    lines = [*(f"message {number}" for number in range(5)), "/compact the names", "3", "the tables", "2", "mine"]
    said = (await phoenix.run("--screen-reader", stdin="\n".join([*lines, ""]).encode())).out
    order = [
        "Summary of 6 messages, 4 kept",
        "First plan.",
        "Use this summary?",
        "Second plan.",
        "The summary: ",
        "Ready",
    ]
    places = [said.find(piece) for piece in order]
    assert -1 not in places, said
    assert places[:-1] == sorted(places[:-1])
    assert rows(phoenix, "SELECT summary FROM conversations") == [("mine",)]
    assert b"Pre-compaction memory flush" in server.requests[5].body
    assert b"the names" in server.requests[6].body
    assert b"the tables" in server.requests[7].body


def answered(running: Program, times: int) -> bool:
    return running.text.count("Ready, after") == times


async def test_esc_stops_a_summary_that_is_being_written(claude: Claude) -> None:
    answers = [says("word " * 200) for _ in range(5)]
    phoenix, server = await claude(*answers, starts_to_say("First"))
    async with in_lines(phoenix) as running:
        for number in range(5):
            running.type(f"message {number}\r")
            await running.until(partial(answered, running, number + 1), "an answer")
        running.type("/compact\r")
        await running.until(lambda: len(server.requests) == 6, "the request for a summary")
        await running.press("what\r", "Writing the summary. Esc stops.")
        running.type(ESC)
        await running.until(lambda: running.text.count("Ready, after") == 6, "it is stopped")
        await running.press("/state\r", "Ready. 0 conversations working in all.")


async def test_the_help_lists_commands_in_groups_and_with_all_every_other_name(tmp_path: Path) -> None:
    short = (await phoenix_in(tmp_path).run("--screen-reader", stdin=b"/help\n")).out
    groups = re.findall(r"^([A-Z][a-z ]+):\n/(\w+): ", short, re.MULTILINE)
    assert groups[:2] == [("Conversations", "new"), ("Changes", "diff")]
    assert [name for name in re.findall(r"^/(\w+): .+\.$", short, re.MULTILINE) if LINE_COMMANDS[name].shown_in] == []
    said = (await phoenix_in(tmp_path).run("--screen-reader", stdin=b"/help all\n")).out
    listed = re.findall(r"^/(\w+): .+\.$", said, re.MULTILINE)
    assert set(listed) == LINE_COMMANDS.keys()
    wanted = {"image", "paste", "images", "queue", "context", "compact", "find", "search", "rewind", "undo"}
    assert wanted | {"branches", "approvals", "export", "jobs"} <= set(listed)
    assert len(listed) == len(set(listed))
    for name in ("image", "rewind", "approvals"):
        assert f"There is no /{name}" not in said


async def test_nothing_in_a_file_acts_on_the_terminal_as_its_text_is_read_out(claude: Claude) -> None:
    phoenix, _ = await claude(calls("read_file", path="hostile.txt"), says("Read."))
    (phoenix.cwd / "hostile.txt").write_bytes(b"one\x1b]0;owned\x07 and\x1b[2J two\n")
    async with in_lines(phoenix) as running:
        await running.press("go\r", "Assistant: Read.")
        await running.press("/output\r", "one and two")
        assert b"owned" not in running.raw
        assert b"\x1b[2J" not in running.raw


async def test_a_conversation_at_rest_is_put_away_and_one_that_runs_is_not(claude: Claude) -> None:
    phoenix, _ = await claude(says("One."), starts_to_say("Two.\n"))
    async with in_lines(phoenix) as running:
        await running.press("first\r", "Ready, after")
        await running.press("/archive\r", "Archived.")
        await running.press("/delete\r", "No conversation is open.")
        await running.press("second\r", "Assistant: Two.")
        await running.press("/delete\r", "The conversation is running; stop it first.")
        await running.press(ESC, "Stopped by you")
        await running.press("/delete\r", "Moved to the trash.")


async def test_rules_are_seen_written_moved_and_taken_back(tmp_path: Path) -> None:
    phoenix = phoenix_in(tmp_path)
    lines = [
        "/rules",
        "/rules bash(make test)",
        "1",
        "/rules bash(make test)",
        "1",
        "/rules bash(make",
        "/rules",
        "1",
        "2",
        "/rules",
        "1",
        "1",
        "/rules undo",
        "/permissions plan",
        "/rules",
        "",
    ]
    said = (await phoenix.run("--screen-reader", stdin="\n".join([*lines, ""]).encode())).out
    order = [
        "There are no rules yet.",
        "1. in this project",
        "Saved; the rule now applies.",
        "This rule already exists.",
        "bash(make",
        "is not a rule",
        f"1. bash(make test), in the project {phoenix.cwd}",
        "2. apply in every project",
        "The rule now applies to all projects.",
        "1. bash(make test), in every project",
        "1. remove the rule",
        "bash(make test) removed; /rules undo restores it.",
        "Undone.",
        "In mode plan only rules of web tools apply",
        "1. bash(make test), in every project",
    ]
    place = 0
    for piece in order:
        place = said.find(piece, place)
        assert place >= 0, (piece, said)


async def test_a_rule_that_denies_is_written_and_taken_back_in_lines(tmp_path: Path) -> None:
    phoenix = phoenix_in(tmp_path)
    lines = ["/rules deny bash(git push*)", "2", "/rules", "1", "1", "/rules", ""]
    said = (await phoenix.run("--screen-reader", stdin="\n".join([*lines, ""]).encode())).out
    place = 0
    for piece in (
        "Denies commands that start with `git push`",
        "Saved; the rule now applies.",
        "1. deny bash(git push*), in every project",
        "deny bash(git push*) removed",
        "There are no rules yet.",
    ):
        place = said.index(piece, place)


@pytest.mark.pty
@pytest.mark.parametrize("key", [ESC, CTRL_C])
@pytest.mark.parametrize("waits_for", ["a shell line", "a hook"])
async def test_a_key_ends_what_a_message_waits_for(claude: Claude, key: bytes, waits_for: str) -> None:
    marked = mark()
    phoenix, server = await claude(says("Done."))
    command(phoenix.home / "commands", "fix", body=f"It is !`sleep {marked}`." if waits_for == "a shell line" else "x")
    if waits_for == "a hook":
        write_hooks(phoenix.home / "hooks.json", UserPromptSubmit=f"sleep {marked}")
    async with program(phoenix, "--screen-reader", "--permission-mode", "auto") as running:
        await running.shows("You:")
        running.type("/fix now\r")
        await running.until(lambda: bool(alive(f"sleep\0{marked}")), "the command runs")
        await running.press(key, "Refused: Stopped")
        await running.until(lambda: not alive(f"sleep\0{marked}"), "the command is gone")
        (phoenix.home / "hooks.json").unlink(missing_ok=True)
        await running.press("then this\r", "Assistant: Done.")
        running.type("/quit\r")
        assert await running.exit_code() == 0
    assert len(server.requests) == 1


async def test_the_command_that_runs_is_sent_there_listed_and_ended(claude: Claude) -> None:
    marked = mark()
    answers = (calls("bash", command=f"echo begun; sleep {marked}"), says("I go on."))
    phoenix, server = await claude(*answers)
    async with in_lines(phoenix, "--permission-mode", "auto") as running:
        await running.press("/background\r", "Nothing is running.")
        running.type("sleep\r")
        await running.until(lambda: len(alive(f"sleep\0{marked}")) == 1, "a sleeping process")
        await running.press("/background\r", "It continues in the background; /jobs lists it.")
        await running.shows("Tool bash, continues in the background as job-1", "Assistant: I go on.")
        assert "it runs on as job job-1" in result_text(server.requests[1])
        assert len(alive(f"sleep\0{marked}")) == 1
        await running.press("/background\r", "No running command can be sent to the background.")
        await running.press("/jobs\r", "Background commands:", f"1. echo begun; sleep {marked}, running ")
        await running.press("1\r", "1. Read its output", "2. Stop it")
        await running.press("1\r", f"echo begun; sleep {marked} running ", "begun\n")
        running.type("/jobs\r")
        await running.until(lambda: running.words.count("Background commands:") == 2, "the list again")
        running.type("1\r")
        await running.until(lambda: running.words.count("2. Stop it") == 2, "its actions again")
        await running.press("2\r", f"Background command ended, killed: echo begun; sleep {marked}")
        assert alive(f"sleep\0{marked}") == []
        await running.press("/jobs\r1\r", f"1. echo begun; sleep {marked}, killed after", "1. Read its output")


async def test_a_line_typed_in_the_moment_in_which_the_summary_ends_is_not_lost() -> None:
    terminal = LineTerminal(ascii_only=False)
    terminal.keyboard.is_terminal = True
    rested = asyncio.Event()
    ctx = cast("Any", SimpleNamespace(terminal=terminal, active=SimpleNamespace(rested=rested)))
    waiting = asyncio.ensure_future(next_proposal(ctx, asyncio.Queue()))
    await asyncio.sleep(0)
    rested.set()
    terminal.take_input("/state\r")
    assert await waiting is None
    assert await terminal.next_request() == LineTyped("/state")


async def test_a_text_is_put_aside_and_sent_after_a_restart(claude: Claude) -> None:
    phoenix, server = await claude(says("Hello."))
    async with in_lines(phoenix, columns=160) as running:
        await running.press("/stash an old idea\r", "Put aside. /stash lists the drafts.")
    async with in_lines(phoenix, columns=160) as running:
        await running.press("/stash\r", "1. an old idea")
        await running.press("1\r", "Enter sends it, Esc keeps it")
        await running.press(", improved\r", "Assistant: Hello.")
        await running.press("/stash\r", "No draft is put aside.")
    assert "an old idea, improved" in server.requests[0].body.decode()


KEYS = ["\x7f", "\x15", "\x17", "\x0b", "\x01", "\x05", "\x1b[C", "\x1b[D", "\x1b[3~", "\x1b[A", "\x1b[B", "\n"]


@given(st.lists(st.sampled_from([*KEYS, "a", "b c", "ä", "行", "x\ty"]), max_size=30))
def test_the_terminal_shows_the_line_and_the_cursor_whatever_was_typed(
    tmp_path_factory: pytest.TempPathFactory, keys: list[str]
) -> None:
    past = PromptHistory(tmp_path_factory.mktemp("state"), Path("/work"))
    past.add("first line")
    past.add("zweite 行")
    line = LineBuffer(past)
    screen = pyte.Screen(400, 3)
    stream = pyte.Stream(screen)
    for key in keys:
        stream.feed(line.feed(key))
        before = "".join(letter for letter in line.text[: line.cursor].replace("\n", " "))
        shown = "".join(screen.buffer[0][column].data for column in range(400)).rstrip()
        assert shown == line.text.replace("\n", " ").rstrip()
        assert screen.cursor.x == sum(2 if letter == "行" else 1 for letter in before)


def test_enter_gives_the_line_and_esc_stops_and_ctrl_d_leaves_an_empty_one() -> None:
    line = LineBuffer()
    line.feed("hi\r\x1b\x04x\x04")
    assert line.requests == [LineTyped("hi"), StopWanted(), LeaveTyped()]
    assert line.text == "x"


def test_a_paste_is_text_whatever_stands_in_it() -> None:
    line = LineBuffer()
    line.feed("\x1b[200~one\r\ntwo\x03\x1b[31m\x1b[201~")
    assert line.text == "one\n\ntwo[31m"
    assert line.requests == []


def test_replies_of_the_terminal_are_not_typed() -> None:
    line = LineBuffer()
    line.feed("\x1b]11;rgb:0000/0000/0000\x1b\\a\x1b[?62;c")
    assert line.text == "a"


def test_a_sequence_or_a_paste_that_has_not_ended_is_waited_for() -> None:
    assert find_unfinished("abc") == ""
    assert find_unfinished("abc\x1b") == "\x1b"
    assert find_unfinished("\x1b[1;5") == "\x1b[1;5"
    assert find_unfinished("\x1b[1;5C") == ""
    assert find_unfinished("\x1b[200~half") == "\x1b[200~half"
    assert find_unfinished("\x1b[200~whole\x1b[201~") == ""


def test_a_text_put_into_the_line_holds_nothing_that_acts() -> None:
    line = LineBuffer()
    assert line.put("a\x1b]0;title\x07b\x1b[2J\tc\nd") == "ab c d"
    assert line.text == "ab\tc\nd"
