"""`phoenix -p` with sub-agents, agents of files and an effort: the real program against a loopback Claude."""

from __future__ import annotations

import asyncio
import json
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.phoenix_tui.cli.test_control_servers import bodies
from tests.support.cli import Phoenix, Ran, ended, phoenix_in, with_claude
from tests.support.control_host import hosted
from tests.support.extended_folder import write
from tests.support.journeys import Claude, calls, rows, says
from tests.support.loopback import Answer, Loopback, Talk, serve
from tests.support.loopback_agents import begins, by_last_message, never_ends, spawns, submits
from tests.support.program import program
from tests.support.waiting import poll, poll_blocking

TWO = {
    "Sub-agent results": says("Both are back."),
    "TASK one": submits("first"),
    "TASK two": submits("second"),
    "go": spawns("TASK one", "TASK two"),
}
BACKGROUND = {
    "[SYSTEM] Child task": says("The child is back."),
    "started": says("It works in the background."),
    "TASK one": submits("first"),
    "go": begins("TASK one"),
}


async def run(folder: Path, answers: dict[str, Answer], *arguments: str, mode: str = "auto") -> Ran:
    async with serve(by_last_message(answers)) as server:
        return await with_claude(folder, server.url).run("-p", "--permission-mode", mode, *arguments, "go")


def shape(line: dict[str, Any]) -> tuple[str, str | None, str]:
    """Type, the call it belongs to, and the first block of a line in words."""
    content = line.get("message", {}).get("content", [{}])
    block = content[0]
    words = block.get("text") or block.get("name") or (block.get("content") or [{}])[0].get("text", "")
    return str(line["type"]), line.get("parent_tool_use_id"), str(words).partition("\n")[0]


async def test_messages_of_sub_agents_stand_among_their_parents_under_the_call_that_began_them(tmp_path: Path) -> None:
    ran = await run(tmp_path, TWO, "--output-format", "stream-json")
    lines = ran.lines
    shapes = [shape(line) for line in lines[1:-1]]
    assert shapes[0] == ("assistant", None, "spawn_agents")
    assert shapes[-2:] == [
        ("user", None, "Sub-agent results (2 of 2 succeeded):"),
        ("assistant", None, "Both are back."),
    ]
    by_agent: dict[str, list[tuple[str, str | None, str]]] = {}
    for line in lines[2:-3]:
        by_agent.setdefault(line["agent_id"], []).append(shape(line))
    assert sorted(by_agent.values()) == [
        [
            ("user", "toolu_spawn", task),
            ("assistant", "toolu_spawn", "submit_result"),
            ("user", "toolu_spawn", "Submitted."),
        ]
        for task in ("TASK one", "TASK two")
    ]
    assert {line["session_id"] for line in lines} == {lines[0]["session_id"]}
    assert {"spawn_agents", "spawn_task"} <= set(lines[0]["tools"])


async def test_deltas_of_sub_agents_carry_the_call_too(tmp_path: Path) -> None:
    ran = await run(tmp_path, TWO, "--output-format", "stream-json", "--include-partial-messages")
    events = [line for line in ran.lines if line["type"] == "stream_event"]
    deltas = [
        (line["parent_tool_use_id"], line["event"]["delta"].get("partial_json")) for line in events if _delta(line)
    ]
    assert ("toolu_spawn", '{"result": "first"}') in deltas
    assert deltas[-1] == (None, None)


def _delta(line: dict[str, Any]) -> bool:
    return bool(line["event"]["type"] == "content_block_delta")


async def test_the_result_object_names_every_sub_agent_and_its_cost_is_part_of_the_whole(tmp_path: Path) -> None:
    ran = await run(tmp_path, TWO, "--output-format", "json")
    result = ran.json
    assert (result["result"], result["num_turns"], result["is_error"]) == ("Both are back.", 2, False)
    agents = result["agents"]
    told = [(one["task"], one["profile"], one["status"], one["turns"]) for one in agents]
    assert told == [("TASK one", "general", "success", 1), ("TASK two", "general", "success", 1)]
    assert all(one["cost_usd"] == 0.00007 and one["duration_ms"] > 0 for one in agents)
    assert result["total_cost_usd"] == pytest.approx(0.00028)
    each = result["usage"] | {name: count // 2 for name, count in result["usage"].items()}
    assert [one["usage"] for one in agents] == [each, each]
    whole = {name: 2 * count for name, count in result["usage"].items()}
    assert (result["total_turns"], result["total_usage"]) == (4, whole)
    assert result["model_usage"] == {agents[0]["model"].removeprefix("anthropic/"): whole}
    assert "• Sub-agent done: TASK one" in ran.err
    listed = await phoenix_in(tmp_path).run("conversations", "list", "--json")
    assert [one["total_cost_usd"] for one in listed.json] == [pytest.approx(0.00028)]


async def test_what_sub_agents_did_is_shown_and_exported_behind_their_parent(tmp_path: Path) -> None:
    ran = await run(tmp_path, TWO, "--output-format", "json")
    phoenix, parent = phoenix_in(tmp_path), str(ran.json["session_id"])
    shown = await phoenix.run("conversations", "show", parent, "--json")
    kept = ("id", "task", "profile", "status", "turns", "cost_usd")
    told, known = ([[one[key] for key in kept] for one in each["agents"]] for each in (shown.json, ran.json))
    assert told == known
    written = (await phoenix.run("conversations", "export", parent)).out
    first, second, third = (part.splitlines() for part in written.split("\n# "))
    assert "Both are back." in first
    assert (second[0], third[0]) == ("Sub-agent: TASK one", "Sub-agent: TASK two")
    assert [line for line in second if line.startswith(("- Ended", "## "))] == [
        "- Ended: done",
        "## Parent",
        "## Phoenix",
    ]


async def test_the_budget_holds_for_parent_and_sub_agents_together(tmp_path: Path) -> None:
    """Each reply costs 0.00007: the parent's call and two of the three sub-agents use it up."""
    limits = ("--max-budget-usd", "0.0002", "--output-format", "json")
    tasks = ("TASK one", "TASK two", "TASK three")
    begins_with = {f'"{task}': submits(task) for task in tasks}
    answers = begins_with | {"go": spawns(*tasks, strategy="sequential")}
    ran = await run(tmp_path, answers, *limits)
    assert (ran.code, ran.json["subtype"], ran.json["num_turns"]) == (53, "error_max_budget_usd", 1)
    assert [one["status"] for one in ran.json["agents"]] == ["success", "success", "failure"]


async def test_a_turn_that_a_sub_agent_wakes_has_what_is_left_of_the_turns(tmp_path: Path) -> None:
    asked = asyncio.Event()

    async def answers(talk: Talk) -> None:
        asked.set()
        await says("It works in the background.")(talk)

    async def comes_later(talk: Talk) -> None:
        await asked.wait()
        await submits("first")(talk)

    limits = ("--max-turns", "2", "--output-format", "json")
    ran = await run(tmp_path, BACKGROUND | {"started": answers, "TASK one": comes_later}, *limits)
    assert (ran.code, ran.json["subtype"], ran.json["num_turns"]) == (53, "error_max_turns", 2)
    assert ran.json["error"] == "The --max-turns limit was reached before the sub-agents' results were read."


async def test_a_background_sub_agent_and_the_turn_it_wakes_are_waited_for(tmp_path: Path) -> None:
    ran = await run(tmp_path, BACKGROUND)
    assert (ran.code, ran.out) == (0, "The child is back.\n")


async def test_unless_told_not_to_then_it_is_stopped_and_named(tmp_path: Path) -> None:
    ran = await run(tmp_path, BACKGROUND | {"TASK one": never_ends}, "--no-wait-agents")
    assert (ran.code, ran.out) == (0, "It works in the background.\n")
    assert "phoenix: 1 sub-agent stopped with the run: TASK one" in ran.err


async def test_the_time_limit_holds_for_the_whole(tmp_path: Path) -> None:
    limits = ("--timeout", "3", "--output-format", "json")
    ran = await run(tmp_path, BACKGROUND | {"TASK one": never_ends}, *limits)
    assert (ran.code, ran.json["subtype"]) == (53, "error_timeout")
    assert all(one["status"] == "cancelled" for one in ran.json["agents"])


async def test_a_run_that_ended_badly_waits_for_nobody(tmp_path: Path) -> None:
    limits = ("--max-turns", "1", "--output-format", "json")
    ran = await run(tmp_path, BACKGROUND | {"TASK one": never_ends}, *limits)
    assert (ran.code, ran.json["subtype"]) == (53, "error_max_turns")
    assert "1 sub-agent stopped with the run: TASK one" in ran.err


async def test_nobody_is_there_to_allow_a_sub_agent(tmp_path: Path) -> None:
    ran = await run(tmp_path, {"does not allow": says("I may not."), "go": spawns("TASK one")}, mode="deny")
    assert (ran.code, ran.out) == (0, "I may not.\n")


async def test_a_question_of_a_sub_agent_counts_as_deny(tmp_path: Path) -> None:
    answers = {
        "Sub-agent results": says("It may not."),
        "this run cannot ask": submits("I may not."),
        "TASK one": calls("bash", command="touch made"),
        "go": spawns("TASK one"),
    }
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "rules.toml").write_text('allow = ["spawn_agents(*)"]\n')
    ran = await run(tmp_path, answers, "--output-format", "json", mode="ask")
    assert [one["tool_name"] for one in ran.json["permission_denials"]] == ["bash"], ran
    assert (ran.json["result"], ran.json["agents"][0]["status"]) == ("It may not.", "success")
    assert not (tmp_path / "work" / "made").exists()


async def test_a_signal_ends_every_sub_agent_with_its_processes(claude: Claude) -> None:
    sleeps = calls("bash", command="echo $$ > pid; exec sleep 600")
    phoenix, server = await claude(by_last_message(BACKGROUND | {"TASK one": sleeps}))
    process = await _started(phoenix)
    assert await poll(lambda: _content(phoenix.cwd / "pid") and len(server.requests) > 2)
    pid = _content(phoenix.cwd / "pid")
    process.send_signal(signal.SIGTERM)
    ran = await ended(process)
    assert ran.code == 143
    assert poll_blocking(lambda: not Path(f"/proc/{pid}").exists())


async def _started(phoenix: Phoenix) -> asyncio.subprocess.Process:
    return await phoenix.start("-p", "--permission-mode", "auto", "go")


def _content(path: Path) -> str:
    return path.read_text().strip() if path.exists() else ""


async def test_the_flag_is_for_scripts_alone(tmp_path: Path) -> None:
    ran = await phoenix_in(tmp_path).run("--no-wait-agents")
    assert (ran.code, ran.err) == (2, "phoenix: --no-wait-agents works with -p; add -p.\n")


REVIEWER = """---
name: reviewer
description: Finds mistakes
tools: Read, Grep
model: haiku
permissionMode: bypassPermissions
---
Review like an owl.
"""
SPAWNS = calls("Task", description="Look", prompt="Look at it.", subagent_type="reviewer")


def told(body: Any) -> str:
    """Kinds of agents that a request names."""
    return json.dumps([tool for tool in body["tools"] if tool["name"] == "spawn_agents"])


async def test_an_agent_of_a_trusted_project_works_under_its_name(claude: Claude) -> None:
    phoenix, server = await claude(SPAWNS, says("Found."), says("Done."))
    write(phoenix.cwd / ".claude/agents/deep/a.md", REVIEWER)
    write(phoenix.home / ".claude/agents/mine.md", "---\ndescription: The user's own\n---\nWork.\n")
    ran = await phoenix.run("-p", "Go", "--trust", "--allowed-tools", "spawn_agents", "--output-format", "json")
    first, child, *_, last = bodies(server)
    assert (ran.code, ran.json["result"]) == (0, "Done.")
    assert "Also:\\nreviewer: Finds mistakes\\nmine: The user's own" in told(first)
    assert "Review like an owl." in json.dumps(child["system"])
    assert child["model"] == "claude-haiku-5-5"
    assert {"read_file", "search"} <= {one["name"] for one in child["tools"]}
    assert "bash" not in {one["name"] for one in child["tools"]}
    assert told(last) == told(first), "the cached beginning of the request stays"


async def test_an_agent_of_a_project_without_trust_is_neither_named_nor_found(claude: Claude) -> None:
    phoenix, server = await claude(SPAWNS, says("Done."))
    write(phoenix.cwd / ".claude/agents/a.md", REVIEWER)
    ran = await phoenix.run("-p", "Go", "--allowed-tools", "spawn_agents")
    first, second = bodies(server)
    assert "reviewer" not in json.dumps(first)
    assert "There is no profile 'reviewer'" in json.dumps(second["messages"][-1])
    assert "1 agent" in ran.err


@pytest.mark.parametrize(
    ("sources", "names"), [("user,project", {"reviewer", "mine"}), ("project", {"reviewer"}), ("user", {"mine"})]
)
async def test_a_host_says_whose_agents_count(claude: Claude, sources: str, names: set[str]) -> None:
    phoenix, server = await claude(says("Hi."))
    write(phoenix.cwd / ".claude/agents/a.md", REVIEWER)
    write(phoenix.home / ".claude/agents/mine.md", "Work.\n")
    async with hosted(phoenix, f"--setting-sources={sources}") as host:
        agents = {"mine": {"description": "The host's", "prompt": "x"}} if "user" in sources else {}
        answer = (await host.ask("initialize", agents=agents))["response"]
        init = (await host.turn("Go"))[0]
    [body] = bodies(server)
    known = {one["name"]: one["description"] for one in answer["agents"]}
    assert names == {"reviewer", "mine"} & known.keys() == {"reviewer", "mine"} & set(init["agents"])
    assert names == {name for name in ("reviewer", "mine") if name in told(body)}
    assert known.get("mine", "The host's") == "The host's", "a name of the host's wins"
    assert init["agents"].count("mine") == len(names & {"mine"})


async def test_a_file_that_changes_during_the_run_is_used_no_more(claude: Claude) -> None:
    phoenix, server = await claude(says("Hi."), SPAWNS, says("Done."))
    path = write(phoenix.cwd / ".claude/agents/a.md", REVIEWER)
    async with hosted(phoenix, "--setting-sources=project", "--allowedTools", "Agent") as host:
        await host.turn("Hi")
        path.write_text(REVIEWER.replace("owl", "wolf"))
        await host.turn("Go")
    first, second, third = bodies(server)
    assert ("reviewer" in told(first), "reviewer" in told(second)) == (True, False)
    assert "There is no profile 'reviewer'" in json.dumps(third["messages"][-1])


async def test_a_run_takes_an_agent_as_its_profile_by_flag_and_by_setting(claude: Claude) -> None:
    phoenix, server = await claude(says("Hi."), says("Hi."))
    write(phoenix.cwd / ".claude/agents/a.md", REVIEWER)
    write(phoenix.home / ".claude/agents/mine.md", "---\nmaxTurns: 3\n---\nWork like a bee.\n")
    write(phoenix.home / "config.toml", 'profile = "mine"\n')
    waiting = await phoenix.run("-p", "Go", "--profile", "reviewer")
    flag = await phoenix.run("-p", "Go", "--profile", "reviewer", "--trust", "--permission-mode", "ask")
    setting = await phoenix.run("-p", "Go")
    shown = await phoenix.run("-p", "Go", "--profile", "nope")
    first, second = bodies(server)
    assert (flag.code, setting.code) == (0, 0), flag.err + setting.err
    assert (waiting.code, shown.code) == (2, 2)
    assert waiting.err.startswith("phoenix: There is no profile 'reviewer' for ")
    assert shown.err.strip().endswith("Known are general, explore, code, review, research, reviewer, mine.")
    assert ("Review like an owl." in json.dumps(first["system"]), first["model"]) == (True, "claude-haiku-5-5")
    assert "bash" not in {one["name"] for one in first["tools"]}
    assert "Work like a bee." in json.dumps(second["system"])


async def test_the_skills_of_an_agent_are_in_its_prompt_but_for_those_it_may_not_load(claude: Claude) -> None:
    phoenix, server = await claude(SPAWNS, says("Found."), says("Done."))
    skills = "skills:\n  - owls\n  - gone\n  - by-hand\n  - shell\n---"
    write(phoenix.cwd / ".claude/agents/a.md", REVIEWER.replace("---\nReview", f"{skills}\nReview"))
    write(phoenix.cwd / ".claude/skills/owls/SKILL.md", "---\ndescription: Owls\n---\nOwls see $0 at night.")
    write(phoenix.cwd / ".claude/skills/by-hand/SKILL.md", "---\ndisable-model-invocation: true\n---\nBy hand.")
    write(phoenix.cwd / ".claude/skills/shell/SKILL.md", "Run !`echo ran`.")
    await phoenix.run("-p", "Go", "--trust", "--allowed-tools", "spawn_agents")
    first, child, *_ = bodies(server)
    system = json.dumps(child["system"])
    assert "# Skills of this agent" in system
    assert "Owls see $0 at night." in system
    assert str(phoenix.cwd / ".claude/skills/owls") in system
    assert [text for text in ("By hand.", "echo ran", "# Skills\\n") if text in system] == []
    assert "Owls see" not in json.dumps(first["system"])


def efforts(server: Loopback) -> list[object]:
    """The level in each request, None where it has none."""
    configs = [seen.json.get("output_config") for seen in server.requests if seen.path.startswith("/v1/messages")]
    return [config["effort"] if isinstance(config, dict) else None for config in configs]


async def test_the_flag_beats_the_profile_and_the_profile_beats_the_setting(claude: Claude) -> None:
    phoenix, server = await claude(*(says("Yes.") for _ in range(4)))
    (phoenix.home / "profiles").mkdir(parents=True)
    (phoenix.home / "profiles" / "mine.md").write_text("---\neffort: low\n---\n")
    assert (await phoenix.run("-p", "a")).code == 0
    with (phoenix.home / "config.toml").open("a") as config:
        config.write('effort = "high"\nauto_title = false\n')
    for flags in ((), ("--profile", "mine"), ("--profile", "mine", "--effort", "max")):
        assert (await phoenix.run("-p", *flags, "a")).code == 0
    assert efforts(server) == [None, "high", "low", "max"]


async def test_a_resumed_conversation_keeps_its_effort_until_a_flag_changes_it(claude: Claude) -> None:
    phoenix, server = await claude(*(says("Yes.") for _ in range(4)))
    for flags in (("--effort", "max"), ("-c",), ("-c", "--effort", "low"), ("-c", "--fork")):
        assert (await phoenix.run("-p", *flags, "a")).code == 0
    assert efforts(server) == ["max", "max", "low", "low"]
    assert rows(phoenix, "SELECT effort FROM conversations ORDER BY rowid") == [("low",), ("low",)]


async def test_an_unknown_level_names_all_of_them(tmp_path: Path) -> None:
    phoenix = with_claude(tmp_path, "http://127.0.0.1:1")
    ran = await phoenix.run("-p", "--effort", "ultra", "a")
    assert ran.code == 2
    assert "'default', 'off', 'low', 'medium', 'high', 'max'" in ran.err
    (phoenix.home / "config.toml").write_text('effort = "ultra"\n')
    ran = await phoenix.run("-p", "a")
    assert ran.code == 2
    assert "config.toml:1" in ran.err
    assert "default, off, low, medium, high, max" in ran.err


async def test_lines_offer_levels_by_number_and_say_what_is_in_use(claude: Claude) -> None:
    phoenix, server = await claude(says("Yes."))
    async with program(phoenix, "--screen-reader", "--effort", "low", rows=200, columns=400) as running:
        await running.shows("claude-sonnet-5-5, effort low.")
        await running.press("/effort\r", "2. low (now), little reasoning", "5. max, as much as the model can")
        await running.press("5\r", "Effort max: as much as the model can.")
        await running.press("hello\r", "Assistant: Yes.")
        running.type("/effort low\r")
        await running.shows("little reasoning. The next request reads 15 tokens anew: the cache is of one effort.")
    assert efforts(server)[0] == "max"


@pytest.mark.parametrize(
    ("setting", "told"),
    [
        ("", "anthropic/claude-haiku-5-5 writes titles, summaries and the task board, without thinking"),
        ("openai/x", "openai/x writes titles, summaries and the task board, without thinking"),
        ("off", "anthropic/claude-sonnet-5-5 writes titles and summaries itself; the task board is off unless"),
    ],
)
async def test_doctor_names_the_model_of_requests_in_the_background(tmp_path: Path, setting: str, told: str) -> None:
    given = {"PHOENIX_TASK_TRACKING": "auto"} | ({"PHOENIX_CHEAP_MODEL": setting} if setting else {})
    ran = await with_claude(tmp_path, "http://127.0.0.1:9", **given).run("doctor", "--json")
    (found,) = [one["text"] for one in ran.json if one["topic"] == "background"]
    assert found.startswith(told)


@pytest.mark.parametrize(("wanted", "progress", "asked"), [("auto", "disabled", 1), ("on", "success", 2)])
async def test_a_run_keeps_the_task_board_where_the_user_chose_on(
    tmp_path: Path, wanted: str, progress: str, asked: int
) -> None:
    answers = {"Current Messages": says("Nothing to record."), "go": says("Done.")}
    async with serve(by_last_message(answers)) as server:
        phoenix = with_claude(tmp_path, server.url, PHOENIX_TASK_TRACKING=wanted)
        ran = await phoenix.run("-p", "go")
        assert (ran.code, ran.out) == (0, "Done.\n")
        assert rows(phoenix, "SELECT DISTINCT task_process_status FROM messages") == [(progress,)]
        models = [body["model"] for body in bodies(server)]
        assert models == ["claude-sonnet-5-5", "claude-haiku-5-5"][:asked]
