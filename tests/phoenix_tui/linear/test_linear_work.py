"""All the work in lines: images, the queue, the context, finding, going back, approvals elsewhere, export."""

from __future__ import annotations

import asyncio
import re
from functools import partial
from pathlib import Path

from tests.support.cli import phoenix_in, with_claude
from tests.support.journeys import calls, rows, says, starts_to_say
from tests.support.loopback import Talk, serve
from tests.support.loopback_anthropic import TINY_PNG
from tests.support.program import ESC, Program, program

ROWS = 200
"""Rows of a terminal on which nothing scrolls away during a test."""


async def test_an_image_is_attached_by_its_path_said_and_sent(tmp_path: Path) -> None:
    shot = tmp_path / "a shot.png"
    shot.write_bytes(TINY_PNG)
    async with (
        serve(says("A dot.")) as server,
        program(with_claude(tmp_path, server.url), "--screen-reader", rows=ROWS) as running,
    ):
        await running.shows("You:")
        running.type("/images\r")
        await running.shows("No image is attached.")
        running.paste(f"'{shot}'")
        running.type("\r")
        await running.shows("Attached 1: image, 1 by 1, 1 kB, png, from a shot.png.")
        running.type(f"/attach {shot}\r")
        await running.shows("Attached 2:")
        running.type("/images\r")
        await running.shows(
            "2 images attached to the next message.", "1. image, 1 by 1, 1 kB, png", "Number, or Enter for none:"
        )
        running.type("2\r")
        await running.shows("Removed. 1 image attached.")
        running.type("/images 1\r")
        await running.shows("Image 1: image, 1 by 1, 1 kB, png", "1. Keep it", "2. Remove it")
        running.type("1\r")
        await running.until(lambda: running.words.endswith("You:"), "the image is kept")
        running.type("/image\r")
        await running.shows("Image file:")
        running.type("nowhere.png\r")
        await running.shows("Refused: nowhere.png cannot be read: No such file or directory.")
        running.type("/image nothing.png\r")
        await running.shows("Refused: nothing.png cannot be read: No such file or directory.")
        running.type("what is it\r")
        await running.shows("Assistant: A dot.")
        running.type(f"/images\r/read {'9' * 5_000}\r")
        await running.shows("Image, 1 by 1.")
    assert server.requests[0].body.count(b'"type":"image"') == 1


async def test_a_message_sent_while_the_agent_works_is_queued_changed_and_sent(tmp_path: Path) -> None:
    async with (
        serve(starts_to_say("Once.\n"), says("Both done.")) as server,
        program(with_claude(tmp_path, server.url), "--screen-reader", rows=ROWS) as running,
    ):
        await running.shows("You:")
        running.type("tell\r")
        await running.shows("Assistant: Once.")
        running.type("second\r")
        await running.shows("Queued as number 1")
        running.type("/queue third\r")
        await running.shows("Queued as number 2")
        running.type("/queue\r")
        await running.shows("2 messages waiting.", "1. second", "2. third", "Number, or Enter for none:")
        running.type("2\r")
        await running.shows("third:", "3. Remove it")
        running.type("3\r")
        await running.shows("Removed.")
        running.type("/queue\r")
        await running.shows("1 message waiting.")
        running.type("1\r")
        await running.shows("second:")
        running.type("2\r")
        await running.shows("New text: second")
        running.type(" thing\r")
        await running.shows("Changed.")
        running.type(ESC)
        await running.shows("Stopped by you", "1 message paused.")
        running.type("\r")
        await running.shows("You: second thing", "Assistant: Both done.", "Ready")


async def test_another_conversation_that_asks_is_said_and_answered_from_here(tmp_path: Path) -> None:
    gate = asyncio.Event()

    async def later(talk: Talk) -> None:
        await gate.wait()
        await calls("bash", command="echo ho")(talk)

    async with (
        serve(later, says("Done there.")) as server,
        program(with_claude(tmp_path, server.url), "--screen-reader", rows=ROWS) as running,
    ):
        await running.shows("You:")
        running.type("please\r")
        await running.shows("Assistant is working.")
        running.type("/new\r")
        await running.shows("New conversation.")
        gate.set()
        await running.shows("Another conversation, please, asks: bash, echo ho. /approvals answers it.")
        running.type("/approvals\r")
        await running.shows("Pending approvals:", "1. please: bash, echo ho")
        running.type("1\r")
        await running.shows("It would run: echo ho", "Answer, or Enter for later:")
        running.type("y\r")
        await running.shows("Answered.")
        await running.until(lambda: len(server.requests) == 2, "the run goes on")
        running.type("/approvals\r")
        await running.shows("No approvals are pending.")


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
    async with program(phoenix, "--screen-reader", "--permission-mode", "auto", rows=ROWS) as running:
        await running.shows("You:")
        running.type("run echo one > made.txt\r")
        await running.shows("Ready, after")
        assert made.exists()
        running.type("/diff\r")
        await running.shows("1. all of this conversation, 1 file", "Number, or Enter for none:")
        running.type("1\r")
        await running.shows("1. New made.txt, 1 line added, 0 removed")
        running.type("1\r")
        await running.shows("@@ -0,0 +1 @@", "+one")
        running.type("\r/prompt\r")
        await running.shows("You are Phoenix", "Permission mode: auto.")
        running.type("/rewind\r")
        await running.shows("1. run echo one > made.txt", "1 file changed", "Number, or Enter for none:")
        running.type("1\r")
        await running.shows("Delete made.txt", "Rewind what?", "1. Conversation and files", "3. Files only")
        running.type("1\r")
        await running.shows(
            "1 file restored. You are in a new branch; /undo returns to the previous one.",
            "You: run echo one > made.txt",
        )
        assert not made.exists()
        running.type("\x15/undo\r")
        await running.shows("Create made.txt")
        await running.until(lambda: running.words.count("1 file restored.") == 2, "it is undone")
        assert made.read_text() == "one\n"


async def test_a_summary_is_read_out_and_decided_on(tmp_path: Path) -> None:
    answers = [says("word " * 200) for _ in range(5)]
    async with serve(*answers, says("NO_REPLY"), says("First plan."), says("Second plan.")) as server:
        phoenix = with_claude(tmp_path, server.url)
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


async def test_esc_stops_a_summary_that_is_being_written(tmp_path: Path) -> None:
    answers = [says("word " * 200) for _ in range(5)]
    async with (
        serve(*answers, starts_to_say("First")) as server,
        program(with_claude(tmp_path, server.url), "--screen-reader", rows=ROWS) as running,
    ):
        await running.shows("You:")
        for number in range(5):
            running.type(f"message {number}\r")
            await running.until(partial(answered, running, number + 1), "an answer")
        running.type("/compact\r")
        await running.until(lambda: len(server.requests) == 6, "the request for a summary")
        running.type("what\r")
        await running.shows("Writing the summary. Esc stops.")
        running.type(ESC)
        await running.until(lambda: running.text.count("Ready, after") == 6, "it is stopped")
        running.type("/state\r")
        await running.shows("Ready. 0 conversations working in all.")


async def test_the_help_lists_every_command_and_nothing_else(tmp_path: Path) -> None:
    said = (await phoenix_in(tmp_path).run("--screen-reader", stdin=b"/help\n")).out
    listed = re.findall(r"^/(\w+): .+\.$", said, re.MULTILINE)
    wanted = {"image", "paste", "images", "queue", "context", "compact", "find", "search", "rewind", "undo"}
    assert wanted | {"branches", "approvals", "export", "jobs"} <= set(listed)
    assert len(listed) == len(set(listed))
    for name in ("image", "rewind", "approvals"):
        assert f"There is no /{name}" not in said


async def test_nothing_in_a_file_acts_on_the_terminal_as_its_text_is_read_out(tmp_path: Path) -> None:
    async with serve(calls("read_file", path="hostile.txt"), says("Read.")) as server:
        phoenix = with_claude(tmp_path, server.url)
        (phoenix.cwd / "hostile.txt").write_bytes(b"one\x1b]0;owned\x07 and\x1b[2J two\n")
        async with program(phoenix, "--screen-reader", rows=ROWS) as running:
            await running.shows("You:")
            running.type("go\r")
            await running.shows("Assistant: Read.")
            running.type("/output\r")
            await running.shows("one and two")
            assert b"owned" not in running.raw
            assert b"\x1b[2J" not in running.raw


async def test_a_conversation_at_rest_is_put_away_and_one_that_runs_is_not(tmp_path: Path) -> None:
    async with (
        serve(says("One."), starts_to_say("Two.\n")) as server,
        program(with_claude(tmp_path, server.url), "--screen-reader", rows=ROWS) as running,
    ):
        await running.shows("You:")
        running.type("first\r")
        await running.shows("Ready, after")
        running.type("/archive\r")
        await running.shows("Archived.")
        running.type("/delete\r")
        await running.shows("No conversation is open.")
        running.type("second\r")
        await running.shows("Assistant: Two.")
        running.type("/delete\r")
        await running.shows("The conversation is running; stop it first.")
        running.type(ESC)
        await running.shows("Stopped by you")
        running.type("/delete\r")
        await running.shows("Moved to the trash.")


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
