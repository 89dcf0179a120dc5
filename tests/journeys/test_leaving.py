"""Leaving: keys, signals and hang-ups, with servers and hooks that run."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from tests.support.cli import ROOT, Phoenix, ended, with_claude
from tests.support.event_lines import rows_of
from tests.support.hooked import write_hooks
from tests.support.journeys import Answer, Claude, calls, picks, result_text, rows, says, starts_to_say
from tests.support.loopback import Seen, serve
from tests.support.mcp_hubs import KINDS
from tests.support.processes import SHAPES, Watch, watching
from tests.support.program import CTRL_Q, ESC, Program, alive, family, gone, mark, on_screen, program
from tests.support.waiting import poll

pytestmark = pytest.mark.pty


@dataclass(frozen=True, slots=True)
class Busy:
    """A program whose model runs a command."""

    running: Program
    phoenix: Phoenix
    marked: str


@asynccontextmanager
async def busy(folder: Path) -> AsyncGenerator[Busy]:
    marked = mark()
    command = f"sleep {marked} & setsid sleep {marked} & sleep {marked}"
    async with serve(calls("bash", command=command), says("Late.")) as server:
        phoenix = with_claude(folder, server.url)
        async with on_screen(phoenix, "--permission-mode", "auto") as running:
            await running.send("Sleep")
            await running.until(lambda: len(alive(f"sleep\0{marked}")) == 3, "three sleeping processes")
            yield Busy(running, phoenix, marked)


def given_back(running: Program) -> list[str]:
    """Modes of the terminal that were not restored; none, if all is well."""
    raw, missing = bytes(running.raw), [] if running.terminal_is_back else ["termios"]
    for name, on, off in (
        ("alternate screen", b"\x1b[?1049h", b"\x1b[?1049l"),
        ("mouse", b"\x1b[?1000h", b"\x1b[?1000l"),
        ("mouse moves", b"\x1b[?1003h", b"\x1b[?1003l"),
        ("mouse form", b"\x1b[?1006h", b"\x1b[?1006l"),
        ("paste", b"\x1b[?2004h", b"\x1b[?2004l"),
        ("cursor", b"\x1b[?25l", b"\x1b[?25h"),
    ):
        if raw.rfind(off) <= raw.rfind(on):
            missing.append(name)
    return missing


async def test_quitting_with_a_running_command_asks_then_leaves_nothing(tmp_path: Path) -> None:
    async with busy(tmp_path) as one:
        children = family(one.running.pid)
        one.running.type(CTRL_Q)
        await one.running.shows("1 run is still active. Quit and stop it?")
        one.running.type(ESC)
        await one.running.lacks("Quit and stop it?")
        assert len(alive(f"sleep\0{one.marked}")) == 3
        one.running.type(CTRL_Q)
        await one.running.shows("1 run is still active. Quit and stop it?")
        one.running.type("y")
        assert await one.running.exit_code() == 0
        assert given_back(one.running) == []
        (conversation,) = rows(one.phoenix, "select id from conversations")[0]
        assert f"phoenix --resume {conversation}".encode() in one.running.raw
        assert alive(one.marked) == []
        await one.running.until(lambda: gone(children), "the end of every process of Phoenix")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
async def test_a_signal_gives_the_terminal_back_and_leaves_no_process(
    tmp_path: Path, number: signal.Signals, code: int
) -> None:
    async with busy(tmp_path) as one:
        children = family(one.running.pid)
        one.running.signal(number)
        assert await one.running.exit_code() == code
        assert given_back(one.running) == []
        assert alive(one.marked) == []
        await one.running.until(lambda: gone(children), "the end of every process of Phoenix")
        (state,) = rows(one.phoenix, "select state from conversations")[0]
        assert "idle" in str(state).lower()


async def test_a_second_signal_does_not_undo_the_first(tmp_path: Path) -> None:
    async with busy(tmp_path) as one:
        one.running.signal(signal.SIGTERM)
        one.running.signal(signal.SIGHUP)
        one.running.signal(signal.SIGTERM)
        assert await one.running.exit_code(5.0) in {129, 143}
        assert alive(one.marked) == []


async def test_a_terminal_that_hangs_up_leaves_nothing(tmp_path: Path) -> None:
    async with busy(tmp_path) as one:
        children = family(one.running.pid) | {one.running.pid}
        one.running.hang_up()
        assert await poll(lambda: gone(children))
        assert alive(one.marked) == []


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 143)])
async def test_a_headless_run_ends_by_signal_with_a_valid_conversation(
    claude: Claude, number: signal.Signals, code: int
) -> None:
    marked = mark()
    command = f"setsid sleep {marked} & sleep {marked}"
    phoenix, server = await claude(calls("bash", command=command), says("Going on."))
    process = await phoenix.start("-p", "--permission-mode", "auto", "Sleep")
    assert await poll(lambda: len(alive(f"sleep\0{marked}")) == 2)
    process.send_signal(number)
    ran = await ended(process)
    assert ran.code == code
    assert "Traceback" not in ran.err
    assert alive(marked) == []
    again = await phoenix.run("-p", "-c", "Go on")
    assert (again.code, again.out) == (0, "Going on.\n")
    told = "Cancelled by user" if number is signal.SIGINT else "[Tool execution interrupted by restart]"
    assert told in str(server.requests[1].json["messages"])
    status = "cancelled" if number is signal.SIGINT else "interrupted"
    assert rows(phoenix, "select status from runs order by rowid limit 1") == [(status,)]


async def test_a_headless_run_stopped_while_it_writes_keeps_the_question(claude: Claude) -> None:
    phoenix, server = await claude(starts_to_say("Half an "), says("Whole."))
    process = await phoenix.start("-p", "Tell me")
    await server.wait_asked()
    process.send_signal(signal.SIGINT)
    assert (await ended(process)).code == 130
    await server.wait_closed()
    again = await phoenix.run("-p", "-c", "Go on")
    assert (again.code, again.out) == (0, "Whole.\n")
    messages = str(server.requests[1].json["messages"])
    assert "Tell me" in messages
    assert "Half an" not in messages


TREES: Final = "\n".join(f"( {shape.script}\n) </dev/null >/dev/null 2>&1 &" for shape in SHAPES)
COUNT: Final = sum(shape.processes for shape in SHAPES)
SERVER_NAME: Final = "trees"


def configured(phoenix: Phoenix, server: Watch, hook: Watch) -> Phoenix:
    """Write a server and a hook of the user: both start all trees, and the hook then waits."""
    start = server.command(f"{TREES}\nPYTHONPATH={ROOT} exec {' '.join(KINDS)}")
    argv = ["/usr/bin/env", *(f"{name}={value}" for name, value in start.environment.items()), *start.argv]
    phoenix.home.mkdir(parents=True, exist_ok=True)
    with (phoenix.home / "config.toml").open("a", encoding="utf-8") as config:
        config.write(f"\n[mcp.{SERVER_NAME}]\ncommand = {json.dumps(argv[0])}\nargs = {json.dumps(argv[1:])}\n")
    run = hook.command(f"{TREES}\nwait")
    inner = ["/usr/bin/env", *(f"{name}={value}" for name, value in run.environment.items()), *run.argv]
    entry = {"type": "command", "command": inner[0], "args": inner[1:]}
    hooks = {"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [entry]}]}}
    (phoenix.home / "hooks.json").write_text(json.dumps(hooks), encoding="utf-8")
    return phoenix


async def both_stand(running: Program, server: Watch, hook: Watch) -> None:
    """Ask for a command, and wait until every process of both trees runs."""
    await running.ready()
    await running.send("Run it")
    await running.until(lambda: server.stands(COUNT + 1), "all trees of the server")
    await running.until(lambda: hook.stands(COUNT + 1), "all trees of the hook")


async def test_esc_ends_every_tree_of_a_hook_and_the_server_goes_on(tmp_path: Path) -> None:
    echo = calls(f"mcp__{SERVER_NAME}__echo", text="still here")
    with watching() as server, watching() as hook:
        async with serve(calls("bash", command="echo never"), echo, says("Good.")) as model:
            phoenix = configured(with_claude(tmp_path, model.url), server, hook)
            async with program(phoenix, "--permission-mode", "auto") as running:
                await both_stand(running, server, hook)
                running.type(ESC)
                await running.until(lambda: not hook.alive(), "the end of the hook")
                await running.shows("stopped by you")
                await running.until(lambda: server.stands(COUNT + 1), "all trees of the server, still")
                await running.until((phoenix.home / "mcp_cache.json").exists, "the tools of the server")
                await running.send("Are you there?", "Good.")
                assert result_text(model.requests[-1]) == "still here"
        assert await poll(lambda: not server.alive())


def quits(running: Program) -> None:
    running.type(CTRL_Q + b"y")


def is_killed(running: Program) -> None:
    os.kill(running.pid, signal.SIGKILL)


ENDS: Final[dict[str, Callable[[Program], None]]] = {
    "quit": quits,
    "a closed terminal": lambda running: running.hang_up(),
    "SIGKILL": is_killed,
}


@pytest.mark.parametrize("end", ENDS)
async def test_no_process_of_a_server_or_a_hook_outlives_phoenix(end: str, tmp_path: Path) -> None:
    with watching() as server, watching() as hook:
        async with (
            serve(calls("bash", command="echo never"), says("Good.")) as model,
            program(configured(with_claude(tmp_path, model.url), server, hook), "--permission-mode", "auto") as running,
        ):
            await both_stand(running, server, hook)
            ENDS[end](running)
            await running.until(lambda: not (server.alive() | hook.alive()), "the end of every tree")


SESSION_ENDS: Final[dict[str, tuple[Callable[[Program], None], str]]] = {
    "quit": (lambda running: running.type(CTRL_Q), "prompt_input_exit"),
    "SIGTERM": (lambda running: running.signal(signal.SIGTERM), "other"),
    "a closed terminal": (lambda running: running.hang_up(), "other"),
}


@pytest.mark.parametrize("end", SESSION_ENDS)
async def test_a_hook_hears_why_the_session_ended(claude: Claude, tmp_path: Path, end: str) -> None:
    seen = tmp_path / "seen"
    leave, reason = SESSION_ENDS[end]
    phoenix, _ = await claude(says("Good."))
    write_hooks(phoenix.home / "hooks.json", SessionEnd=f"cat > {seen}.new; mv {seen}.new {seen}")
    async with program(phoenix) as running:
        await running.send("Hi", "Good.", "○ ready")
        leave(running)
        await running.until(seen.exists, "the end of the session")
    assert f'"reason":"{reason}"' in seen.read_text()


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


async def test_a_run_on_a_screen_is_found_cancelled_and_its_whole_tree_is_dead(claude: Claude) -> None:
    marked = mark()
    phoenix, _ = await claude(sleeps(marked), says("Here I am."))
    async with on_screen(phoenix, "--permission-mode", "auto") as running:
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
        await running.send("Still there?", "Here I am.")


@pytest.mark.parametrize("output", ["text", "json", "stream-json"])
async def test_a_headless_run_says_who_cancelled_it_and_its_whole_tree_is_dead(claude: Claude, output: str) -> None:
    marked = mark()
    phoenix, _ = await claude(sleeps(marked))
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


async def test_a_sub_agent_is_cancelled_alone_and_its_own_transcript_says_by_whom(claude: Claude) -> None:
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

    phoenix, _ = await claude(picks(talks))
    async with on_screen(phoenix, "--permission-mode", "auto", columns=120, rows=40) as running:
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
            assert "4 processes ended" in notice
    cancelled_runs = {run_id for kind, run_id, _ in ends(phoenix) if kind == "task:cancelled"}
    assert cancelled_runs == {one["task_id"], other["task_id"]}
