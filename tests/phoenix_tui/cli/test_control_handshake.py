"""The handshake of hosts, and an answer to every request that agent SDKs can send, odd ones too."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from phoenix_tui.cli.control.extensions import HostSkills
from phoenix_tui.cli.control.frames import ControlRequestError
from phoenix_tui.cli.control.options import read_flags
from phoenix_tui.cli.exits import CommandError
from tests.phoenix_tui.cli.test_control_servers import ADDS, ALLOWED, CONFIG, adds, bodies, server_with
from tests.support.bounded import resident
from tests.support.cli import with_claude
from tests.support.control_host import FLAGS, Frame, hosted
from tests.support.extended_folder import write
from tests.support.journeys import Claude, calls, says
from tests.support.loopback import serve
from tests.support.loopback_agents import never_ends
from tests.support.loopback_anthropic import refuses
from tests.support.waiting import poll

NO_PROMPT = ("--output-format", "stream-json", "--verbose", "--input-format", "stream-json")


def system_of(body: Frame) -> str:
    return json.dumps(body["system"], ensure_ascii=False)


async def test_prompts_of_the_handshake_are_those_of_the_conversation(claude: Claude) -> None:
    phoenix, server = await claude(says("Arr."))
    async with hosted(phoenix, base=NO_PROMPT) as host:
        await host.ask("initialize", systemPrompt=["You are a pirate.", "Be brief."], appendSystemPrompt="Say arr.")
        await host.turn("Hi")
        [body] = bodies(server)
    told = system_of(body)
    assert "You are a pirate.\\n\\nBe brief." in told
    assert "Say arr." in told
    assert "Phoenix" not in told


async def test_an_empty_prompt_in_the_handshake_is_the_plain_one(claude: Claude) -> None:
    phoenix, server = await claude(says("Hi."))
    async with hosted(phoenix, base=NO_PROMPT) as host:
        await host.ask("initialize", systemPrompt=[""])
        await host.turn("Hi")
        [body] = bodies(server)
    assert "You are a helpful agent." in system_of(body)


async def test_without_a_prompt_anywhere_it_is_that_of_phoenix_with_what_is_appended(claude: Claude) -> None:
    phoenix, server = await claude(says("Hi."), PHOENIX_APPEND_SYSTEM_PROMPT="From my settings.")
    async with hosted(phoenix, base=NO_PROMPT) as host:
        await host.ask("initialize", appendSystemPrompt="From the host.", planModeInstructions="Ask first.")
        await host.turn("Hi")
        [body] = bodies(server)
    told = system_of(body)
    assert "You are Phoenix" in told
    assert "From my settings.\\n\\nFrom the host.\\n\\nIn plan mode, work out the plan like this:\\nAsk first." in told


async def test_a_title_of_the_handshake_names_the_conversation(claude: Claude) -> None:
    phoenix, _ = await claude(says("Hi."))
    async with hosted(phoenix) as host:
        await host.ask("initialize", title="Review of the parser")
        await host.turn("Hi")
        await host.close()
    ran = await phoenix.run("conversations", "list")
    assert (ran.code, "Review of the parser" in ran.out) == (0, True)


async def test_a_server_that_only_the_handshake_names_is_connected(claude: Claude) -> None:
    phoenix, server = await claude(ADDS, says("Five."))
    async with hosted(phoenix, *ALLOWED, mcp_message=server_with(adds)) as host:
        await host.ask("initialize", sdkMcpServers=["calc", 7, ""])
        frames = await host.turn("Add")
    _, second = bodies(server)
    assert frames[0]["mcp_servers"] == [{"name": "calc", "status": "connected"}]
    assert "sum 5" in json.dumps(second["messages"][-1])


@pytest.mark.parametrize("odd", [7, {"a": 1}, [7, None, {"b": 2}], None])
async def test_odd_prompts_of_a_handshake_are_no_prompts(tmp_path: Path, odd: object) -> None:
    async with serve(says("Hi.")) as server, hosted(with_claude(tmp_path, server.url)) as host:
        answer = await host.ask("initialize", systemPrompt=odd, appendSystemPrompt=odd, title=odd, sdkMcpServers=odd)
        result = (await host.turn("Hi"))[-1]
    assert (answer["subtype"], result["result"]) == ("success", "Hi.")


NO_EFFECT = """
    excludeDynamicSections systemPromptSnapshot agentProgressSummaries promptSuggestions supportedDialogKinds
    perTaskStopAffordance sdkMcpServerManifests sdkMcpServerConfigs toolAliases appendSubagentSystemPrompt
    workspaceTrust codeRunningMcpTools managedSettings rapidFollowupPreempt planModeInstructions
"""


async def test_fields_without_an_effect_have_none_whatever_they_hold(tmp_path: Path) -> None:
    async with serve(says("Hi.")) as server, hosted(with_claude(tmp_path, server.url)) as host:
        answer = await host.ask("initialize", **{name: [{"a": [7]}] for name in NO_EFFECT.split()})
        result = (await host.turn("Hi"))[-1]
    assert (answer["subtype"], result["result"]) == ("success", "Hi.")
    assert "managed_settings_applied" not in answer["response"]


async def test_a_signal_before_the_first_line_ends_it_with_its_code(claude: Claude) -> None:
    phoenix, server = await claude(says("Hi."))
    async with hosted(phoenix) as host:
        assert await poll(lambda: list(phoenix.home.rglob("*.db")))
        host.process.send_signal(signal.SIGTERM)
        code = await host.end()
    assert (code, server.requests) == (143, [])


def test_what_serves_a_host_loads_no_screen_and_no_client_of_the_web() -> None:
    unwanted = {"textual", "rich", "urllib.request", "http.client", "mcp", "pydantic", "anthropic", "openai", "httpx"}
    code = f"import sys, phoenix_tui.wiring.control as _; print(sorted({unwanted} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("flags", "model"),
    [
        (("--model", "claude-sonnet-4-5"), "claude-sonnet-4-5"),
        (("--model=haiku",), "claude-haiku-5-5"),
        (("--settings", '{"model": "opus"}'), "claude-opus-5-5"),
    ],
)
async def test_models_bear_the_names_of_hosts(tmp_path: Path, flags: tuple[str, ...], model: str) -> None:
    async with serve(says("Hi.")) as server, hosted(with_claude(tmp_path, server.url), *flags) as host:
        init, *_, result = await host.turn("Hi")
        [body] = bodies(server)
    assert (init["model"], body["model"], result["result"]) == (model, model, "Hi.")


SHAPE: Frame = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


async def test_a_schema_of_the_handshake_shapes_the_answer_and_a_bad_one_is_refused(tmp_path: Path) -> None:
    answers = (calls("submit_structured", city="Basel"), says("Done."))
    async with serve(*answers) as server, hosted(with_claude(tmp_path, server.url)) as host:
        refused = [
            (await host.ask("initialize", jsonSchema=schema))["error"]
            for schema in (7, {"type": "array"}, SHAPE | {"if": {}}, SHAPE | {"description": "x" * 300_000})
        ]
        await host.ask("initialize", jsonSchema=SHAPE)
        frames = await host.turn("Where?")
    assert refused == [
        "jsonSchema: The schema must be a JSON object.",
        'jsonSchema: The schema must describe an object: {"type": "object", …}.',
        "jsonSchema: The keyword if at # is not supported.",
        "jsonSchema is longer than 262,144 characters.",
    ]
    assert "StructuredOutput" in frames[0]["tools"]
    assert frames[-1]["structured_output"] == {"city": "Basel"}


@pytest.mark.parametrize(
    ("chosen", "offered"),
    [(["web"], ["tools:web"]), (["more:other"], ["more:other"]), ([], []), ("all", ["more:other", "tools:web"])],
)
async def test_the_model_is_offered_the_skills_that_the_handshake_names(
    claude: Claude, tmp_path: Path, chosen: Any, offered: list[str]
) -> None:
    write(tmp_path / "tools/skills/web/SKILL.md", "---\ndescription: Browses.\n---\nBrowse.\n")
    write(tmp_path / "more/skills/other/SKILL.md", "---\ndescription: Does else.\n---\nElse.\n")
    plugins = [flag for name in ("tools", "more") for flag in ("--plugin-dir", str(tmp_path / name))]
    phoenix, server = await claude(says("Hi."), says("Browsed."))
    async with hosted(phoenix, *plugins, base=NO_PROMPT) as host:
        await host.ask("initialize", skills=chosen)
        init = (await host.turn("Hi"))[0]
        await host.turn("/tools:web now")
        first, second = bodies(server)
    assert (init["skills"], "Skill" in init["tools"]) == (offered, bool(offered))
    told = system_of(first)
    assert [name for name in ("more:other", "tools:web") if name in told] == offered
    assert "Browse." in json.dumps(second["messages"][-1]), "the user calls any skill"


async def test_a_given_system_prompt_leaves_the_list_of_skills_to_their_tool(claude: Claude, tmp_path: Path) -> None:
    write(tmp_path / "tools/skills/web/SKILL.md", "---\ndescription: Browses.\n---\nBrowse.\n")
    phoenix, server = await claude(says("Hi."))
    async with hosted(phoenix, "--plugin-dir", str(tmp_path / "tools")) as host:
        await host.turn("Hi")
        [body] = bodies(server)
    assert "tools:web" not in system_of(body)
    [tool] = [one for one in body["tools"] if one["name"] == "skill"]
    assert tool["description"].endswith("tools:web: Browses.")


@pytest.mark.parametrize("odd", [7, "some", [7], {"a": 1}, ["x"] * 2_001])
def test_odd_skills_of_a_handshake_are_refused(odd: Any) -> None:
    with pytest.raises(ControlRequestError):
        HostSkills(lambda _: None).begin({"subtype": "initialize", "skills": odd})


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


async def test_a_signal_during_a_question_ends_it(claude: Claude) -> None:
    phoenix, _ = await claude(calls("bash", command="echo one"))
    async with hosted(phoenix, "--permission-prompt-tool", "stdio", can_use_tool=lambda _: None) as host:
        host.say("Go")
        await host.wait(lambda one: one.get("request", {}).get("subtype") == "can_use_tool")
        host.process.send_signal(signal.SIGTERM)
        assert await host.end() == 143
    assert host.messages()[-1]["type"] == "result"


async def test_a_dry_run_of_a_rewind_changes_nothing(claude: Claude) -> None:
    writes = calls("bash", command="echo two > made.txt")
    phoenix, _ = await claude(writes, says("Done."))
    (phoenix.cwd / "made.txt").write_text("one\n")
    async with hosted(phoenix, "--allowedTools", "Bash") as host:
        await host.turn("Go", uuid="u-1")
        would = await host.ask("rewind_files", user_message_id="u-1", dry_run=True)
        kept = (phoenix.cwd / "made.txt").read_text()
        done = await host.ask("rewind_files", user_message_id="u-1")
    assert (kept, (phoenix.cwd / "made.txt").read_text()) == ("two\n", "one\n")
    assert would["response"] == {"canRewind": True, "filesChanged": ["made.txt"], "insertions": 1, "deletions": 1}
    assert done["response"] == {"canRewind": True}


async def test_title_and_reasoning_are_set(claude: Claude) -> None:
    phoenix, server = await claude(says("Hi."))
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


async def test_a_message_that_is_withdrawn_at_once_is_never_sent(tmp_path: Path) -> None:
    async with serve(never_ends) as server, hosted(with_claude(tmp_path, server.url)) as host:
        host.say("Go", uuid="u-1")
        await server.wait_asked()
        for n in range(20):
            host.say(f"message {n}", uuid=f"m-{n}")
            answer = await host.ask("cancel_async_message", message_uuid=f"m-{n}")
            assert answer["response"]["cancelled"] is True
        assert (await host.ask("interrupt", cancel_queued=True))["response"] == {"still_queued": []}
        await host.close()


async def test_messages_that_wait_are_withdrawn(tmp_path: Path) -> None:
    async with serve(never_ends, says("Third.")) as server, hosted(with_claude(tmp_path, server.url)) as host:
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


async def test_changed_tools_of_a_server_inside_the_host_are_listed_again(claude: Claude) -> None:
    tools: list[Frame] = [{"name": "add", "inputSchema": {"type": "object"}}]
    phoenix, _ = await claude(says("Hi."))
    async with hosted(phoenix, *CONFIG, mcp_message=lambda request: server_with(adds, tools)(request)) as host:
        before = (await host.turn("Hi"))[0]["tools"]
        tools.append({"name": "multiply", "inputSchema": {"type": "object"}})
        changed = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
        answer = await host.ask("mcp_message", server_name="calc", message=changed)
        after = (await host.turn("Hi"))[0]["tools"]
        unknown = await host.ask("mcp_message", server_name="other", message=changed)
    assert [name for name in after if name not in before] == ["mcp__calc__multiply"]
    assert (answer["subtype"], unknown["error"]) == ("success", "There is no server other inside the host.")


async def test_a_question_beside_the_conversation_is_answered_and_leaves_it_alone(claude: Claude) -> None:
    phoenix, server = await claude(
        says("Hi."), says("Beside."), says("Again."), refuses(400, "invalid_request_error", "no")
    )
    async with hosted(phoenix) as host:
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
    assert read_flags([*FLAGS, "--max-thinking-tokens", tokens]).run.effort == effort


@pytest.mark.parametrize("wrong", ["-1", "many", "1" * 50, "٣"])
def test_tokens_that_are_no_number_are_refused(wrong: str) -> None:
    with pytest.raises(CommandError, match="needs a number of tokens"):
        read_flags([*FLAGS, f"--max-thinking-tokens={wrong}"])
