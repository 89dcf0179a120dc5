"""`phoenix -p` as a script meets it: the real program against the guide and a loopback Claude."""

from __future__ import annotations

import asyncio
import signal
import sqlite3
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli import ended, phoenix_in, with_claude
from tests.support.environment_note import without_note
from tests.support.journeys import Claude
from tests.support.loopback import Talk, serve
from tests.support.loopback_anthropic import TINY_PNG, plays, recording, refuses, start, stop, text, tool
from tests.support.waiting import poll_blocking

USAGE = {"input_tokens": 10, "output_tokens": 5, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}
HELLO = recording(start(), text(0, "Hel", "lo."), stop())


def bash(command: str) -> list[bytes]:
    return recording(start(), tool(0, "bash", f'{{"command": "{command}"}}'), stop("tool_use"))


async def stalls(talk: Talk) -> None:
    await talk.begin()
    await talk.send(*recording(start(), text(0, "Once")))
    await talk.stall()


def only_state(home: Path) -> str:
    connection = sqlite3.connect(home / "phoenix.db")
    try:
        return str(connection.execute("SELECT state FROM conversations").fetchone()[0])
    finally:
        connection.close()


def wait_for_content(path: Path) -> str:
    assert poll_blocking(lambda: path.exists() and path.read_text().strip()), path
    return path.read_text().strip()


def is_alive(pid: str) -> bool:
    return Path(f"/proc/{pid}").exists()


async def test_text_is_the_answer_and_nothing_else(tmp_path: Path) -> None:
    async with serve(plays(HELLO)) as server:
        ran = await with_claude(tmp_path, server.url).run("-p", "Hi")
    assert (ran.code, ran.out, ran.err) == (0, "Hello.\n", "")


async def test_json_is_one_result_object(tmp_path: Path) -> None:
    async with serve(plays(HELLO)) as server:
        ran = await with_claude(tmp_path, server.url).run("-p", "--output-format", "json", "Hi")
    result: dict[str, Any] = ran.json
    for key in ("duration_ms", "duration_api_ms", "session_id", "task_id", "uuid", "modelUsage"):
        assert result.pop(key)
    assert result == {
        "type": "result",
        "subtype": "success",
        "is_error": False,
        "num_turns": 1,
        "total_turns": 1,
        "result": "Hello.",
        "stop_reason": "end_turn",
        "terminal_reason": "completed",
        "total_cost_usd": pytest.approx(0.00007),
        "usage": USAGE,
        "total_usage": USAGE,
        "model_usage": {"claude-sonnet-5-5": USAGE},
        "model": "anthropic/claude-sonnet-5-5",
        "permission_denials": [],
        "agents": [],
    }


async def test_a_stream_begins_with_init_and_ends_with_the_result(claude: Claude) -> None:
    phoenix, _ = await claude(plays(bash("echo hi")), plays(HELLO))
    ran = await phoenix.run("-p", "--output-format", "stream-json", "--permission-mode", "auto", "Hi")
    init, asked, answered, said, result = ran.lines
    session = init["session_id"]
    assert (init["type"], init["subtype"], init["cwd"]) == ("system", "init", str(phoenix.cwd))
    assert (init["model"], init["permission_mode"]) == ("anthropic/claude-sonnet-5-5", "auto")
    assert "bash" in init["tools"]
    assert asked["message"]["content"] == [
        {"type": "tool_use", "id": "toolu_1", "name": "bash", "input": {"command": "echo hi"}}
    ]
    assert (asked["type"], asked["parent_tool_use_id"], asked["session_id"]) == ("assistant", None, session)
    assert (asked["message"]["role"], asked["message"]["stop_reason"]) == ("assistant", "tool_use")
    [block] = answered["message"]["content"]
    assert (answered["type"], answered["message"]["role"]) == ("user", "user")
    assert (block["type"], block["tool_use_id"], block["is_error"]) == ("tool_result", "toolu_1", False)
    assert "hi" in block["content"][0]["text"]
    assert said["message"]["content"] == [{"type": "text", "text": "Hello."}]
    assert said["message"]["usage"] == USAGE
    assert (result["type"], result["result"], result["num_turns"]) == ("result", "Hello.", 2)


async def test_partial_messages_are_events_of_the_messages_api(tmp_path: Path) -> None:
    async with serve(plays(HELLO)) as server:
        ran = await with_claude(tmp_path, server.url).run(
            "-p", "--output-format", "stream-json", "--include-partial-messages", "Hi"
        )
    events = [line["event"] for line in ran.lines if line["type"] == "stream_event"]
    kinds = [event["type"] for event in events]
    assert kinds[:2] == ["message_start", "content_block_start"]
    assert kinds[-3:] == ["content_block_stop", "message_delta", "message_stop"]
    assert "".join(event["delta"]["text"] for event in events if event["type"] == "content_block_delta") == "Hello."
    assert [line["type"] for line in ran.lines][-2:] == ["assistant", "result"]


async def test_a_question_counts_as_deny(claude: Claude) -> None:
    phoenix, server = await claude(plays(bash("touch made")), plays(HELLO))
    ran = await phoenix.run("-p", "--output-format", "json", "--permission-mode", "ask", "Hi")
    assert ran.code == 0
    assert ran.json["permission_denials"] == [
        {"tool_name": "bash", "tool_use_id": "toolu_1", "tool_input": {"command": "touch made"}}
    ]
    assert not (phoenix.cwd / "made").exists()
    assert b"User denied permission to run bash" in server.requests[-1].body


@pytest.mark.parametrize(
    ("mode", "sandbox", "ways"),
    [
        ("auto", "workspace", b"this run cannot ask; --sandbox off lets calls leave the sandbox"),
        ("ask", "workspace", b"--permission-mode auto runs commands in the sandbox, --sandbox off without it"),
        ("ask", "off", b"this run cannot ask; use --permission-mode accept-edits or auto"),
    ],
)
async def test_a_refusal_names_what_would_allow_the_call(claude: Claude, mode: str, sandbox: str, ways: bytes) -> None:
    phoenix, server = await claude(plays(bash("docker ps")), plays(HELLO))
    flags = ("--permission-mode", mode, "--sandbox", sandbox)
    ran = await phoenix.run("-p", "--output-format", "json", *flags, "Hi")
    assert (ran.code, len(ran.json["permission_denials"])) == (0, 1)
    assert ways in server.requests[-1].body


@pytest.mark.parametrize(("mode", "mark", "told"), [("deny", "✗", 1), ("auto", "•", 0)])
async def test_what_was_refused_does_not_look_as_if_it_had_run(tmp_path: Path, mode: str, mark: str, told: int) -> None:
    async with serve(plays(bash("touch made")), plays(HELLO)) as server:
        ran = await with_claude(tmp_path, server.url).run("-p", "--permission-mode", mode, "Hi")
    first, *rest = ran.err.splitlines()
    assert first.startswith(f"{mark} bash touch made")
    assert ("refused: Permission mode 'deny' does not allow bash." in first) is (mode == "deny")
    assert len(rest) == told
    assert all("1 tool call refused; `--permission-mode auto`" in line for line in rest)


async def test_the_mode_is_deny_unless_given(claude: Claude) -> None:
    phoenix, server = await claude(plays(bash("touch made")), plays(HELLO))
    ran = await phoenix.run("-p", "--output-format", "json", "Hi")
    assert len(ran.json["permission_denials"]) == 1
    assert b"Permission mode 'deny' does not allow bash." in server.requests[-1].body


async def test_piped_stdin_follows_the_prompt(claude: Claude) -> None:
    phoenix, server = await claude(plays(HELLO))
    await phoenix.run("-p", "Explain:", stdin=b"the text\n")
    await phoenix.run("-p", "-", stdin=b"only this")
    asked: list[Any] = [request.json["messages"] for request in server.requests]
    assert [messages[0]["content"][0]["text"] for messages in asked] == ["Explain:\n\nthe text", "only this"]


async def test_no_prompt_at_all_is_bad_usage(tmp_path: Path) -> None:
    ran = await phoenix_in(tmp_path).run("-p")
    assert (ran.code, ran.err) == (2, "phoenix: No prompt was given; write one after -p or pipe it in.\n")


async def test_caps_exit_53_with_their_subtype(claude: Claude) -> None:
    phoenix, _ = await claude(plays(bash("true")))
    turns = await phoenix.run("-p", "--output-format", "json", "--max-turns", "1", "--permission-mode", "auto", "x")
    budget = await phoenix.run(
        "-p", "--output-format", "json", "--max-budget-usd", "0.00001", "--permission-mode", "auto", "x"
    )
    assert (turns.code, turns.json["subtype"], turns.json["num_turns"]) == (53, "error_max_turns", 1)
    assert (budget.code, budget.json["subtype"]) == (53, "error_max_budget_usd")


async def test_a_time_limit_exits_53(tmp_path: Path) -> None:
    async with serve(stalls) as server:
        ran = await with_claude(tmp_path, server.url).run("-p", "--output-format", "json", "--timeout", "0.3", "x")
    assert (ran.code, ran.json["subtype"], ran.json["is_error"]) == (53, "error_timeout", True)


async def test_an_unknown_price_and_a_budget_is_bad_usage(claude: Claude) -> None:
    phoenix, server = await claude(plays(HELLO))
    ran = await phoenix.run("-p", "--max-budget-usd", "1", "-m", "anthropic/claude-nobody-knows", "x")
    assert (ran.code, server.requests) == (2, [])
    assert "price of anthropic/claude-nobody-knows is unknown" in ran.err


async def test_bad_credentials_exit_41(tmp_path: Path) -> None:
    async with serve(refuses(401, "authentication_error", "invalid x-api-key")) as server:
        refused = await with_claude(tmp_path, server.url).run("-p", "x")
    missing = await phoenix_in(tmp_path).run("-p", "-m", "anthropic", "x")
    assert (refused.code, refused.out) == (41, "")
    assert (missing.code, missing.out) == (41, "")
    assert "ANTHROPIC_API_KEY" in missing.err
    assert "planted" not in refused.err


async def test_the_guide_answers_what_it_understands_and_else_names_the_ways_out(tmp_path: Path) -> None:
    phoenix = phoenix_in(tmp_path)
    understood = await phoenix.run("-p", "hello")
    assert (understood.code, understood.err) == (0, "")
    ran = await phoenix.run("-p", "Why is the sky blue?")
    assert (ran.code, ran.out) == (41, "")
    assert "ANTHROPIC_API_KEY" in ran.err
    assert "phoenix model install" in ran.err


@pytest.mark.slow
async def test_a_service_that_stays_overloaded_exits_75(tmp_path: Path) -> None:
    async with serve(refuses(529, "overloaded_error", "Overloaded")) as server:
        ran = await with_claude(tmp_path, server.url).run("-p", "--output-format", "stream-json", "x")
    retries = [line for line in ran.lines if line.get("subtype") == "api_retry"]
    assert [(retry["attempt"], retry["max_retries"], retry["delay_ms"]) for retry in retries] == [
        (1, 3, 1000),
        (2, 3, 2000),
        (3, 3, 4000),
    ]
    assert (ran.code, ran.lines[-1]["subtype"]) == (75, "error_during_execution")
    assert "Failed after 3 retries" in ran.err
    assert "Press Enter" not in ran.err


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
async def test_a_signal_ends_the_run_and_leaves_a_valid_conversation(
    claude: Claude, number: signal.Signals, code: int
) -> None:
    phoenix, server = await claude(stalls, plays(HELLO))
    process = await phoenix.start("-p", "--output-format", "json", "Tell")
    await server.wait_asked()
    process.send_signal(number)
    ran = await ended(process)
    assert (ran.code, ran.json["subtype"]) == (code, "cancelled")
    assert only_state(phoenix.home) == "idle"
    again = await phoenix.run("-p", "-c", "Go on")
    assert (again.code, again.out) == (0, "Hello.\n")


async def test_a_signal_takes_the_command_with_it(claude: Claude) -> None:
    phoenix, _ = await claude(plays(bash("echo $$ > pid; sleep 60")))
    process = await phoenix.start("-p", "--permission-mode", "auto", "x")
    pid_file = phoenix.cwd / "pid"
    pid = await asyncio.to_thread(wait_for_content, pid_file)
    process.send_signal(signal.SIGTERM)
    ran = await ended(process)
    assert ran.code == 143
    assert not is_alive(pid)


async def test_nobody_reading_stdout_stops_the_run(claude: Claude) -> None:
    phoenix, _ = await claude(plays(bash("true")))
    command = f"{sys.executable} -m phoenix_tui -p --output-format stream-json --permission-mode auto x"
    shell = await asyncio.create_subprocess_exec(
        *("bash", "-c", f"{command} | head -n 1 > first; echo ${{PIPESTATUS[0]}}"),
        cwd=phoenix.cwd,
        env=phoenix.environment,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    ran = await ended(shell)
    assert (ran.out, ran.err) == ("1\n", "")
    assert only_state(phoenix.home) == "idle"


async def test_images_are_checked_before_anything_is_sent(claude: Claude) -> None:
    phoenix, server = await claude(plays(HELLO))
    (phoenix.cwd / "bad.png").write_bytes(b"\x89PNG no image")
    bad = await phoenix.run("-p", "-i", "bad.png", "x")
    missing = await phoenix.run("-p", "-i", "nowhere.png", "x")
    assert (bad.code, missing.code, server.requests) == (2, 2, [])
    assert "nowhere.png cannot be read" in missing.err
    (phoenix.cwd / "good.png").write_bytes(TINY_PNG)
    good = await phoenix.run("-p", "-i", "good.png", "x")
    assert good.code == 0
    assert b'"type":"image"' in server.requests[0].body


async def test_an_image_alone_asks_what_is_in_it(claude: Claude) -> None:
    phoenix, server = await claude(plays(HELLO))
    (phoenix.cwd / "dot.png").write_bytes(TINY_PNG)
    alone = await phoenix.run("-p", "-i", "dot.png")
    two = await phoenix.run("-p", "-i", "dot.png", "-i", "dot.png")
    piped = await phoenix.run("-p", "-i", "dot.png", stdin=b"How large is it?")
    assert [each.code for each in (alone, two, piped)] == [0, 0, 0]
    asked: list[Any] = [request.json["messages"] for request in server.requests]
    assert [without_note(messages[0]["content"])[-1]["text"] for messages in asked] == [
        "Describe what is in this image.",
        "Describe what is in these images.",
        "How large is it?",
    ]


async def test_a_conversation_goes_on_by_folder_prefix_title_and_as_a_copy(tmp_path: Path) -> None:
    phoenix = phoenix_in(tmp_path)
    first = (await phoenix.run("-p", "--output-format", "json", "-n", "My talk", "hello")).json["session_id"]
    assert (await phoenix.run("-p", "--output-format", "json", "-c", "hello")).json["session_id"] == first
    assert (await phoenix.run("-p", "--output-format", "json", "-r", first[:6], "hello")).json["session_id"] == first
    assert (await phoenix.run("-p", "--output-format", "json", "-r", "My talk", "hello")).json["session_id"] == first
    copy = (await phoenix.run("-p", "--output-format", "json", "-r", first, "--fork", "hello")).json["session_id"]
    assert copy != first
    nothing = await phoenix.run("-p", "-r", "no such", "hello")
    assert nothing.code == 2
    assert "No conversation matches 'no such'" in nothing.err
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    none_here = await phoenix.run("-p", "-c", "-C", str(elsewhere), "hello")
    assert none_here.code == 2
    assert "leave -c out" in none_here.err


async def test_a_conversation_owned_by_another_process_is_refused_with_pid_and_fork(claude: Claude) -> None:
    phoenix, server = await claude(stalls)
    owner = await phoenix.start("-p", "Tell")
    await server.wait_asked()
    ran = await phoenix.run("-p", "-c", "x")
    changed = await phoenix.run("conversations", "archive", "Tell")
    owner.send_signal(signal.SIGTERM)
    await ended(owner)
    for refused in (ran, changed):
        assert refused.code == 2
        assert f"Process {owner.pid}" in refused.err
        assert "--fork" in refused.err


async def test_an_untrusted_folder_keeps_its_files_to_itself_until_trusted(claude: Claude) -> None:
    phoenix, server = await claude(plays(HELLO))
    (phoenix.cwd / "AGENTS.md").write_text("Speak like a pirate.")
    (phoenix.cwd / ".phoenix").mkdir()
    (phoenix.cwd / ".phoenix" / "config.toml").write_text('permission_mode = "plan"\n')
    untrusted = await phoenix.run("-p", "x")
    trusted = await phoenix.run("-p", "--trust", "--permission-mode", "ask", "x")
    remembered = await phoenix.run("-p", "x")
    assert "is not trusted: AGENTS.md, config.toml left out; --trust" in untrusted.err
    assert (trusted.err, remembered.err) == ("", "")
    pirates = ["Speak like a pirate." in str(request.json["system"]) for request in server.requests]
    assert pirates == [False, True, True]


async def test_system_prompts_are_replaced_and_extended(claude: Claude) -> None:
    phoenix, server = await claude(plays(HELLO))
    await phoenix.run("-p", "--system-prompt", "You are a poet.", "--append-system-prompt", "Rhyme.", "x")
    system = str(server.requests[0].json["system"])
    assert "You are a poet." in system
    assert "Rhyme." in system
    assert "You are Phoenix" not in system


async def test_an_ephemeral_run_writes_no_database(tmp_path: Path) -> None:
    phoenix = phoenix_in(tmp_path)
    assert (await phoenix.run("-p", "--ephemeral", "hello")).code == 0
    assert not (phoenix.home / "phoenix.db").exists()


async def test_a_bad_folder_is_named(tmp_path: Path) -> None:
    ran = await phoenix_in(tmp_path).run("-p", "-C", "/no/such/folder", "hello")
    assert (ran.code, "/no/such/folder does not exist" in ran.err) == (2, True)


async def test_a_wrong_setting_names_file_line_and_key(tmp_path: Path) -> None:
    phoenix = phoenix_in(tmp_path)
    (phoenix.home / "config.toml").write_text("\nmodle = 'x'\n")
    ran = await phoenix.run("-p", "hello")
    assert ran.code == 2
    assert f"{phoenix.home / 'config.toml'}:2: unknown key 'modle'" in ran.err


async def test_the_key_is_in_no_file_of_a_debugged_run(claude: Claude) -> None:
    phoenix, _ = await claude(refuses(401, "authentication_error", "bad key sk-ant-planted-0123456789"))
    ran = await phoenix.run("-p", "--debug", "x")
    files = [path for path in phoenix.home.rglob("*") if path.is_file()]
    assert phoenix.home / "logs" / "phoenix.jsonl" in files
    assert [path for path in files if b"planted-0123" in path.read_bytes()] == []
    assert "planted" not in ran.out + ran.err
    assert {path.stat().st_mode & 0o077 for path in files} == {0}


@pytest.mark.parametrize("form", ["text", "json", "stream-json"])
async def test_a_model_with_nothing_to_say_is_a_success_without_text(tmp_path: Path, form: str) -> None:
    async with serve(plays(recording(start(), text(0, "NO_", "REPLY"), stop()))) as server:
        ran = await with_claude(tmp_path, server.url).run("-p", "--output-format", form, "Hi")
    assert ran.code == 0
    assert "NO_REPLY" not in ran.out
    if form == "text":
        assert ran.out == "\n"
    else:
        result = ran.json if form == "json" else ran.lines[-1]
        assert (result["subtype"], result["result"], result["is_error"]) == ("success", "", False)


async def test_the_answer_is_the_cleaned_one(tmp_path: Path) -> None:
    reply = recording(start(), text(0, "<think>plan", "</think>", "Hello."), stop())
    async with serve(plays(reply)) as server:
        ran = await with_claude(tmp_path, server.url).run("-p", "Hi")
    assert (ran.code, ran.out) == (0, "Hello.\n")
