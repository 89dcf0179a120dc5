"""Hooks of whole programs: `phoenix -p`, lines, the screen, the doctor."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from tests.support.cli import phoenix_in, with_claude
from tests.support.hooked import group, write_hooks
from tests.support.journeys import calls, says
from tests.support.loopback import serve
from tests.support.program import program

ROWS, COLUMNS = 200, 300
"""Rows of a terminal on which nothing scrolls away or wraps during a test."""


async def test_a_run_tells_of_its_hooks_where_that_is_wanted(tmp_path: Path) -> None:
    phoenix = phoenix_in(tmp_path)
    write_hooks(phoenix.home / "hooks.json", UserPromptSubmit=f"cat > {tmp_path}/seen; echo noted")
    wanted = ("-p", "help", "--output-format", "stream-json")
    ran = await phoenix.run(*wanted, "--include-hook-events")
    begun, ended = (line for line in ran.lines if line.get("subtype", "").startswith("hook_"))
    assert (begun["subtype"], begun["hook_name"]) == ("hook_started", "UserPromptSubmit")
    assert (ended["subtype"], ended["hook_id"]) == ("hook_response", begun["hook_id"])
    assert (ended["stdout"], ended["exit_code"], ended["outcome"]) == ("noted\n", 0, "success")
    (tmp_path / "seen").unlink()
    ran = await phoenix.run(*wanted)
    assert not [line for line in ran.lines if line.get("subtype", "").startswith("hook_")]
    assert (tmp_path / "seen").exists()
    (tmp_path / "seen").unlink()
    await phoenix.run(*wanted, "--no-hooks")
    assert not (tmp_path / "seen").exists()


async def test_a_refused_prompt_ends_the_run_with_the_reason(tmp_path: Path) -> None:
    phoenix = phoenix_in(tmp_path)
    write_hooks(phoenix.home / "hooks.json", UserPromptSubmit="echo not today >&2; exit 2")
    ran = await phoenix.run("-p", "help")
    assert ran.code == 1
    assert "A hook refused this message: echo: not today" in ran.err


async def test_a_projects_hooks_need_trust_also_without_a_database(tmp_path: Path) -> None:
    phoenix = phoenix_in(tmp_path)
    write_hooks(phoenix.cwd / ".claude/settings.json", UserPromptSubmit="touch ran")
    await phoenix.run("-p", "help")
    await phoenix.run("-p", "help", "--ephemeral")
    assert not (phoenix.cwd / "ran").exists()
    await phoenix.run("-p", "help", "--trust", "--ephemeral")
    assert (phoenix.cwd / "ran").exists()
    (phoenix.cwd / "ran").unlink()
    await phoenix.run("-p", "help")
    assert not (phoenix.cwd / "ran").exists(), "an answer with --ephemeral ends with the program"


async def test_the_transcript_is_private_and_goes_with_the_conversation(tmp_path: Path) -> None:
    phoenix = phoenix_in(tmp_path)
    look = 'cp "$(python3 -c \'import json,sys; print(json.load(sys.stdin)["transcript_path"])\')" '
    write_hooks(phoenix.home / "hooks.json", Stop=f"{look} -p {tmp_path}/copy.jsonl")
    await phoenix.run("-p", "help")
    assert stat.S_IMODE((tmp_path / "copy.jsonl").stat().st_mode) == 0o600
    assert '"message":{"role":"assistant"' in (tmp_path / "copy.jsonl").read_text()
    assert list((phoenix.home / "transcripts").iterdir()) == []


async def test_the_doctor_counts_hooks_and_names_what_is_wrong(tmp_path: Path) -> None:
    phoenix = phoenix_in(tmp_path)
    write_hooks(phoenix.home / "hooks.json", Stop=[group("a.sh"), group("b.sh", "(a+)+")], Odd="x")
    ran = await phoenix.run("doctor", "--json")
    rows = [row["text"] for row in ran.json if row["topic"] == "hooks"]
    assert rows[0] == "1 hook, 1 of them yours, started in a folder of its own, since this one is not trusted: /trust"
    assert any("repeats a group" in row for row in rows)
    assert any("there is no event Odd" in row for row in rows)


@pytest.mark.pty
async def test_hooks_are_listed_and_tried_in_lines(tmp_path: Path) -> None:
    phoenix = phoenix_in(tmp_path)
    write_hooks(phoenix.home / "hooks.json", PreToolUse=[group("echo no >&2; exit 2", "Bash")])
    async with program(phoenix, "--screen-reader", rows=ROWS, columns=COLUMNS) as running:
        await running.shows("You:")
        running.type("/hooks\r")
        await running.shows("PreToolUse Bash: echo no >&2; exit 2", "Number, or Enter for none:")
        running.type("1\r")
        await running.shows("Run it with a sample input")
        running.type("2\r")
        await running.shows("echo · PreToolUse · blocked · exit 2", '"command":"echo sample"')


@pytest.mark.pty
async def test_hooks_are_listed_on_the_screen(tmp_path: Path) -> None:
    phoenix = phoenix_in(tmp_path)
    write_hooks(phoenix.home / "hooks.json", PreToolUse=[group("lint.sh", "Edit|Write")])
    async with program(phoenix, rows=24, columns=80) as running:
        await running.ready()
        running.type("/hooks\r")
        await running.shows("PreToolUse Edit|Write: lint.sh")


@pytest.mark.pty
async def test_esc_stops_a_hook_that_a_message_waits_for(tmp_path: Path) -> None:
    phoenix = phoenix_in(tmp_path)
    write_hooks(phoenix.home / "hooks.json", UserPromptSubmit="sleep 600")
    async with program(phoenix, rows=24, columns=80) as running:
        await running.ready()
        running.type("a message\r")
        await running.shows("hook sleep")
        running.type("\x1b")
        await running.shows("the message was not sent")
        await running.shows("a message")


@pytest.mark.parametrize("flags", [(), ("--json-schema", '{"type": "object"}')])
async def test_a_call_that_a_hook_puts_off_is_the_result_of_the_run(tmp_path: Path, flags: tuple[str, ...]) -> None:
    own = {"hookEventName": "PreToolUse", "permissionDecision": "defer", "permissionDecisionReason": "later"}
    async with serve(calls("bash", command="ls"), says("Never.")) as server:
        phoenix = with_claude(tmp_path, server.url)
        say = f"echo '{json.dumps({'hookSpecificOutput': own})}'"
        write_hooks(phoenix.home / "hooks.json", PreToolUse=[group(say, "Bash")])
        ran = await phoenix.run("-p", "Go", "--output-format", "json", *flags)
        assert len(server.requests) == 1
    result = ran.json
    assert (ran.code, result["subtype"], result["is_error"]) == (0, "success", False)
    assert (result["terminal_reason"], result["stop_reason"]) == ("tool_deferred", "tool_deferred")
    call = result["deferred_tool_use"]
    assert (call["name"], call["input"]) == ("bash", {"command": "ls"})
    assert call["id"]
    assert "A hook put off the call of bash: echo: later" in ran.err


async def test_failures_and_words_of_hooks_are_on_stderr_and_a_call_without_an_opinion_names_its_hook(
    tmp_path: Path,
) -> None:
    async with serve(
        calls("bash", command="echo hi"), calls("write_file", path="a", content="x"), says("Done.")
    ) as server:
        phoenix = with_claude(tmp_path, server.url)
        slow = {"type": "command", "command": "sleep 30", "timeout": 0.2}
        message = json.dumps({"systemMessage": "All\nwell."})
        write_hooks(
            phoenix.home / "hooks.json",
            PreToolUse=[group("echo oops >&2; exit 1", "Bash"), {"matcher": "Write", "hooks": [slow]}],
            PostToolUse=f"echo '{message}'",
        )
        ran = await phoenix.run("-p", "go", "--permission-mode", "auto")
    assert ran.out == "Done.\n"
    assert ran.err.splitlines() == [
        "• hook echo (PreToolUse): exit code 1: oops",
        "• bash echo hi",
        "• hook echo: All well.",
        "• hook sleep (PreToolUse): it gave no answer within 0.2 s",
        "✗ write_file a  refused: User denied permission to run write_file: this run cannot ask, and a hook wants a "
        "yes: the hook sleep gave no opinion",
        "phoenix: 1 tool call refused, as a hook wanted a yes of a person.",
    ]
