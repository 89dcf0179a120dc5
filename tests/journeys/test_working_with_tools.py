"""Working with tools: approvals, stops, steering, commands sent to the background."""

from __future__ import annotations

import asyncio
import re
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli import with_claude
from tests.support.journeys import (
    Claude,
    calls,
    calls_all,
    everything_stored,
    result_text,
    results,
    rows,
    says,
    starts_to_say,
)
from tests.support.loopback import Loopback, Seen, Talk, serve
from tests.support.loopback_anthropic import refuses
from tests.support.program import CTRL_Q, ENTER, ESC, Program, alive, mark, on_screen, program
from tests.support.waiting import typing_guard

pytestmark = pytest.mark.pty


async def asked(running: Program, message: str = "Do it") -> None:
    """Send a message and wait for the question it leads to; the typing guard is over afterwards."""
    await running.ready()
    await running.send(message, "y Yes, once", "asks")
    await typing_guard()


def requests(server: Loopback) -> list[str]:
    return [seen.path for seen in server.requests]


async def test_a_command_is_asked_about_run_and_its_patch_shown(tmp_path: Path) -> None:
    edits = [{"op": "replace", "old": "one", "new": "two"}]
    answers = (
        calls("bash", command="printf 'one\\n' > a.txt; echo made $((40 + 2))"),
        calls("read_file", "toolu_2", path="a.txt"),
        calls("patch", "toolu_3", path="a.txt", edits=edits),
        says("All ", "done."),
    )
    async with serve(*answers) as server, program(with_claude(tmp_path, server.url)) as running:
        await asked(running)
        await running.shows("printf 'one\\n' > a.txt; echo made $((40 + 2))")
        assert not (tmp_path / "work" / "a.txt").exists()
        await running.press("y", "Edit a.txt?", "- one", "+ two")
        await typing_guard()
        await running.press("y", "All done.", "a.txt +1 -1", "ready")
        assert (tmp_path / "work" / "a.txt").read_text() == "two\n"
        assert "made 42" in result_text(server.requests[1])


async def test_a_letter_typed_while_the_question_appears_is_text(tmp_path: Path) -> None:
    go_on = asyncio.Event()

    async def slowly(talk: Talk) -> None:
        await go_on.wait()
        await calls("bash", command="touch made")(talk)

    async with serve(slowly, says("Fine.")) as server, on_screen(with_claude(tmp_path, server.url)) as running:
        await running.send("Do it")
        await server.wait_asked()
        running.type("well, ")  # typing begins before the question appears
        await running.shows("well,")
        go_on.set()
        await running.until(lambda: "y  Yes, once" in running.text.replace("\u00a0", " "))
        await running.press("yes, and then", "well, yes, and then")
        assert "asks" in running.text
        assert not (tmp_path / "work" / "made").exists()
        await typing_guard()
        running.type("y")  # the composer holds text: still text
        await running.shows("well, yes, and theny")
        assert len(server.requests) == 1
        running.type(b"\x7f" * 20)
        await running.lacks("well,")
        await typing_guard()
        await running.press("y", "Fine.")
        assert (tmp_path / "work" / "made").exists()


async def test_yes_for_this_conversation_asks_no_more_in_it(tmp_path: Path) -> None:
    command = "echo again"
    answers = (calls("bash", command=command), calls("bash", "toolu_2", command=command), says("Twice."))
    async with serve(*answers) as server, program(with_claude(tmp_path, server.url)) as running:
        await asked(running)
        await running.press("s", "Twice.")
        assert ["again" in result_text(seen) for seen in server.requests[1:]] == [True, True]


async def test_always_shows_its_rule_and_keeps_it_over_a_restart(claude: Claude) -> None:
    command = "echo again"
    answers = (
        calls("bash", command=command),
        says("First."),
        calls("bash", "toolu_2", command=command),
        says("Second."),
    )
    phoenix, server = await claude(*answers)
    async with program(phoenix) as running:
        await asked(running)
        await running.press("a", "bash(echo*)")
        await running.lacks("y Yes, once")
        await typing_guard()  # reading a rule takes longer
        await running.press(ENTER, "First.")
    assert "echo*" in (phoenix.home / "rules.toml").read_text()
    async with on_screen(phoenix) as running:
        await running.send("Once more", "Second.")
    assert "again" in result_text(server.requests[3])


async def test_no_and_no_with_a_reason_reach_the_model(tmp_path: Path) -> None:
    answers = (
        calls("bash", command="touch made"),
        calls("bash", "toolu_2", command="touch other"),
        says("As you like."),
    )
    async with serve(*answers) as server, program(with_claude(tmp_path, server.url)) as running:
        await asked(running)
        await running.press("n", "Denied by you", "s Yes, and this exact command in this conversation")
        await running.press("r", "No, because …")
        await running.press("use make instead", "use make instead")
        await running.press(ENTER, "As you like.")
    assert result_text(server.requests[1]) == "User denied permission to run bash."
    assert result_text(server.requests[2]) == "User denied permission to run bash: use make instead"
    assert list((tmp_path / "work").iterdir()) == []


async def test_esc_at_a_question_stops_the_run_and_every_call_has_its_result(claude: Claude) -> None:
    both = calls_all(("bash", "toolu_1", {"command": "touch made"}), ("bash", "toolu_2", {"command": "touch made"}))
    phoenix, server = await claude(both, says("Going on."))
    async with program(phoenix) as running:
        await asked(running)
        await running.press(ESC, "ready")
        await running.lacks("y Yes, once")
        await running.send("Go on", "Going on.")
    texts = {one["tool_use_id"]: str(one["content"]) for one in results_anywhere(server)}
    assert "Cancelled by user" in texts["toolu_1"]
    assert "Skipped due to cancellation" in texts["toolu_2"]
    assert rows(phoenix, "select count(*) from messages where role = 'user'")[0][0] >= 2


def results_anywhere(server: Loopback) -> list[dict[str, object]]:
    """Tool results in whatever message of the last request."""
    messages = server.requests[-1].json["messages"]
    assert isinstance(messages, list)
    return [
        block
        for message in messages
        for block in message["content"]
        if isinstance(block, dict) and block["type"] == "tool_result"
    ]


async def test_a_command_that_leaves_something_behind_says_so_and_it_is_gone(claude: Claude) -> None:
    marked = mark()
    answers = (calls("bash", command=f"nohup sleep {marked} >/dev/null 2>&1 & echo started"), says("Left."))
    phoenix, server = await claude(*answers)
    async with on_screen(phoenix, "--permission-mode", "auto") as running:
        await running.send("Start it", "Left.")
        assert alive(marked) == []
        (result,) = results(server.requests[1])
        assert "1 background process" in str(result["content"])


CTRL_B = b"\x02"


def command(marked: str) -> str:
    return f"echo begun; sleep {marked} & setsid sleep {marked} & sleep {marked}"


async def started(running: Program, marked: str) -> None:
    """Send a message; its command runs and has printed something."""
    await running.ready()
    await running.send("Sleep")
    await running.until(lambda: len(alive(f"sleep\0{marked}")) == 3, "three sleeping processes")
    await running.shows("begun", "Esc stops")


async def test_the_key_sends_it_there_and_the_agent_goes_on(claude: Claude) -> None:
    marked = mark()
    answers = (calls("bash", command=command(marked)), says("I go on."), says("Here I am."))
    phoenix, server = await claude(*answers)
    async with program(phoenix, "--permission-mode", "auto") as running:
        await started(running, marked)
        await running.press(CTRL_B, "I go on.", "in background (job-1)", "1 in background")
        told = result_text(server.requests[1])
        assert told.startswith("begun\n[sent to the background by the user after ")
        assert told.endswith("as job job-1. Read it with job_output, end it with job_kill.]")
        assert len(alive(f"sleep\0{marked}")) == 3
        await running.send("Still there?", "Here I am.", "ready")
        assert len(alive(f"sleep\0{marked}")) == 3
        await running.press(CTRL_Q, "1 background command is still active. Quit and stop it?")
        running.type("y")
        assert await running.exit_code() == 0
        assert alive(marked) == []
    statuses = rows(phoenix, "SELECT status FROM tool_calls")
    assert statuses == [("success",)]


async def test_esc_in_the_same_read_stops_the_run_alone(claude: Claude) -> None:
    marked = mark()
    phoenix, _ = await claude(calls("bash", command=command(marked)), says("Not asked."))
    async with program(phoenix, "--permission-mode", "auto") as running:
        await started(running, marked)
        await running.press(CTRL_B + ESC, "ready", "1 in background")
        assert len(alive(f"sleep\0{marked}")) == 3


async def test_the_users_own_command_goes_there_by_its_name(tmp_path: Path) -> None:
    marked = mark()
    async with on_screen(with_claude(tmp_path, "http://127.0.0.1:9"), "--permission-mode", "auto") as running:
        await running.send(f"!sleep {marked}")
        await running.until(lambda: len(alive(f"sleep\0{marked}")) == 1, "a sleeping process")
        await running.press("/background" + " ", "/background")
        await running.press(ENTER, "in background (job-1)", "1 in background", "ready")
        assert len(alive(f"sleep\0{marked}")) == 1


async def test_kill_9_takes_it_along_and_the_next_start_finds_its_result(claude: Claude) -> None:
    marked = mark()
    phoenix, server = await claude(calls("bash", command=command(marked)), says("I go on."), says("Here I am."))
    async with program(phoenix, "--permission-mode", "auto") as running:
        await started(running, marked)
        await running.press(CTRL_B, "I go on.", "1 in background", "ready")
        running.signal(signal.SIGKILL)
        await running.until(lambda: not alive(marked), "the end of every process")
    async with on_screen(phoenix, "-c", "--permission-mode", "auto") as running:
        await running.shows("I go on.", "in background (job-1)")
        assert "1 in background" not in running.text
        await running.send("Still there?", "Here I am.")
        assert len(server.requests) == 3


BUSY = refuses(529, "overloaded_error", "Overloaded", "retry-after: 4\r\n")
WRONG_KEY = refuses(401, "authentication_error", "invalid x-api-key")


async def test_esc_ends_every_process_of_a_command_and_the_next_message_works(claude: Claude) -> None:
    marked = mark()
    command = f"sleep {marked} & setsid sleep {marked} & sleep {marked}"
    answers = (calls("bash", command=command), says("Here I am."))
    phoenix, _ = await claude(*answers)
    async with on_screen(phoenix, "--permission-mode", "auto") as running:
        await running.send("Sleep")
        await running.until(lambda: len(alive(f"sleep\0{marked}")) == 3, "three sleeping processes")
        await running.shows("bash", "Esc stops")
        running.type(ESC)
        await running.until(lambda: not alive(marked), "the end of every process")
        await running.shows("ready", "stopped by you")
        await running.send("Still there?", "Here I am.")


async def test_a_stopped_command_says_how_many_processes_ended(claude: Claude) -> None:
    marked = mark()
    phoenix, _ = await claude(calls("bash", command=f"sleep {marked} & setsid sleep {marked} & sleep {marked}"))
    async with on_screen(phoenix, "--permission-mode", "auto") as running:
        await running.send("Sleep")
        await running.until(lambda: len(alive(f"sleep\0{marked}")) == 3, "three sleeping processes")
        await running.press(ESC, "stopped by you", "4 processes ended")


async def test_esc_while_text_streams_keeps_it_on_the_screen_and_out_of_the_database(claude: Claude) -> None:
    answers = (starts_to_say("A partial ", "sentence about herons "), says("A new answer."))
    phoenix, server = await claude(*answers)
    async with on_screen(phoenix) as running:
        await running.send("Tell me of birds", "A partial sentence about herons", "Esc stops")
        running.type(ESC)
        await server.wait_closed()
        await running.shows("stopped by you after", "this text is not kept · /copy")
        assert "A partial sentence about herons" in running.words
        assert "herons" not in everything_stored(phoenix)
        assert "Tell me of birds" in everything_stored(phoenix)
        await running.send("Another", "A new answer.")
        messages = server.requests[-1].json["messages"]
        assert "herons" not in str(messages)


async def test_esc_reaches_a_server_that_never_answers(tmp_path: Path) -> None:
    async with serve(lambda talk: talk.stall()) as server, on_screen(with_claude(tmp_path, server.url)) as running:
        await running.send("Hello", "thinking")
        running.type(ESC)
        await server.wait_closed()
        await running.shows("ready")


async def test_an_overloaded_server_is_asked_again_with_a_countdown(claude: Claude) -> None:
    phoenix, server = await claude(BUSY, says("At last."))
    async with program(phoenix) as running:

        def seconds_left() -> int | None:
            found = re.search(r"retrying 1/3 in (\d)\.", running.words)
            return int(found[1]) if found else None

        await running.ready()
        await running.send("Hello")
        await running.until(lambda: seconds_left() is not None, "a countdown")
        first = seconds_left()
        await running.until(lambda: seconds_left() != first, "the countdown moves, or is over")
        await running.shows("At last.")
        assert len(server.requests) == 2


async def test_esc_during_the_wait_for_another_try_ends_it(tmp_path: Path) -> None:
    slow = refuses(429, "rate_limit_error", "Slow down", "retry-after: 30\r\n")
    async with serve(slow) as server, on_screen(with_claude(tmp_path, server.url)) as running:
        await running.send("Hello", "retrying 1/3 in 2")
        await running.press(ESC, "ready")
        assert len(server.requests) == 1


async def test_a_refused_key_names_the_fix_and_enter_tries_again(claude: Claude) -> None:
    phoenix, server = await claude(WRONG_KEY, says("Welcome."))
    async with on_screen(phoenix) as running:
        await running.send("Hello", "ANTHROPIC_API_KEY")
        assert "sk-ant-planted" not in running.text
        await running.press(ENTER, "Welcome.")
        assert len(server.requests) == 2


async def test_a_message_while_it_works_is_refused_and_stays_in_the_composer(claude: Claude) -> None:
    phoenix, server = await claude(starts_to_say("Thinking about it"), says("Done now."))
    async with on_screen(phoenix) as running:
        await running.send("First", "Thinking about it")
        await running.send("Second", "Still working · Enter again queues it", "Alt+I")
        assert "┃ Second" in running.text
        assert len(server.requests) == 1
        running.type(b"\x13")  # Ctrl+S: stop and send
        await running.shows("Done now.")
        assert "Second" in str(server.requests[1].json["messages"])


ALT_I = b"\x1bi"
WAITS = "touch started; while [ ! -e go ]; do sleep 0.05; done; echo done"


def end_of(seen: Seen) -> list[str]:
    """Types and texts of the last message of a request."""
    messages: Any = seen.json["messages"]
    assert messages[-1]["role"] == "user"
    return [block.get("text", block["type"]) for block in messages[-1]["content"]]


@pytest.mark.parametrize("lines", [False, True])
async def test_a_steered_message_is_read_with_the_results_of_the_running_command(
    claude: Claude, tmp_path: Path, lines: bool
) -> None:
    phoenix, server = await claude(calls("bash", command=WAITS), says("With tabs, then."))
    work = tmp_path / "work"
    flags = ("--permission-mode", "auto", "--sandbox", "off", *(("--screen-reader",) if lines else ()))
    async with program(phoenix, *flags, rows=40, columns=120) as running:
        if lines:
            await running.shows("You:")
            running.type("go\r")
        else:
            await running.ready()
            await running.send("go")
        await running.until(lambda: (work / "started").exists())
        if lines:
            await running.press("/steer use tabs\r", "read with the next tool result")
        else:
            await running.press("use tabs", "use tabs")
            await running.press(ALT_I, "given to this turn with its next tool result")
        (work / "go").touch()
        await running.shows("With tabs, then.")
        await running.lacks("given to this turn" if not lines else "\x00")
    results, words, note, *_ = end_of(server.requests[1])
    assert (results, words) == ("tool_result", "use tabs")
    assert note.startswith("[The user wrote this message while you were working.")
    assert rows(phoenix, "SELECT count(*) FROM queued_messages") == [(0,)]
    assert rows(phoenix, "SELECT count(DISTINCT turn_id) FROM messages") == [(1,)]
