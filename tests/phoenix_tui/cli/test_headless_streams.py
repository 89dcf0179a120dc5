"""Streams of `phoenix -p` that are closed, full or slow, its lines of progress, and the tools it offers."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import AsyncGenerator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from engine.machine.messages import ToolCall, ToolResult, ToolStatus
from engine.updates import ToolEnded, ToolStarted
from phoenix_tui.cli.reporters import OnStderr
from phoenix_tui.config.rules import split_list, why_no_tools, without_effect
from tests.support.cli import Phoenix, Ran, ended, phoenix_in, with_claude
from tests.support.control_host import hosted
from tests.support.journeys import Claude, calls, picks, rows, says
from tests.support.loopback import Talk, serve
from tests.support.loopback_anthropic import plays, recording, start, stop, text, tool
from tests.support.waiting import poll
from tools.contract import ToolRequest

CLOSED = "phoenix: Stdout is closed, so the answer cannot be printed; use `> /dev/null` to discard it.\n"
FULL = "phoenix: Stdout cannot be written (No space left on device); the output is lost.\n"


async def shell(phoenix: Phoenix, script: str) -> Ran:
    """`script` by a shell, in which `P` is the program."""
    process = await asyncio.create_subprocess_exec(
        *("sh", "-c", f"P='{sys.executable} -m phoenix_tui'\n{script}"),
        cwd=phoenix.cwd,
        env=phoenix.environment,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    return await ended(process)


@pytest.mark.parametrize("command", ["-p hello", "conversations list", "--version", "doctor"])
async def test_a_closed_stdout_is_named_before_anything_is_done(tmp_path: Path, command: str) -> None:
    phoenix = phoenix_in(tmp_path)
    ran = await shell(phoenix, f"$P {command} >&-")
    assert (ran.code, ran.out, ran.err) == (2, "", CLOSED)
    assert not (phoenix.home / "phoenix.db").exists()


@pytest.mark.parametrize(
    "command",
    [
        "-p hello",
        "-p hello --output-format json",
        "-p hello --output-format stream-json",
        "conversations list",
        "config show",
        "doctor",
        "--version",
    ],
)
async def test_a_full_disk_behind_stdout_is_one_sentence(tmp_path: Path, command: str) -> None:
    ran = await shell(phoenix_in(tmp_path), f"$P {command} > /dev/full")
    assert (ran.code, ran.err) == (1, FULL)


async def test_an_answer_that_could_not_be_printed_is_kept(tmp_path: Path) -> None:
    phoenix = phoenix_in(tmp_path)
    await shell(phoenix, "$P -p hello > /dev/full")
    shown = await phoenix.run("conversations", "show", "hello")
    assert "I can look around in this folder" in shown.out


@pytest.mark.parametrize("stderr", ["2>&-", "2>/dev/full"])
async def test_without_stderr_the_answer_comes_all_the_same(tmp_path: Path, stderr: str) -> None:
    ran = await shell(phoenix_in(tmp_path), f"$P -p hello {stderr}; $P -p nonsense-that-no-guide-knows {stderr}")
    assert ran.out.startswith("Hello!")
    assert (ran.code, ran.err) == (41, "")


async def test_no_file_takes_the_place_of_a_closed_stream(tmp_path: Path) -> None:
    phoenix = phoenix_in(tmp_path)
    ran = await shell(phoenix, "$P -p hello <&- 2>&-; $P conversations list --json <&- 2>&-")
    assert ran.code == 0
    assert ran.out.count('"session_id"') == 1
    assert (phoenix.home / "phoenix.db").read_bytes()[:15] == b"SQLite format 3"


GONE = "mkdir gone; cd gone; rmdir ../gone; "


async def test_a_deleted_working_directory_is_named_with_the_fix(tmp_path: Path) -> None:
    ran = await shell(phoenix_in(tmp_path), f"{GONE} $P -p hello")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == ("phoenix: The current folder no longer exists; change to another one, or give one with --cwd.\n")


@pytest.mark.parametrize("command", ["-p hello -C /tmp", "conversations list", "models", "doctor", "config path"])
async def test_what_needs_no_working_directory_works_in_a_deleted_one(tmp_path: Path, command: str) -> None:
    ran = await shell(phoenix_in(tmp_path), f"{GONE} $P {command}")
    assert (ran.code, "Internal error" in ran.err) == (0, False)


@pytest.mark.parametrize("seconds", ["0.01", "0.00001"])
async def test_a_tiny_time_limit_blames_no_sub_agents(tmp_path: Path, seconds: str) -> None:
    ran = await phoenix_in(tmp_path).run("-p", "hello", "--timeout", seconds)
    assert (ran.code, ran.err) in {(0, ""), (53, "phoenix: Stopped at the time limit\n")}
    assert "sub-agents" not in ran.err


WORDS = [f"word {number} " for number in range(3_000)]
"""Length of an answer whose partial messages are ten times the capacity of a pipe."""
STREAM = ("--output-format", "stream-json", "--include-partial-messages")


@dataclass(frozen=True, slots=True)
class Started:
    """A run whose stdout only the test reads."""

    process: asyncio.subprocess.Process
    pipe: int
    phoenix: Phoenix

    async def ran_the_command(self) -> bool:
        """True once the file that the model asks for is there."""
        return await poll((self.phoenix.cwd / "ran").exists)

    async def rest(self) -> str:
        """All that is printed."""
        read = await asyncio.to_thread(_read_all, self.pipe)
        await self.process.wait()
        return read.decode()


@contextlib.asynccontextmanager
async def unread(folder: Path, *options: str, blocking: bool = True) -> AsyncGenerator[Started]:
    """A run that prints more than its pipe holds, has a command run, and ends with one word."""
    asks = plays(recording(start(), text(0, *WORDS), tool(1, "bash", '{"command": "touch ran"}'), stop("tool_use")))
    ends = plays(recording(start(), text(0, "Done."), stop()))
    async with serve(picks(lambda seen: ends if b"tool_result" in seen.body else asks)) as server:
        phoenix = with_claude(folder, server.url)
        reading, writing = os.pipe()
        os.set_blocking(writing, blocking)
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "phoenix_tui", "-p", "go", "--permission-mode", "auto", *options),
            cwd=phoenix.cwd,
            env=phoenix.environment,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=writing,
            stderr=asyncio.subprocess.PIPE,
        )
        os.close(writing)
        try:
            yield Started(process, reading, phoenix)
        finally:
            os.close(reading)
            if process.returncode is None:
                process.kill()
            await process.communicate()  # to the end of stderr, or the loop may close before its pipe


def _read_all(pipe: int) -> bytes:
    read = b""
    while piece := os.read(pipe, 4_096):
        read += piece
    return read


async def test_a_reader_that_waits_holds_up_neither_the_answer_nor_its_commands(tmp_path: Path) -> None:
    async with unread(tmp_path, *STREAM) as run:
        assert await run.ran_the_command()
        lines = [json.loads(line) for line in (await run.rest()).splitlines()]
    pieces = [line["event"]["delta"] for line in lines if line.get("event", {}).get("type") == "content_block_delta"]
    assert "".join(piece.get("text", "") for piece in pieces) == "".join(WORDS) + "Done."
    assert (lines[-1]["type"], lines[-1]["result"], run.process.returncode) == ("result", "Done.", 0)


async def test_a_stop_ends_the_wait_for_the_reader_and_the_run_is_stored(tmp_path: Path) -> None:
    async with unread(tmp_path, *STREAM) as run:
        assert await run.ran_the_command()
        run.process.send_signal(signal.SIGTERM)
        _, error = await asyncio.wait_for(run.process.communicate(), 20)
        shown = await run.phoenix.run("conversations", "show", "go")
    assert run.process.returncode == 143
    assert b"Did not react" not in error
    assert WORDS[-1].strip() in shown.out


async def test_a_pipe_that_does_not_block_gets_the_whole_answer(tmp_path: Path) -> None:
    async with unread(tmp_path, "--output-format", "json", blocking=False) as run:
        assert json.loads(await run.rest())["result"] == "Done."
    async with unread(tmp_path, *STREAM, blocking=False) as run:
        assert await run.ran_the_command()
        assert json.loads((await run.rest()).splitlines()[-1])["result"] == "Done."


CALL = ToolCall("c", "mcp__tracker__close", '{"issue": 12}')
BLOCKED = "A hook blocked mcp__tracker__close: guard.py: ask first"


@pytest.mark.parametrize(
    ("result", "line"),
    [
        (ToolResult("c", "done", ToolStatus.SUCCESS), "• tracker: close 12\n"),
        (ToolResult("c", BLOCKED, ToolStatus.ERROR), "✗ tracker: close 12  blocked by a hook: guard.py: ask first\n"),
    ],
)
def test_a_call_is_named_once_and_a_blocked_one_looks_unlike_one_that_ran(
    result: ToolResult, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    reporter = OnStderr()
    reporter.follow(ToolStarted(CALL, ToolRequest('tracker: close {"issue": 12}')))
    reporter.follow(ToolEnded(result, 0.1, 0))
    assert capsys.readouterr().err == line


PLAN = "# Bound the delay\n\n1. Read retry.py\n2. Change it"


async def test_the_plan_is_printed_and_nothing_else(claude: Claude) -> None:
    phoenix, server = await claude(calls("exit_plan", plan=PLAN))
    ran = await phoenix.run("-p", "--permission-mode", "plan", "Plan it")
    assert (ran.code, ran.out) == (0, f"{PLAN}\n")
    assert "refused" not in ran.err
    assert len(server.requests) == 1
    assert rows(phoenix, "SELECT plan_text, permission_mode, state FROM conversations") == [(PLAN, "plan", "idle")]


async def test_the_result_object_is_a_success_with_the_plan(tmp_path: Path) -> None:
    async with serve(calls("exit_plan", plan=PLAN)) as server:
        ran = await with_claude(tmp_path, server.url).run(
            "-p", "--permission-mode", "plan", "--output-format", "json", "Plan it"
        )
    result: dict[str, Any] = ran.json
    assert (ran.code, result["subtype"], result["is_error"]) == (0, "success", False)
    assert result["result"] == PLAN
    assert result["permission_denials"] == []


async def test_a_stream_ends_with_the_plan_as_an_answer(tmp_path: Path) -> None:
    async with serve(calls("exit_plan", plan=PLAN)) as server:
        ran = await with_claude(tmp_path, server.url).run(
            "-p", "--permission-mode", "plan", "--output-format", "stream-json", "Plan it"
        )
    lines = [json.loads(line) for line in ran.out.splitlines()]
    assert lines[-1]["result"] == PLAN
    assert [line["type"] for line in lines] == ["system", "assistant", "user", "assistant", "result"]
    assert lines[-2]["message"]["content"] == [{"type": "text", "text": PLAN}]


async def test_a_conversation_goes_on_behind_its_plan(claude: Claude) -> None:
    phoenix, server = await claude(calls("exit_plan", plan=PLAN), says("Done."))
    await phoenix.run("-p", "--permission-mode", "plan", "Plan it")
    ran = await phoenix.run("-p", "-c", "--permission-mode", "auto", "Do it")
    assert (ran.code, ran.out) == (0, "Done.\n")
    said = json.dumps(server.requests[1].json["messages"])
    assert "The plan was delivered as the result of this run." in said
    assert json.dumps(PLAN)[1:-1] in said


async def test_outside_of_plan_mode_the_tool_is_not_offered(tmp_path: Path) -> None:
    async with serve(says("Hello.")) as server:
        await with_claude(tmp_path, server.url).run("-p", "--permission-mode", "auto", "Hi")
    offered: Any = server.requests[0].json["tools"]
    names = [tool["name"] for tool in offered]
    assert "todo_write" in names
    assert "exit_plan" not in names


async def test_progress_says_how_far_the_todo_list_is(tmp_path: Path) -> None:
    todos = [
        {"content": "Read the code", "status": "completed"},
        {"content": "Run the tests", "status": "in_progress", "activeForm": "Running the tests"},
    ]
    async with serve(calls("todo_write", todos=todos), says("Done.")) as server:
        ran = await with_claude(tmp_path, server.url).run("-p", "Go")
    assert (ran.code, ran.out) == (0, "Done.\n")
    assert "• todo_write 1/2 Running the tests" in ran.err


def make(folder: Path) -> None:
    folder.mkdir(exist_ok=True)


async def result_of(home: Path, command: str, *flags: str) -> str:
    """The result that the model reads of a command."""
    make(home)
    async with serve(calls("bash", command=command), says("Done.")) as server:
        ran = await with_claude(home, server.url).run("-p", *flags, "Go")
        assert ran.code == 0, ran.err
        return json.dumps(server.requests[1].json["messages"])


async def test_a_denied_command_is_refused_in_auto_with_its_rule_and_flag(tmp_path: Path) -> None:
    flags = ("--permission-mode", "auto", "--sandbox", "off", "--disallowedTools", "WebFetch Bash(git push:*)")
    said = await result_of(tmp_path, "true && git push", *flags)
    assert "the rule bash(git push *) in --disallowedTools denies it" in said


async def test_an_allowed_command_runs_in_the_mode_that_asks_nothing_and_others_do_not(tmp_path: Path) -> None:
    flags = ("--allowed-tools", "Bash(echo hello)")
    assert "hello" in await result_of(tmp_path / "a", "echo hello", *flags)
    other = await result_of(tmp_path / "b", "echo other", *flags)
    assert "Permission mode 'deny' does not allow bash." in other


async def test_a_whole_tool_is_allowed_by_its_name_but_not_what_is_denied(tmp_path: Path) -> None:
    assert "hi 3" in await result_of(tmp_path / "a", "echo hi $((1+2))", "--allowedTools", "Bash,Read")
    denied = await result_of(tmp_path / "b", "rm x", "--allowedTools", "Bash", "--disallowedTools", "Bash(rm:*)")
    assert "denies it" in denied


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("Bsh", "there is no tool 'Bsh'"),
        ("bash(", "is neither a tool nor"),
        ("mcp__*", "has * only as in mcp__SERVER__*"),
    ],
)
async def test_a_mistake_in_a_list_is_a_usage_error(tmp_path: Path, value: str, said: str) -> None:
    async with serve() as server:
        ran = await with_claude(tmp_path, server.url).run("-p", "--disallowedTools", value, "Go")
    assert ran.code == 2
    assert said in ran.err


def test_commas_and_blanks_separate_outside_parentheses() -> None:
    text = " Read, Bash(git log:*, x) Edit,,mcp__a__*  Bash(echo (a b)) "
    assert list(split_list(text)) == ["Read", "Bash(git log:*, x)", "Edit", "mcp__a__*", "Bash(echo (a b))"]
    assert list(split_list(")),( a b")) == ["))", "( a b"]
    assert why_no_tools("--x", [text, "NotebookEdit", "web_fetch(domain:a.org)", ""]) == ""
    assert [why.partition(": ")[2] for why in without_effect(["Bash(git:*),Bash(make test)"])] == [
        "Bash(git:*): “git” can start other programs; name its command too, such as git log*."
    ]


WEB = '[web]\nsearch = "searxng"\nurl = "http://localhost:8888"\n'


@pytest.mark.parametrize(("config", "is_offered"), [("", False), (WEB, True)])
async def test_a_model_whose_provider_does_not_search_needs_a_service(
    tmp_path: Path, config: str, is_offered: bool
) -> None:
    phoenix = phoenix_in(tmp_path)
    (phoenix.home / "config.toml").write_text(config)
    ran = await phoenix.run("-p", "--output-format", "stream-json", "Hi")
    first = ran.lines[0]
    assert ("web_search" in first["tools"] or "WebSearch" in first["tools"]) is is_offered
    async with hosted(phoenix) as host:
        (first, *_) = await host.turn("Hi")
    assert ("WebSearch" in first["tools"], "Bash" in first["tools"]) == (is_offered, True)


async def test_a_model_that_its_provider_searches_for_has_it(tmp_path: Path) -> None:
    async with serve(says("Hi.")) as server:
        ran = await with_claude(tmp_path, server.url).run("-p", "--output-format", "stream-json", "Hi")
    assert "web_search" in ran.lines[0]["tools"]


VANISHED = {"type": "error", "error": {"type": "permission_error", "message": "This key was taken away."}}


async def breaks(talk: Talk) -> None:
    await talk.begin()
    await talk.send(*recording(start(), text(0, "The first ", "half")[:3], VANISHED))
    await talk.end()


async def test_text_is_what_came_and_stderr_says_why_there_is_no_more(claude: Claude) -> None:
    phoenix, _ = await claude(breaks)
    ran = await phoenix.run("-p", "Hi")
    shown = await phoenix.run("conversations", "show", (await listed(phoenix))["session_id"])
    assert (ran.code, ran.out) == (41, "The first half\n")
    assert ran.err.endswith("does not allow this: This key was taken away.\n")
    assert "The first half" in shown.out
    assert "The answer broke off here and is kept:" in shown.out


async def listed(phoenix: Phoenix) -> dict[str, str]:
    conversations: list[dict[str, str]] = (await phoenix.run("conversations", "list", "--json")).json
    return conversations[0]


@pytest.mark.parametrize("output", ["json", "stream-json"])
async def test_a_result_holds_what_came_and_is_an_error(tmp_path: Path, output: str) -> None:
    async with serve(breaks) as server:
        flags = ("--output-format", output, "--include-partial-messages")[: 3 if output == "stream-json" else 2]
        ran = await with_claude(tmp_path, server.url).run("-p", *flags, "Hi")
    result = ran.lines[-1]
    assert (ran.code, result["subtype"], result["is_error"]) == (41, "error_during_execution", True)
    assert result["result"] == "The first half"
    replies = [line["message"] for line in ran.lines if line["type"] == "assistant"]
    assert [(reply["content"], reply["stop_reason"]) for reply in replies] == (
        [([{"type": "text", "text": "The first half"}], None)] if output == "stream-json" else []
    )
    ends = [line["event"]["delta"] for line in ran.lines if line.get("event", {}).get("type") == "message_delta"]
    assert [end["stop_reason"] for end in ends] == ([None] if output == "stream-json" else [])


@pytest.mark.parametrize(
    ("reason", "said"),
    [
        ("refusal", "The model declined to answer"),
        ("content_filter", "A content filter of the provider stopped the answer"),
    ],
)
async def test_what_is_declined_after_words_is_no_success(claude: Claude, reason: str, said: str) -> None:
    phoenix, _ = await claude(plays(recording(start(), text(0, "Well, no."), stop(reason))))
    ran = await phoenix.run("-p", "Hi")
    result = (await phoenix.run("-p", "--output-format", "json", "Hi")).json
    assert (ran.code, ran.out, ran.err) == (1, "Well, no.\n", f"phoenix: {said}\n")
    assert (result["is_error"], result["result"], result["error"]) == (True, "Well, no.", said)
    assert (result["subtype"], result["stop_reason"]) == ("error_during_execution", "refusal")


async def test_words_before_a_tool_are_not_the_answer_of_a_run_that_is_declined(tmp_path: Path) -> None:
    first = recording(start(), text(0, "I look."), tool(1, "list_files", "{}"), stop("tool_use"))
    async with serve(plays(first), plays(recording(start(), stop("refusal")))) as server:
        ran = await with_claude(tmp_path, server.url).run("-p", "Hi")
    assert (ran.code, ran.out) == (1, "")


LONG = "about the queue of each peer, " * 60


async def test_a_script_hears_of_the_summary_and_gets_its_answer(claude: Claude) -> None:
    full = plays(recording(start({"input_tokens": 190_000, "output_tokens": 1}), text(0, LONG), stop()))
    summary = plays(recording(start(), text(0, "one queue for each peer"), stop()))
    phoenix, server = await claude(picks(lambda seen: summary if b"Write the summary now." in seen.body else full))
    first = await phoenix.run("-p", "-m", "anthropic/claude-haiku-4-5", "one")
    again = [await phoenix.run("-p", "-c", words) for words in ("two", "three")]
    never = replace(phoenix, extra={**phoenix.extra, "PHOENIX_COMPACT_PERCENT": "0"})
    unheard = await never.run("-p", "-c", "--output-format", "stream-json", "four")
    ran = await phoenix.run("-p", "-c", "--output-format", "stream-json", "five")
    assert [each.code for each in (first, *again, unheard, ran)] == [0, 0, 0, 0, 0]
    assert "compact_boundary" not in unheard.out
    [boundary] = [line for line in ran.lines if line.get("subtype") == "compact_boundary"]
    assert boundary["message"].startswith("Summarized 4 messages, kept 5 · 190k → ~")
    assert "one queue" not in str(boundary)
    assert ran.lines[-1]["subtype"] == "success"
    assert len(server.requests) == 6
