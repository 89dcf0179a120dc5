"""Every request that the agent SDKs can send is answered, also odd ones, twice the same id, and at the end of input."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

import pytest

from phoenix_tui.cli.control.flags import control_flags
from phoenix_tui.cli.exits import CommandError
from tests.phoenix_tui.cli.test_control_servers import CONFIG, adds, bodies, server_with
from tests.support.bounded import resident
from tests.support.cli import with_claude
from tests.support.control_host import FLAGS, Frame, hosted
from tests.support.loopback import serve
from tests.support.loopback_agents import calls, never_ends, says
from tests.support.loopback_anthropic import refuses

SUBTYPES = (
    "initialize interrupt set_permission_mode set_model set_max_thinking_tokens mcp_status mcp_toggle mcp_reconnect "
    "mcp_set_servers mcp_message mcp_call mcp_read_resource mcp_authenticate mcp_clear_auth mcp_oauth_callback_url "
    "get_context_usage get_settings get_usage get_session_cost get_hooks_listing get_binary_version get_plan "
    "get_status get_memory_dialog get_skills_dialog get_sandbox_dialog get_chrome_dialog get_chrome_browsers "
    "get_task_output list_permission_rules list_models rewind_files cancel_async_message stop_task background_tasks "
    "rename_session set_color generate_session_title side_question seed_read_state set_cwd claim_session read_file "
    "file_suggestions apply_flag_settings update_settings reload_plugins reload_skills reload_output_styles "
    "register_repo_root set_has_subscribers export_conversation submit_feedback submit_survey_feedback message_rated "
    "channel_enable remote_control ultrareview_launch set_mcp_permission_mode_override set_chrome_browser_hints "
    "select_chrome_browser set_prompt_suggestions_paused prompt_draft_activity claude_authenticate "
    "claude_oauth_callback claude_oauth_wait_for_completion"
)
"""Subtypes in the sources of claude-agent-sdk 0.2.189 (Python) and 0.3.332 (npm)."""
SENT_BY_SDKS = SUBTYPES.split()


async def test_every_request_of_the_sdks_is_answered(tmp_path: Path) -> None:
    async with serve(says("Hi.")) as server, hosted(with_claude(tmp_path, server.url)) as host:
        ids = {subtype: host.begin(subtype) for subtype in SENT_BY_SDKS}
        answers = {subtype: await host.answer_to(request_id) for subtype, request_id in ids.items()}
        result = (await host.turn("Hi"))[-1]
    refused = {subtype: one["error"] for subtype, one in answers.items() if one["subtype"] == "error"}
    assert len(answers) == len(SENT_BY_SDKS)
    assert all(error.endswith(".") and "internal" not in error.lower() for error in refused.values()), refused
    assert set(SENT_BY_SDKS) - set(refused) == {
        *("initialize", "interrupt", "set_model", "set_max_thinking_tokens", "mcp_status", "get_context_usage"),
        *("list_models", "background_tasks", "reload_skills"),
    }
    assert result["result"] == "Hi."


@pytest.mark.parametrize("odd", [None, 7, [], {"a": []}, "x" * 100_000, "\x1b[31m\ud800"])
async def test_odd_fields_get_a_sentence_or_an_answer(tmp_path: Path, odd: object) -> None:
    names = ("mode", "model", "serverName", "servers", "title", "max_thinking_tokens", "message_uuid", "task_id")
    fields = dict.fromkeys((*names, "user_message_id", "server_name", "message", "enabled"), odd)
    async with serve(says("Hi.")) as server, hosted(with_claude(tmp_path, server.url)) as host:
        ids = [host.begin(subtype, **fields) for subtype in SENT_BY_SDKS if subtype != "initialize"]
        answers = [await host.answer_to(one) for one in ids]
        result = (await host.turn("Hi"))[-1]
    wrong = [one["error"] for one in answers if one["subtype"] == "error" and "Internal" in one["error"]]
    assert (wrong, result["is_error"]) == ([], False)


async def test_a_request_id_that_is_used_twice_is_answered_twice(tmp_path: Path) -> None:
    request = {"type": "control_request", "request_id": "same", "request": {"subtype": "mcp_status"}}
    async with serve(says("Hi.")) as server, hosted(with_claude(tmp_path, server.url)) as host:
        host.send(request, request)
        assert (await host.turn("Hi"))[-1]["result"] == "Hi."
        await host.close()
    answers = [one for one in host.frames if one["type"] == "control_response"]
    assert [one["response"]["request_id"] for one in answers] == ["same", "same"]


async def test_requests_before_the_end_of_input_are_answered(tmp_path: Path) -> None:
    async with serve(says("Hi.")) as server, hosted(with_claude(tmp_path, server.url)) as host:
        asked = host.begin("initialize")
        host.say("Hi")
        status = host.begin("mcp_status")
        code = await host.close()
    answered = {one["response"]["request_id"] for one in host.frames if one["type"] == "control_response"}
    assert (answered, code) == ({asked, status}, 0)


async def test_the_end_of_input_within_a_line_is_one_sentence(tmp_path: Path) -> None:
    async with serve(says("Hi.")) as server, hosted(with_claude(tmp_path, server.url)) as host:
        await host.turn("Hi")
        host.write(b'{"type":"user","message":{"role":"us')
        code = await host.close()
    err = bytes(host.err).decode()
    assert (code, err.count("The connection ends"), "Traceback" in err) == (1, 1, False)


async def test_a_message_of_15_mb_is_read_in_bounded_memory(tmp_path: Path) -> None:
    async with serve(says("Read.")) as server, hosted(with_claude(tmp_path, server.url)) as host:
        await host.ask("initialize")
        before = resident(host.process.pid)
        result = (await host.turn([{"type": "text", "text": "word " * 3_000_000}]))[-1]
        grown = resident(host.process.pid) - before
    assert result["type"] == "result"
    assert grown < 400


async def test_a_signal_during_a_question_ends_it(tmp_path: Path) -> None:
    async with (
        serve(calls("bash", {"command": "echo one"})) as server,
        hosted(
            with_claude(tmp_path, server.url), "--permission-prompt-tool", "stdio", can_use_tool=lambda _: None
        ) as host,
    ):
        host.say("Go")
        await host.wait(lambda one: one.get("request", {}).get("subtype") == "can_use_tool")
        host.process.send_signal(signal.SIGTERM)
        assert await host.end() == 143
    assert host.messages()[-1]["type"] == "result"


async def test_a_dry_run_of_a_rewind_changes_nothing(tmp_path: Path) -> None:
    writes = calls("bash", {"command": "echo two > made.txt"})
    async with serve(writes, says("Done.")) as server:
        phoenix = with_claude(tmp_path, server.url)
        (phoenix.cwd / "made.txt").write_text("one\n")
        async with hosted(phoenix, "--allowedTools", "Bash") as host:
            await host.turn("Go", uuid="u-1")
            would = await host.ask("rewind_files", user_message_id="u-1", dry_run=True)
            kept = (phoenix.cwd / "made.txt").read_text()
            done = await host.ask("rewind_files", user_message_id="u-1")
        assert (kept, (phoenix.cwd / "made.txt").read_text()) == ("two\n", "one\n")
    assert would["response"] == {"canRewind": True, "filesChanged": ["made.txt"], "insertions": 1, "deletions": 1}
    assert done["response"] == {"canRewind": True}


async def test_title_and_reasoning_are_set(tmp_path: Path) -> None:
    async with serve(says("Hi.")) as server:
        phoenix = with_claude(tmp_path, server.url)
        async with hosted(phoenix) as host:
            await host.ask("rename_session", title="Fix \x1b[31mthe parser")
            await host.ask("set_max_thinking_tokens", max_thinking_tokens=0)
            await host.turn("Hi")
            other = await host.ask("rename_session", title="x", session_id="another")
            await host.close()
        listed = (await phoenix.run("conversations", "list")).out
        [body] = bodies(server)
    assert "Fix the parser" in listed
    assert body["output_config"] == {"effort": "low"}
    assert other["error"] == "This connection has another session than the one to be renamed."


async def test_messages_that_wait_are_withdrawn(tmp_path: Path) -> None:
    async with serve(never_ends, says("Third.")) as server:
        phoenix = with_claude(tmp_path, server.url)
        async with hosted(phoenix) as host:
            host.say("Go", uuid="u-1")
            await server.wait_asked()
            host.say("second", uuid="u-2")
            await asyncio.sleep(0)
            host.say("third", uuid="u-3")
            answers = [await host.ask("cancel_async_message", message_uuid=uuid) for uuid in ("u-2", "u-2", "u-9")]
            stopped = await host.ask("interrupt", cancel_queued=True)
            await host.close()
    assert [one["response"]["cancelled"] for one in answers] == [True, False, False]
    assert stopped["response"] == {"still_queued": [], "cancelled": ["u-3"]}
    assert [one["user_message_uuids"] for one in host.frames if one["type"] == "result"] == [["u-1"]]


async def test_changed_tools_of_a_server_inside_the_host_are_listed_again(tmp_path: Path) -> None:
    tools: list[Frame] = [{"name": "add", "inputSchema": {"type": "object"}}]
    async with serve(says("Hi.")) as server:
        phoenix = with_claude(tmp_path, server.url)
        async with hosted(phoenix, *CONFIG, mcp_message=lambda request: server_with(adds, tools)(request)) as host:
            before = (await host.turn("Hi"))[0]["tools"]
            tools.append({"name": "multiply", "inputSchema": {"type": "object"}})
            changed = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
            answer = await host.ask("mcp_message", server_name="calc", message=changed)
            after = (await host.turn("Hi"))[0]["tools"]
            unknown = await host.ask("mcp_message", server_name="other", message=changed)
    assert [name for name in after if name not in before] == ["mcp__calc__multiply"]
    assert (answer["subtype"], unknown["error"]) == ("success", "There is no server other inside the host.")


async def test_a_question_beside_the_conversation_is_answered_and_leaves_it_alone(tmp_path: Path) -> None:
    async with (
        serve(says("Hi."), says("Beside."), says("Again."), refuses(400, "invalid_request_error", "no")) as server,
        hosted(with_claude(tmp_path, server.url)) as host,
    ):
        await host.turn("Hi")
        answer = await host.ask("side_question", question="What was that?")
        await host.turn("And?")
        failed = await host.ask("side_question", question="And now?")
        *_, third, _fourth = bodies(server)
    assert answer["response"] == {"response": "Beside.", "synthetic": False}
    assert "What was that?" not in str(third["messages"])
    assert (failed["subtype"], "Internal" in failed["error"]) == ("error", False)


@pytest.mark.parametrize(("tokens", "effort"), [("0", "off"), ("2000", "low"), ("16000", "high"), ("99999", "max")])
def test_tokens_of_reasoning_are_an_effort(tokens: str, effort: str) -> None:
    assert control_flags([*FLAGS, "--max-thinking-tokens", tokens]).run.effort == effort


@pytest.mark.parametrize("wrong", ["-1", "many", "1" * 50, "٣"])
def test_tokens_that_are_no_number_are_refused(wrong: str) -> None:
    with pytest.raises(CommandError, match="needs a number of tokens"):
        control_flags([*FLAGS, f"--max-thinking-tokens={wrong}"])
