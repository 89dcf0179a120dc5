"""`--screen-reader` in a real terminal and through pipes: lines only, worktrees, stalled terminals."""

from __future__ import annotations

import asyncio
import os
import pty
import re
import signal
import sys
import termios
from pathlib import Path

import pytest

from tests.support.cli import Phoenix, phoenix_in, with_claude
from tests.support.git_repositories import commit, git, repository
from tests.support.journeys import Claude, calls, picks, rows, says, starts_to_say
from tests.support.loopback_anthropic import plays, recording, start, stop, text, tool
from tests.support.program import ESC, alive, in_lines, mark, program
from tests.support.waiting import poll
from tools.git.repository import FOLDER

DRAWS = re.compile(rb"\x1b\[(?!\?2004[hl])|[\xe2\x94\x80-\xe2\x95\xbf]{3}")
"""Any sequence but bracketed paste."""


async def test_a_conversation_in_lines_draws_nothing(claude: Claude) -> None:
    phoenix, _ = await claude(calls("bash", command="echo ho"), says("## Done\n\n**All** is `well`.\n"))
    async with program(phoenix, "--screen-reader") as running:
        await running.shows("screen reader mode (from --screen-reader)", "You:")
        await running.press("please\r", "Run a command?", "It would run: echo ho", "Answer:")
        await running.press("maybe\r", "A question is open")
        await running.press(
            "y\r", "Tool bash, finished, exit 0, 1 line", "Assistant: Heading: Done", "All is well.", "Ready"
        )
        await running.press("/output\r", "/output ho")
        running.type("/quit\r")
        assert await running.exit_code() == 0
        assert DRAWS.search(bytes(running.raw)) is None
        assert running.terminal_is_back
        assert b"phoenix --screen-reader --resume" in running.raw


async def test_esc_stops_a_command_and_ctrl_c_twice_leaves(claude: Claude) -> None:
    marked = mark()
    phoenix, _ = await claude(calls("bash", command=f"sleep {marked}"))
    async with program(phoenix, "--screen-reader", "--permission-mode", "auto") as running:
        await running.shows("You:")
        running.type("go\r")
        await running.until(lambda: bool(alive(f"sleep\0{marked}")), "the command runs")
        await running.press(ESC, "Tool bash, stopped", "Stopped by you", "Ready")
        await running.until(lambda: not alive(f"sleep\0{marked}"), "the command is gone")
        await running.press(b"\x03", "Press Ctrl+C again to quit.")
        running.type(b"\x03")
        assert await running.exit_code() == 0


async def test_what_is_half_typed_is_not_talked_over_and_comes_back_as_the_draft(claude: Claude) -> None:
    phoenix, _ = await claude(starts_to_say("Once upon a time.\n", "There was"))
    async with program(phoenix, "--screen-reader") as running:
        await running.shows("You:")
        await running.press("tell\r", "Once upon a time.")
        await running.press("unsent wo", "unsent wo")
        running.type(ESC)
        await running.press("rds\x01", "unsent words")
        running.signal(signal.SIGTERM)
        assert await running.exit_code() == 143
    async with program(phoenix, "--screen-reader", "-c") as running:
        await running.shows("Conversation: tell", "You: tell", "You: unsent words")


async def test_lines_of_a_pipe_are_taken_one_after_the_other(tmp_path: Path) -> None:
    phoenix = phoenix_in(tmp_path)
    ran = await phoenix.run("--screen-reader", stdin=b"count to 3\n/context\n/nonsens\nrun echo hi\nn\n")
    assert ran.code == 0
    assert "\x1b" not in ran.out
    said = ran.out
    order = ["You: count to 3", "Assistant: 1", "Ready", "You: /context", "tokens", "There is no /nonsens", "Answer: n"]
    places = [said.index(piece) for piece in order]
    assert places == sorted(places)


async def test_settings_and_search_are_there_too(tmp_path: Path) -> None:
    phoenix = phoenix_in(tmp_path)
    lines = "say wombat\n/config mouse false\n/config mouse maybe\n/search wombat role:user\n1\n/search role:boss\n"
    ran = await phoenix.run("--screen-reader", stdin=lines.encode())
    assert "mouse: false, from" in ran.out
    assert "'mouse' must be true or false, not 'maybe'." in ran.out
    assert "1. say wombat, user: say wombat" in ran.out
    assert "Conversation: say wombat" in ran.out
    assert "Search failed: " in ran.out
    assert (phoenix.home / "config.toml").read_text() == "mouse = false\n"


async def test_a_setting_is_chosen_changed_and_reset_by_numbers(tmp_path: Path) -> None:
    phoenix = phoenix_in(tmp_path)
    listed = (await phoenix.run("--screen-reader", stdin=b"/config all\n")).out
    number = next(line.partition(".")[0] for line in listed.splitlines() if ". max_turns: " in line)
    lines = [
        *("/config max_turns", "7"),
        *("/config mouse", "2"),
        *("/config all", number, "1", "9"),
        *("/config all", number, "2"),
        "/config nothing 1",
    ]
    said = (await phoenix.run("--screen-reader", stdin="\n".join([*lines, ""]).encode())).out
    order = [
        "max_turns: 7, from",
        "1. true (now)",
        "mouse: false, from",
        "2. Reset it: take it out of config.toml",
        "max_turns: 9, from",
        "max_turns: 0, from default.",
        "There is no setting nothing. /config all lists them.",
    ]
    place = 0
    for piece in order:
        place = said.find(piece, place)
        assert place >= 0, (piece, said)
    assert (phoenix.home / "config.toml").read_text() == "mouse = false\n"


async def test_a_setting_that_something_stronger_sets_says_so(tmp_path: Path) -> None:
    phoenix = phoenix_in(tmp_path)
    said = (await phoenix.run("--screen-reader", stdin=b"/config screen_reader false\n")).out
    assert "Saved, but --screen-reader overrides it: screen_reader stays true." in said


async def test_ascii_is_respected(tmp_path: Path) -> None:
    phoenix = phoenix_in(tmp_path, LANG="C", PYTHONIOENCODING="ascii", PYTHONCOERCECLOCALE="0", PYTHONUTF8="0")
    ran = await phoenix.run("--screen-reader", stdin="say “ä…”\n".encode())
    assert ran.code == 0
    assert ran.out.isascii()


PARAGRAPHS = [f"Paragraph {number} of a long answer.\n\n" for number in range(3_000)]
"""Ten times what a terminal keeps for its reader."""


async def test_a_run_goes_on_and_ends_though_nothing_of_it_can_be_shown(claude: Claude) -> None:
    asks = plays(
        recording(start(), text(0, *PARAGRAPHS), tool(1, "bash", '{"command": "touch ran"}'), stop("tool_use"))
    )
    ends = plays(recording(start(), text(0, "Done."), stop()))
    phoenix, _ = await claude(picks(lambda seen: ends if b"tool_result" in seen.body else asks))
    master, slave = pty.openpty()
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "phoenix_tui", "--screen-reader", "--permission-mode", "auto"),
        cwd=phoenix.cwd,
        env=phoenix.environment,
        stdin=slave,
        stdout=slave,
        stderr=asyncio.subprocess.PIPE,
    )
    os.close(slave)
    try:
        said = b""
        while b"You:" not in said:
            said += await asyncio.to_thread(os.read, master, 4_096)
        os.write(master, b"go\r")
        assert await poll((phoenix.cwd / "ran").exists)
        process.send_signal(signal.SIGTERM)
        _, error = await asyncio.wait_for(process.communicate(), 20)
    finally:
        os.close(master)
        if process.returncode is None:
            process.kill()
        await process.communicate()
    assert (process.returncode, error) == (143, b"")


async def test_a_terminal_that_was_stopped_is_started_again_by_the_reset(tmp_path: Path) -> None:
    master, slave = pty.openpty()
    termios.tcflow(slave, termios.TCOOFF)
    attributes = termios.tcgetattr(slave)
    attributes[3] &= ~(termios.ICANON | termios.ECHO)
    termios.tcsetattr(slave, termios.TCSANOW, attributes)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "phoenix_tui", "--reset-terminal"),
        env=with_claude(tmp_path, "http://127.0.0.1:9").environment,
        stdin=slave,
        stdout=slave,
    )
    try:
        assert await asyncio.wait_for(process.wait(), 20) == 0
        assert termios.tcgetattr(slave)[3] & (termios.ICANON | termios.ECHO) == termios.ICANON | termios.ECHO
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
        os.close(master)
        os.close(slave)


async def test_a_worktree_from_its_beginning_to_its_end(claude: Claude) -> None:
    phoenix, _ = await claude(says("Yes."), says("Yes."))
    repository(phoenix.cwd)
    tree = phoenix.cwd.parent / FOLDER / phoenix.cwd.name / "fix"
    async with in_lines(phoenix, columns=400) as running:
        running.type("/worktree merge\r")
        await running.shows("This conversation is in no worktree of Phoenix; name one, as in /worktree merge NAME.")
        running.type("/worktree list\r")
        await running.shows("There are no worktrees of this repository; /worktree NAME makes one.")
        await running.press("/worktree Fix --base main\r", f"Worktree fix: branch phoenix/fix of main, in {tree}.")
        await running.press("hello\r", "Assistant: Yes.")
        commit(tree, "new", "1\n")
        (tree / "left").write_text("x\n", "ascii")
        running.type("/worktree merge\r")
        await running.shows("Merge 1 commit of phoenix/fix into main? Not committed, and so not merged: 1 untracked")
        await running.press("2\r", f"main in {phoenix.cwd} was fast-forwarded to phoenix/fix. `git reset --keep")
        assert git(phoenix.cwd, "log", "-1", "--format=%s") == "change new"
        running.type("/worktree remove\r")
        await running.shows("Remove the worktree fix? It has 1 untracked file not committed; both can be restored.")
        running.type("1\r")
        await running.press("/new\r", "New conversation.")
        await running.press("/worktree list\r", "1. fix, 0 ahead of main, 0 behind, 1 untracked file")
        running.type("\r")
        await running.press("/worktree remove fix\r", "2. remove the worktree")
        await running.press("2\r", "The branch phoenix/fix is kept: /worktree fix restores all but ignored files.")
        assert not tree.is_dir()
        await running.press("/worktree fix\r", "The changes that were not committed when it was removed are back.")
        assert (tree / "left").read_text("ascii") == "x\n"
    assert rows(
        phoenix, "SELECT DISTINCT cwd FROM conversations JOIN messages ON conversation_id = conversations.id"
    ) == [(str(tree),)]


async def test_files_of_a_trusted_folder_are_asked_about_once_more(claude: Claude) -> None:
    phoenix, server = await claude(says("Yes."), says("Yes."))
    repository(phoenix.cwd)
    commit(phoenix.cwd, "AGENTS.md", "Say please.\n")
    async with in_lines(phoenix, "--trust", columns=400) as running:
        running.type("/worktree one\r")
        await running.shows("Use AGENTS.md in the worktree too? They are the same as in", "2. use them there too")
        running.type("2\r")
        await running.until(lambda: running.text.rstrip().endswith("You:"))
        await running.press("hello\r", "Assistant: Yes.")
        assert "Say please." in str(server.requests[-1].json)


async def test_a_copy_in_a_worktree(claude: Claude) -> None:
    phoenix, _ = await claude(says("Yes."), says("Yes."))
    repository(phoenix.cwd)
    tree = phoenix.cwd.parent / FOLDER / phoenix.cwd.name / "fix"
    async with in_lines(phoenix, columns=400) as running:
        await running.press("hello\r", "Assistant: Yes.")
        await running.press("/fork elsewhere\r", "/fork --worktree NAME copies it into a git worktree,")
        running.type("/fork -w Fix\r")
        await running.shows(f"Worktree fix: branch phoenix/fix of main, in {tree}.", "Forked. You are in the copy.")
    assert {str(row[0]) for row in rows(phoenix, "SELECT cwd FROM conversations")} == {str(phoenix.cwd), str(tree)}


async def test_prompts_and_outputs_are_marked_for_the_terminal(claude: Claude) -> None:
    phoenix, _ = await claude(says("Here."), says("There."))
    async with in_lines(phoenix) as running:
        await running.press("one\r", "Assistant: Here.", "Ready")
        await running.press("/images\r", "No image is attached.")
    kinds = re.findall(rb"\x1b\]133;([A-D])\x07", bytes(running.raw))
    marks = b"".join(kinds).decode()
    assert re.fullmatch(r"(AB)+C(D(AB)+C?)*", marks), marks
    assert marks.count("C") == 2
    assert marks.count("D") == 2


@pytest.mark.parametrize("term", ["dumb", "linux"])
async def test_a_terminal_that_would_print_marks_gets_none(claude: Claude, term: str) -> None:
    phoenix, _ = await claude(says("Here."))
    plain = Phoenix(phoenix.home, phoenix.cwd, {**phoenix.extra, "TERM": term})
    async with in_lines(plain) as running:
        await running.press("one\r", "Assistant: Here.", "Ready")
    assert b"\x1b]133" not in running.raw
