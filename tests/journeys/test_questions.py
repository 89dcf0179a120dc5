"""Questions of the model and of servers, and plans, answered with keys."""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli import Phoenix, with_claude
from tests.support.journeys import Claude, calls, calls_all, result_text, rows, says, starts_to_say
from tests.support.loopback import serve
from tests.support.mcp_phoenix import SERVER
from tests.support.program import ENTER, ESC, RIGHT, in_lines, on_screen, program
from tests.support.questions import COLOUR, PARTS
from tests.support.waiting import typing_guard

pytestmark = pytest.mark.pty


async def test_answers_are_chosen_with_digits_and_arrows_and_sent_with_enter(claude: Claude) -> None:
    phoenix, server = await claude(calls("ask_user", questions=[COLOUR, PARTS]), says("Done."))
    async with on_screen(phoenix, rows=24, columns=80) as running:
        await running.send("go", "asks you 2 questions", "Which colour?")
        await typing_guard()
        await running.press(RIGHT, "Which parts?")
        await running.press("1", "1 [x] API")
        await running.press("3", "3 [x] Tests")
        await running.press(ENTER, "Done.")
    assert result_text(server.requests[1]) == '"Which colour?"="not answered"\n"Which parts?"="API, Tests"'


async def test_esc_declines_and_a_second_one_stops_the_run(claude: Claude) -> None:
    phoenix, server = await claude(calls("ask_user", questions=[COLOUR]), starts_to_say("So be it."))
    async with on_screen(phoenix, rows=24, columns=80) as running:
        await running.send("go", "Esc declines to answer")
        running.type(ESC)
        await running.until(lambda: len(server.requests) == 2)
        await running.shows("So be it.")
        await typing_guard()
        await running.press(ESC, "stopped by you")
    assert result_text(server.requests[1]) == "The user declined to answer"


async def test_a_question_outlives_a_kill_and_its_answer_becomes_a_message(claude: Claude) -> None:
    phoenix, server = await claude(calls("ask_user", questions=[COLOUR]), says("Blue it is."))
    async with on_screen(phoenix, rows=24, columns=80) as running:
        await running.send("go", "Which colour?")
        running.signal(signal.SIGKILL)
    async with program(phoenix, "-c", rows=24, columns=80) as running:
        await running.shows("your answer is sent as a message", "2 ( ) Blue")
        assert rows(phoenix, "SELECT state FROM conversations") == [("idle",)]
        await typing_guard()
        await running.press("2", "Blue it is.")
        await running.lacks("your answer is sent as a message")
    messages: Any = server.requests[1].json["messages"]
    said = messages[-1]
    assert said["role"] == "user"
    assert '"Which colour?"="Blue"' in [block["text"] for block in said["content"] if block["type"] == "text"]


AUTO = ("--permission-mode", "auto")


async def with_server(folder: Path, url: str) -> Phoenix:
    """A Phoenix that knows the tools of a server, so that the first request has them."""
    phoenix = with_claude(folder, url)
    added = await phoenix.run("mcp", "add-json", "kinds", json.dumps(SERVER))
    tried = await phoenix.run("mcp", "test")
    assert (added.code, tried.code) == (0, 0), added.err + tried.err
    return phoenix


async def test_own_words_on_the_screen_reach_the_server_and_esc_cancels(tmp_path: Path) -> None:
    answers = calls("mcp__kinds__form"), says("Hello Ada."), calls("mcp__kinds__form", "toolu_2"), says("Bye.")
    async with serve(*answers) as server, program(await with_server(tmp_path, server.url), *AUTO) as running:
        await running.shows("ready")
        await running.press("go\r", "MCP server kinds asks you", "Your name?", "Give it no passwords", "own words")
        await running.shows("Esc puts")
        await running.press("o", "Enter takes your words")
        await running.press("Ada\r", "Hello Ada.", "○ ready")
        await running.press("again\r", "Esc puts")
        await running.press(ESC, "Bye.")
    assert result_text(server.requests[1]) == "accept {'name': 'Ada'}"
    assert result_text(server.requests[3]) == "cancel None"


async def test_lines_ask_and_take_the_answer(tmp_path: Path) -> None:
    async with (
        serve(calls("mcp__kinds__form"), says("Hello.")) as server,
        in_lines(await with_server(tmp_path, server.url), *AUTO, columns=200) as running,
    ):
        await running.press("go\r", "MCP server kinds asks you.", "Your name?", "1. Leave it out")
        await running.press("Ada\r", "Assistant: Hello.")
    assert result_text(server.requests[1]) == "accept {'name': 'Ada'}"


async def test_without_a_user_the_server_is_not_kept_waiting(tmp_path: Path) -> None:
    async with serve(calls("mcp__kinds__form"), says("Done.")) as server:
        phoenix = await with_server(tmp_path, server.url)
        ran = await phoenix.run("-p", *AUTO, "go")
    assert ran.code == 0, ran.err
    assert "elicitation" in result_text(server.requests[1]).lower()


CHEAP = {"PHOENIX_CHEAP_MODEL": "anthropic/claude-haiku-5-5"}


async def with_sampling_server(folder: Path, url: str) -> Phoenix:
    """A Phoenix that knows the tools of a server that may sample."""
    phoenix = with_claude(folder, url, **CHEAP)
    added = await phoenix.run("mcp", "add-json", "kinds", json.dumps(SERVER | {"sampling": "ask"}))
    shown = await phoenix.run("mcp", "test", "--json")
    assert (added.code, shown.code) == (0, 0), added.err + shown.err
    assert shown.json[0]["sampling"] == "ask"
    return phoenix


async def test_a_yes_on_the_screen_lets_the_cheap_model_answer_and_cost_names_it(tmp_path: Path) -> None:
    answers = calls("mcp__kinds__sample", text="Name a colour."), says("Blue."), says("It is blue.")
    async with serve(*answers) as server:
        phoenix = await with_sampling_server(tmp_path, server.url)
        async with program(phoenix, *AUTO) as running:
            await running.shows("ready")
            running.type("My password is swordfish.\r")
            await running.shows("MCP server kinds asks you", "at most 10 tokens", "Name a colour.")
            await running.shows("Esc puts")
            await running.press("1", "It is blue.")
            await running.press("/cost\r", "MCP sampling: 1 call")
        asked = server.requests[1].json
        stored = rows(phoenix, "SELECT purpose, input_tokens, output_tokens FROM model_calls ORDER BY rowid")
        totals = json.loads(rows(phoenix, "SELECT totals_json FROM conversations")[0][0])
    assert (asked["model"], asked["max_tokens"]) == ("claude-haiku-5-5", 10)
    assert "swordfish" not in json.dumps(asked)
    assert '"text":"Blue."' in result_text(server.requests[2])
    assert stored == [("reply", 10, 5), ("sampling", 10, 5), ("reply", 10, 5)]
    assert (totals["input_tokens"], totals["output_tokens"]) == (30, 15)


async def test_without_a_user_the_server_is_not_told_that_it_may_sample(tmp_path: Path) -> None:
    async with serve(calls("mcp__kinds__sample"), says("Done.")) as server:
        phoenix = await with_sampling_server(tmp_path, server.url)
        ran = await phoenix.run("-p", *AUTO, "go")
    assert ran.code == 0, ran.err
    assert "Sampling not supported" in result_text(server.requests[1])


PLAN = "# Bound the delay\n\nRead **retry.py**, then:\n\n- change `delay`"
CTRL_G, CTRL_S, CTRL_T, SHIFT_TAB = b"\x07", b"\x13", b"\x14", b"\x1b[Z"


async def test_a_plan_is_made_changed_in_the_editor_and_carried_out(claude: Claude, tmp_path: Path) -> None:
    editor = tmp_path / "editor.py"
    editor.write_text("import sys; p = sys.argv[1]; open(p, 'a').write('\\n- run the tests')")
    todos = [{"content": "Change delay", "status": "in_progress"}, {"content": "Run the tests", "status": "pending"}]
    edit = {"path": "a.txt", "content": "bounded\n"}
    answers = (
        calls("exit_plan", plan=PLAN),
        calls_all(("todo_write", "toolu_2", {"todos": todos}), ("write_file", "toolu_3", edit)),
        says("On it."),
    )
    phoenix, server = await claude(*answers, EDITOR=f"{sys.executable} {editor}")
    async with on_screen(phoenix, rows=40, columns=120) as running:
        for mode in (" edits ·", " plan ·"):
            await running.press(SHIFT_TAB, mode)
        await running.send("Bound it", "Carry out this plan?", "• change delay", "Yes, and accept edits")
        await typing_guard()
        await running.press("e", "Plan", "# Bound the delay")
        await running.press(CTRL_G, "• run the tests")
        await typing_guard()
        await running.press("3", "On it.", "todo 0/2 Change delay")
        running.type(CTRL_T)
        # The hint comes with the focus: without it Esc and the "/" behind it would be one write, which is Alt+/.
        await running.shows("1 ▸ Change delay", "2 ○ Run the tests", "Space done")
        running.type(ESC)
        await running.lacks("Space done")
        await running.send("/plan", "Approved plan")
    assert (tmp_path / "work" / "a.txt").read_text() == "bounded\n"
    assert "this is what holds" in result_text(server.requests[1])
    stored = f"{PLAN}\n- run the tests"
    assert rows(phoenix, "SELECT plan_text, permission_mode FROM conversations") == [(stored, "accept-edits")]


async def test_a_plan_that_waits_survives_a_kill_as_an_unanswered_call(claude: Claude) -> None:
    phoenix, server = await claude(calls("exit_plan", plan=PLAN), says("Fine."))
    async with on_screen(phoenix, "--permission-mode", "plan", rows=40, columns=120) as running:
        await running.send("Bound it", "Carry out this plan?")
        running.signal(signal.SIGKILL)
    assert rows(phoenix, "SELECT plan_text, permission_mode FROM conversations") == [("", "plan")]
    async with on_screen(phoenix, "-c", rows=40, columns=120) as running:
        await running.shows("Enter resumes")
        await running.press(ENTER, "Fine.")
    assert "[Tool execution interrupted by restart]" in server.requests[1].body.decode()
