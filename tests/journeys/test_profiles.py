"""Profiles, a supervisor, sub-agents and the task board."""

from __future__ import annotations

import json
import re
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from phoenix_tui.keys.key_order import PAUSE
from tests.support.cli import Phoenix, phoenix_in, with_claude
from tests.support.journeys import Answer, Claude, calls, picks, rows, says, starts_to_say
from tests.support.loopback import Seen, Talk, serve
from tests.support.loopback_anthropic import Event, recording, refuse, start, stop, text, tool
from tests.support.program import DOWN, ENTER, ESC, on_screen, program
from tests.support.waiting import typing_guard

pytestmark = pytest.mark.pty

MINE = "---\ndescription: looks at migrations\npermission_mode: plan\nmax_turns: 3\n---\nBe careful with locks.\n"
EDITOR = """#!/bin/sh
[ "$1" = +1 ] || exit 1
printf -- '---\\ncolour: red\\n---\\n' > "$2"
"""


def system(seen: Seen) -> str:
    """The system prompt of a request."""
    parts: Any = seen.json["system"]
    return parts if isinstance(parts, str) else "\n".join(part["text"] for part in parts)


def write(folder: Path, name: str, text: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.md").write_text(text)
    return folder / f"{name}.md"


async def test_a_profile_gives_prompt_and_mode_and_what_is_added_counts_too(claude: Claude) -> None:
    phoenix, server = await claude(says("Fine."))
    write(phoenix.home / "profiles", "migrations", MINE)
    asked = ("-p", "look", "--profile", "migrations", "--append-system-prompt", "In French.")
    ran = await phoenix.run(*asked, "--output-format", "stream-json")
    assert ran.code == 0, ran.err
    assert ran.lines[0]["permission_mode"] == "plan"
    assert "Be careful with locks.\n\nIn French." in system(server.requests[0])
    assert rows(phoenix, "SELECT profile, permission_mode FROM conversations") == [("migrations", "plan")]


async def test_a_projects_profile_counts_only_when_it_is_trusted(claude: Claude) -> None:
    phoenix, server = await claude(says("Fine."))
    write(phoenix.cwd / ".phoenix" / "profiles", "release", MINE.replace("plan", "auto"))
    asked = ("-p", "look", "--profile", "release", "--permission-mode", "ask")
    refused = await phoenix.run(*asked)
    assert refused.code == 2
    assert "is not trusted: 1 of its profiles left out; --trust accepts the files as they are now." in refused.err
    assert "The profile 'release' is defined by the project. " in refused.err
    ran = await phoenix.run(*asked[:-2], "--trust")
    assert ran.code == 0, ran.err
    assert "Be careful with locks." in system(server.requests[0])
    assert rows(phoenix, "SELECT permission_mode FROM conversations") == [("deny",)]


async def test_the_doctor_names_profiles_and_what_is_wrong_with_them(tmp_path: Path) -> None:
    phoenix = phoenix_in(tmp_path)
    mine = write(phoenix.home / "profiles", "migrations", MINE)
    broken = write(phoenix.home / "profiles", "broken", "---\nlocked: maybe\n---\n")
    write(phoenix.cwd / ".phoenix" / "profiles", "release", MINE)
    ran = await phoenix.run("doctor", "--json")
    assert ran.code == 1
    assert [(row["health"], row["text"]) for row in ran.json if row["topic"] == "profiles"] == [
        ("ok", "general, explore, code, review, research"),
        ("ok", f"migrations, {mine}"),
        ("bad", f"{broken}:2: 'locked' must be true or false, not 'maybe'."),
        (
            "note",
            f"{phoenix.cwd} is not trusted: 1 of its profiles left out; --trust accepts the files as they are now.",
        ),
    ]


@pytest.mark.pty
async def test_a_profile_is_made_in_the_editor_and_its_mistake_is_named(claude: Claude, tmp_path: Path) -> None:
    editor = tmp_path / "editor.sh"
    editor.write_text(EDITOR)
    editor.chmod(0o755)
    plain, server = await claude(says("Here."))
    phoenix = Phoenix(plain.home, plain.cwd, {**plain.extra, "EDITOR": str(editor)})
    async with on_screen(phoenix) as running:
        await running.press("/profile", "┃ /profile")
        running.type(ENTER)
        typed = time.monotonic()
        await running.shows("Built in", "explore")
        await running.until(lambda: time.monotonic() - typed > PAUSE, "letters that act again")
        await running.press("n", "Name of the new profile")
        await running.press("mine\r", "a template with explanations")
        await running.press(ENTER, "mine.md", "line 2: 'colour: red' is not a valid key")
        assert (phoenix.home / "profiles" / "mine.md").read_text() == "---\ncolour: red\n---\n"
        write(phoenix.home / "profiles", "mine", MINE)
        running.type(b"\x1b")
        await running.lacks("Built in")
        await running.send("/profile mine", "This conversation starts as mine: mode plan")
        await running.send("where is it", "Here.")
    assert "Be careful with locks." in system(server.requests[0])
    spoken = "SELECT profile, permission_mode FROM conversations WHERE id IN (SELECT conversation_id FROM messages)"
    assert rows(phoenix, spoken) == [("mine", "plan")]  # a command that was typed slowly is kept as a draft beside it


TESTS, DOCS = "Find every test of the retry loop", "Compare the docs with the code"
DECISION = {
    "strategy": "parallel",
    "agents": [
        {"agentName": "explore", "taskDescription": TESTS, "priority": "high"},
        {"agentName": "research", "taskDescription": DOCS, "priority": "normal"},
    ],
    "reasoning": "two parts that need nothing of each other",
    "confidence": 0.87,
}


def route(seen: Seen) -> Answer:
    """The supervisor decides, the agents hand in, the main model sums up."""
    said = json.dumps(seen.json["messages"])
    if "You are the supervisor" in json.dumps(seen.json["system"]):
        return says(json.dumps(DECISION))
    if "Sub-agent results" in said:
        return says("Both are back.")
    if TESTS in said or DOCS in said:
        return calls("submit_result", "toolu_submit", result="found it")
    return says("I answered alone.")


def routing(phoenix: Phoenix, **settings: str) -> Phoenix:
    return Phoenix(phoenix.home, phoenix.cwd, {**phoenix.extra, **settings})


def routes(phoenix: Phoenix) -> list[tuple[Any, ...]]:
    query = """SELECT strategy, json_extract(routing_json, '$.outcome'), r.status FROM runs AS r
        JOIN conversations AS c ON c.id = r.conversation_id WHERE c.kind = 'user' ORDER BY r.rowid"""
    return rows(phoenix, query)


@pytest.mark.pty
async def test_a_decision_is_overruled_and_the_next_one_started(tmp_path: Path) -> None:
    async with serve(picks(route)) as server:
        phoenix = routing(with_claude(tmp_path, server.url), PHOENIX_ROUTE_WAIT="600")
        async with on_screen(phoenix, "--permission-mode", "auto") as running:
            await running.send("/route on", "· route ·")
            await running.send("Look at the relay")
            await running.shows("2 agents in parallel · 87% sure", "explore (high)", TESTS, "routing: 2 agents")
            await typing_guard()
            await running.press(b"n", "I answered alone.", "as you decided", "ready")
            await running.send("And again", "y starts now")
            await running.press(ESC, "stopped")
            await running.send("Once more", "y starts now")
            await typing_guard()
            await running.press(ENTER, "Both are back.", "ready")
        ended = [("single", "alone", "success"), ("single", None, "cancelled"), ("parallel", "as decided", "success")]
        assert routes(phoenix) == ended
        assert rows(phoenix, "SELECT agent_id, origin FROM messages WHERE agent_id IS NOT NULL") == [
            ("supervisor", "subagent")
        ]


async def test_a_script_starts_at_once_and_is_told_of_the_decision(tmp_path: Path) -> None:
    async with serve(picks(route)) as server:
        phoenix = routing(with_claude(tmp_path, server.url), PHOENIX_ROUTE="true")
        asked = ("-p", "Look at the relay", "--permission-mode", "auto", "--output-format", "stream-json")
        ran = await phoenix.run(*asked)
        assert ran.code == 0, ran.err
        told = [line for line in ran.lines if line.get("subtype") == "phoenix_route"]
        assert [line["strategy"] for line in told] == ["parallel"]
        assert [agent["profile"] for agent in told[0]["agents"]] == ["explore", "research"]
        assert ran.lines[-1]["result"] == "Both are back."
        assert routes(phoenix) == [("parallel", "as decided", "success")]
        query = "SELECT r.type, r.status FROM runs AS r JOIN conversations AS c ON c.id = r.conversation_id"
        assert rows(phoenix, f"{query} WHERE c.kind = 'subagent'") == [("research", "success"), ("research", "success")]


ALT_N, ALT_P, ALT_S, ALT_U = b"\x1bn", b"\x1bp", b"\x1bs", b"\x1bu"
TASKS = [{"task": "TASK make a file"}, {"task": "TASK read the docs"}]


def talks(seen: Seen) -> Answer:
    """Answer chosen by the asking conversation, its first message and its results so far."""
    said: Any = seen.json["messages"]
    messages, first = json.dumps(said), json.dumps(said[0])
    if "TASK make" in first:
        if "tool_result" in messages:
            return calls("submit_result", "toolu_s", result="The file is made.\nIt is empty.")
        return calls("bash", "toolu_b", command="touch made.txt")
    if "TASK read" in first:
        return starts_to_say("I read on ", "and on.")
    if "begin" in first:
        return says("One did it, one was stopped.") if "tool_result" in messages else calls("spawn_agents", tasks=TASKS)
    return says("A title")


async def test_they_are_seen_answered_entered_stopped_alone_and_listed_after_a_kill(claude: Claude) -> None:
    phoenix, _ = await claude(picks(talks))
    async with on_screen(phoenix, "--permission-mode", "ask", columns=120, rows=40) as running:
        await running.send("begin", "Start 2 sub-agents?")
        await typing_guard()
        await running.press(
            "y", "sub-agents 0/2 done", "TASK make a file (sub-agent of begin): Run a command?", "asks you"
        )
        await typing_guard()
        await running.press("y", "✓ TASK make a file", "sub-agents 1/2 done", "Esc stops 1 sub-agent")
        assert (phoenix.cwd / "made.txt").is_file()
        running.type(ALT_P)
        await running.shows("TASK read the docs (sub-agent of begin) 2 of 2", "and on.", "Esc stops this sub-agent")
        await running.press(ALT_N, "TASK make a file (sub-agent of begin) 1 of 2", "Esc returns to its parent")
        await running.press(ALT_N, "2 of 2", "and on.")
        await running.press(ESC, "Esc returns to its parent")
        await running.press(ALT_U, "◇ spawn_agents 1 of 2 sub-agents succeeded", "One did it, one was stopped.")
        await running.shows("■ TASK read the docs cancelled", "ready")
        running.signal(signal.SIGKILL)
        await running.exit_code()
    assert rows(phoenix, "select result_status, result_text from conversations where kind = 'subagent'") == [
        ("success", "The file is made.\nIt is empty."),
        ("cancelled", ""),
    ]
    async with program(phoenix, "-c", columns=120, rows=40) as running:
        await running.shows("One did it, one was stopped.", "ready")
        running.type(ALT_S)
        await running.shows("2 sub-agents Enter opens", "› ✓ TASK make a file", "■ TASK read the docs cancelled")
        await running.press(ENTER, "TASK make a file (sub-agent of begin) 1 of 2", "submit_result")


F3 = b"\x1bOR"
MANY_LINES = "\n\n".join(f"Line {number}." for number in range(60))
TASK_ROWS = "SELECT ord, status, json_extract(data_json, '$.task_description') FROM tracked_tasks ORDER BY ord"


async def track_tasks(talk: Talk) -> None:
    """Answer a message at length; as the task agent, make a task of every message of the user."""
    if await refuse(talk):
        return
    body = talk.seen.json
    parts: list[Event | list[Event]] = [text(0, f"Answer to it.\n\n{MANY_LINES}"), stop()]
    if "insert_task" in json.dumps(body.get("tools", [])):
        before, _, current = json.dumps(body["messages"]).rpartition("## Current Messages")
        there = len(re.findall(r"Task \d+: .*? \(Status", before))
        asked = re.findall(r"<message id=(\d+)>User: (.*?)</message>", current)
        calls: list[tuple[str, dict[str, object]]] = []
        for order, (seq, words) in enumerate(asked, start=there + 1):
            calls.append(("insert_task", {"after_task_order": order - 1, "task_description": words}))
            calls.append(("append_messages_to_task", {"task_order": order, "message_ids": [int(seq), int(seq) + 1]}))
        calls.append(("finish", {}))
        parts = [*(tool(n, name, json.dumps(given), tool_id=f"t{n}") for n, (name, given) in enumerate(calls))]
        parts.append(stop("tool_use"))
    await talk.begin()
    await talk.send(*recording(start(), *parts))
    await talk.end()


async def test_requests_become_tasks_while_one_looks_and_lead_back_to_their_messages(claude: Claude) -> None:
    phoenix, _ = await claude(track_tasks, PHOENIX_TASK_TRACKING="on")
    async with on_screen(phoenix, rows=30, columns=100) as running:
        await running.send("find the slow query", "Line 59.", "○ ready")
        await running.send("then write release notes")
        await running.until(lambda: "then write release notes" in running.text and "Line 59." in running.text)
        await running.until(lambda: rows(phoenix, "SELECT count(*) FROM messages") == [(4,)])
        await running.press(F3, "Tasks", "tracking on")
        await running.press("f", "1  find the slow query", "2  then write release notes", "tracked 4")
        await running.press(DOWN + b"s", "Status of task 2")
        await running.press(DOWN + ENTER, "Task 2 is done.")
        running.type("k")
        await running.press(ENTER, "Task 1", "#1  you: find the slow query")
        running.type(ENTER)
        await running.lacks("Milestones")
        await running.until(lambda: "find the slow query" in running.text and "Line 0." in running.text)
        await running.lacks("Line 59.")
        await running.press(F3, "done     2  then write release notes")
        running.type(ESC)
        await running.lacks("tracked 4")
    assert rows(phoenix, TASK_ROWS) == [
        (1, "running", "find the slow query"),
        (2, "success", "then write release notes"),
    ]
