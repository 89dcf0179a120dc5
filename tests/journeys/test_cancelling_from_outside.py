"""A run is found, cancelled and waited for from another process: of a screen, of `phoenix -p`, and one sub-agent."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli import Phoenix, ended, with_claude
from tests.support.event_lines import rows_of
from tests.support.journeys import Answer, calls, picks, rows, says
from tests.support.loopback import Seen, serve
from tests.support.program import alive, mark, program
from tests.support.waiting import poll

pytestmark = pytest.mark.pty
ENDED_BY = "Another process cancelled the run."
TASKS = [{"task": "TASK sleep"}, {"task": "TASK count"}]


def sleeps(marked: str, call_id: str = "toolu_1") -> Answer:
    """A call whose three processes outlive their shell, one of them in a session of its own."""
    return calls("bash", call_id, command=f"sleep {marked} & setsid sleep {marked} & sleep {marked}")


def sleeping(marked: str) -> list[int]:
    return alive(f"sleep\0{marked}")


async def under_way(phoenix: Phoenix) -> list[dict[str, Any]]:
    listed = (await phoenix.run("runs", "list", "--json")).json
    return [one for one in listed if one["status"] == "running"]


def ends(phoenix: Phoenix) -> list[tuple[str, str, str]]:
    """Ends of runs among the events: type, run, and who ended it or with which code."""
    found = [row for row in rows_of(phoenix.home / "phoenix.db") if row["type"] in {"task:cancelled", "task:failed"}]
    return [(row["type"], row["run_id"], row["payload"].get("agentId") or row["payload"]["code"]) for row in found]


async def test_a_run_on_a_screen_is_found_cancelled_and_its_whole_tree_is_dead(tmp_path: Path) -> None:
    marked = mark()
    async with serve(sleeps(marked), says("Here I am.")) as server:
        phoenix = with_claude(tmp_path, server.url)
        async with program(phoenix, "--permission-mode", "auto") as running:
            await running.ready()
            await running.send("Sleep")
            await running.until(lambda: len(sleeping(marked)) == 3, "three sleeping processes")
            [run] = await under_way(phoenix)
            assert (run["prompt"], run["owner_pid"]) == ("Sleep", running.pid)
            run_id = run["task_id"]
            waiting = asyncio.ensure_future(phoenix.run("runs", "wait", run_id))
            cancelled = await phoenix.run("runs", "cancel", run_id)
            assert (cancelled.code, cancelled.out) == (0, f"Run {run_id[:8]}: cancelled\n")
            assert sleeping(marked) == []
            await running.shows("■ stopped by another process after", "4 processes ended", "ready")
            assert "by you" not in running.words
            waited = await waiting
            assert (waited.code, waited.out) == (130, f"Run {run_id[:8]}: cancelled\n")
            shown = (await phoenix.run("runs", "show", run_id, "--json")).json
            assert (shown["status"], shown["error"], shown["owner_pid"]) == ("cancelled", ENDED_BY, None)
            assert ends(phoenix) == [("task:cancelled", run_id, "system")]
            assert rows(phoenix, "SELECT * FROM cancel_requests") == []
            await running.send("Still there?")
            await running.shows("Here I am.")


@pytest.mark.parametrize("output", ["text", "json", "stream-json"])
async def test_a_headless_run_says_who_cancelled_it_and_its_whole_tree_is_dead(tmp_path: Path, output: str) -> None:
    marked = mark()
    async with serve(sleeps(marked)) as server:
        phoenix = with_claude(tmp_path, server.url)
        process = await phoenix.start("-p", "--permission-mode", "auto", "--output-format", output, "Sleep")
        assert await poll(lambda: len(sleeping(marked)) == 3)
        [run] = await under_way(phoenix)
        assert (await phoenix.run("runs", "cancel", run["task_id"])).code == 0
        assert sleeping(marked) == []
        ran = await ended(process)
        assert (ran.code, ran.err.splitlines()[-1]) == (130, f"phoenix: {ENDED_BY}")
        if output == "text":
            assert ran.out == ""
        else:
            result = json.loads(ran.out.splitlines()[-1])
            assert (result["type"], result["subtype"], result["errors"]) == ("result", "cancelled", [ENDED_BY])
            assert (result["task_id"], result["terminal_reason"]) == (run["task_id"], "aborted_tools")
        assert ends(phoenix) == [("task:cancelled", run["task_id"], "system")]
        assert (await phoenix.run("runs", "wait", run["task_id"])).code == 130


async def test_a_sub_agent_is_cancelled_alone_and_its_own_transcript_says_by_whom(tmp_path: Path) -> None:
    first, second = mark(), mark()

    def talks(seen: Seen) -> Answer:
        said: Any = seen.json["messages"]
        opening = json.dumps(said[0])
        if "TASK sleep" in opening:
            return sleeps(first, "toolu_a")
        if "TASK count" in opening:
            return sleeps(second, "toolu_b")
        has_results = "tool_result" in json.dumps(said)
        return says("One was stopped.") if has_results else calls("spawn_agents", tasks=TASKS)

    async with serve(picks(talks)) as server:
        phoenix = with_claude(tmp_path, server.url)
        async with program(phoenix, "--permission-mode", "auto", columns=120, rows=40) as running:
            await running.ready()
            await running.send("begin")
            await running.until(lambda: len(sleeping(first)) == len(sleeping(second)) == 3, "six processes")
            agents = {one["prompt"]: one for one in await under_way(phoenix) if one["parent_session_id"]}
            one, other = agents["TASK sleep"], agents["TASK count"]
            cancelled = await phoenix.run("runs", "cancel", one["session_id"])
            assert (cancelled.code, cancelled.out) == (0, f"Run {one['task_id'][:8]}: cancelled\n")
            assert sleeping(first) == []
            assert len(sleeping(second)) == 3
            await running.shows("sub-agents 1/2 done", "■ TASK sleep")
            assert (await phoenix.run("runs", "cancel", other["session_id"])).code == 0
            assert sleeping(second) == []
            await running.shows("One was stopped.", "ready")
            for agent in (one, other):
                shown = (await phoenix.run("runs", "show", agent["session_id"], "--json")).json
                assert (shown["task_id"], shown["status"]) == (agent["task_id"], "cancelled")
            notices = "SELECT text FROM messages WHERE origin = 'notice' AND conversation_id = '{}'"
            for agent in (one, other):
                [(notice,)] = rows(phoenix, notices.format(agent["session_id"]))
                assert notice.startswith("Stopped by another process after ")
                assert notice.endswith("4 processes ended")
        cancelled_runs = {run_id for kind, run_id, _ in ends(phoenix) if kind == "task:cancelled"}
        assert cancelled_runs == {one["task_id"], other["task_id"]}
