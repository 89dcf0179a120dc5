"""The handshake of hosts that say there what others say on the command line: prompts, a title, servers inside them."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from phoenix_tui.cli.control.host_skills import HostSkills
from phoenix_tui.cli.control.requests import RequestError
from tests.phoenix_tui.cli.test_control_servers import ADDS, ALLOWED, adds, bodies, server_with
from tests.support.cli import with_claude
from tests.support.control_host import Frame, hosted
from tests.support.extended_folder import write
from tests.support.loopback import serve
from tests.support.loopback_agents import calls, says
from tests.support.waiting import poll

NO_PROMPT = ("--output-format", "stream-json", "--verbose", "--input-format", "stream-json")


def system_of(body: Frame) -> str:
    return json.dumps(body["system"], ensure_ascii=False)


async def test_prompts_of_the_handshake_are_those_of_the_conversation(tmp_path: Path) -> None:
    async with (
        serve(says("Arr.")) as server,
        hosted(with_claude(tmp_path, server.url), base=NO_PROMPT) as host,
    ):
        await host.ask("initialize", systemPrompt=["You are a pirate.", "Be brief."], appendSystemPrompt="Say arr.")
        await host.turn("Hi")
        [body] = bodies(server)
    told = system_of(body)
    assert "You are a pirate.\\n\\nBe brief." in told
    assert "Say arr." in told
    assert "Phoenix" not in told


async def test_an_empty_prompt_in_the_handshake_is_the_plain_one(tmp_path: Path) -> None:
    async with (
        serve(says("Hi.")) as server,
        hosted(with_claude(tmp_path, server.url), base=NO_PROMPT) as host,
    ):
        await host.ask("initialize", systemPrompt=[""])
        await host.turn("Hi")
        [body] = bodies(server)
    assert "You are a helpful agent." in system_of(body)


async def test_without_a_prompt_anywhere_it_is_that_of_phoenix_with_what_is_appended(tmp_path: Path) -> None:
    async with serve(says("Hi.")) as server:
        phoenix = with_claude(tmp_path, server.url, PHOENIX_APPEND_SYSTEM_PROMPT="From my settings.")
        async with hosted(phoenix, base=NO_PROMPT) as host:
            await host.ask("initialize", appendSystemPrompt="From the host.", planModeInstructions="Ask first.")
            await host.turn("Hi")
            [body] = bodies(server)
    told = system_of(body)
    assert "You are Phoenix" in told
    assert "From my settings.\\n\\nFrom the host.\\n\\nIn plan mode, work out the plan like this:\\nAsk first." in told


async def test_a_title_of_the_handshake_names_the_conversation(tmp_path: Path) -> None:
    async with serve(says("Hi.")) as server:
        phoenix = with_claude(tmp_path, server.url)
        async with hosted(phoenix) as host:
            await host.ask("initialize", title="Review of the parser")
            await host.turn("Hi")
            await host.close()
        ran = await phoenix.run("conversations", "list")
    assert (ran.code, "Review of the parser" in ran.out) == (0, True)


async def test_a_server_that_only_the_handshake_names_is_connected(tmp_path: Path) -> None:
    async with serve(ADDS, says("Five.")) as server:
        phoenix = with_claude(tmp_path, server.url)
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


async def test_a_signal_before_the_first_line_ends_it_with_its_code(tmp_path: Path) -> None:
    async with serve(says("Hi.")) as server:
        phoenix = with_claude(tmp_path, server.url)
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
    answers = (calls("submit_structured", {"city": "Basel"}), says("Done."))
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
    tmp_path: Path, chosen: Any, offered: list[str]
) -> None:
    write(tmp_path / "tools/skills/web/SKILL.md", "---\ndescription: Browses.\n---\nBrowse.\n")
    write(tmp_path / "more/skills/other/SKILL.md", "---\ndescription: Does else.\n---\nElse.\n")
    plugins = [flag for name in ("tools", "more") for flag in ("--plugin-dir", str(tmp_path / name))]
    async with (
        serve(says("Hi."), says("Browsed.")) as server,
        hosted(with_claude(tmp_path, server.url), *plugins, base=NO_PROMPT) as host,
    ):
        await host.ask("initialize", skills=chosen)
        init = (await host.turn("Hi"))[0]
        await host.turn("/tools:web now")
        first, second = bodies(server)
    assert (init["skills"], "Skill" in init["tools"]) == (offered, bool(offered))
    told = system_of(first)
    assert [name for name in ("more:other", "tools:web") if name in told] == offered
    assert "Browse." in json.dumps(second["messages"][-1]), "the user calls any skill"


async def test_a_given_system_prompt_leaves_the_list_of_skills_to_their_tool(tmp_path: Path) -> None:
    write(tmp_path / "tools/skills/web/SKILL.md", "---\ndescription: Browses.\n---\nBrowse.\n")
    async with (
        serve(says("Hi.")) as server,
        hosted(with_claude(tmp_path, server.url), "--plugin-dir", str(tmp_path / "tools")) as host,
    ):
        await host.turn("Hi")
        [body] = bodies(server)
    assert "tools:web" not in system_of(body)
    [tool] = [one for one in body["tools"] if one["name"] == "skill"]
    assert tool["description"].endswith("tools:web: Browses.")


@pytest.mark.parametrize("odd", [7, "some", [7], {"a": 1}, ["x"] * 2_001])
def test_odd_skills_of_a_handshake_are_refused(odd: Any) -> None:
    with pytest.raises(RequestError):
        HostSkills(lambda _: None).begin({"subtype": "initialize", "skills": odd})
