"""Messages of a host during a run: read with the next tool results, else answered in turns of their own."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

from tests.phoenix_tui.cli.test_control_servers import bodies
from tests.support.cli import Phoenix, with_claude
from tests.support.control_host import ControlHost, Frame, hosted
from tests.support.loopback import Answer, serve
from tests.support.loopback_agents import calls, never_ends, says
from tests.support.waiting import poll

FLAGS = ("--allowedTools", "Bash", "--replay-user-messages")


def waits() -> Answer:
    """A command that says that it runs, and goes on until the test lets it end."""
    return calls("bash", {"command": "touch began; while [ ! -e go ]; do sleep 0.05; done; echo ended"})


def results(host: ControlHost) -> list[Frame]:
    return [one for one in host.frames if one["type"] == "result"]


def replayed(host: ControlHost) -> list[str]:
    return [one["uuid"] for one in host.frames if one.get("isReplay")]


def queued(phoenix: Phoenix) -> int:
    """Messages in the queue of the conversation."""
    with closing(sqlite3.connect(next(phoenix.home.rglob("phoenix.db")))) as connection:
        return int(connection.execute("SELECT count(*) FROM queued_messages").fetchone()[0])


async def begins(host: ControlHost, phoenix: Phoenix) -> None:
    """Send a message whose run stands in its command."""
    host.say("Go", uuid="u-1")
    assert await poll((phoenix.cwd / "began").exists)


async def test_a_message_during_a_run_is_read_with_the_next_tool_results(tmp_path: Path) -> None:
    async with serve(waits(), says("Both.")) as server:
        phoenix = with_claude(tmp_path, server.url)
        async with hosted(phoenix, *FLAGS) as host:
            await begins(host, phoenix)
            host.say("Mind the tests", uuid="u-2")
            host.say("And the docs", uuid="u-3")
            assert await poll(lambda: queued(phoenix) == 2)
            (phoenix.cwd / "go").touch()
            assert await host.close() == 0
        first, second = bodies(server)
    sent = json.dumps(second["messages"])
    assert "Mind the tests" not in json.dumps(first)
    assert sent.index("ended") < sent.index("Mind the tests") < sent.index("And the docs")
    [result] = results(host)
    assert (result["result"], result["user_message_uuids"]) == ("Both.", ["u-1", "u-2", "u-3"])
    assert replayed(host) == ["u-1", "u-2", "u-3"]
    assert queued(phoenix) == 0


async def test_a_message_that_the_run_does_not_read_gets_a_turn_of_its_own(tmp_path: Path) -> None:
    async with serve(waits(), says("First."), says("Second.")) as server:
        phoenix = with_claude(tmp_path, server.url)
        async with hosted(phoenix, *FLAGS) as host:
            await begins(host, phoenix)
            (phoenix.cwd / "go").touch()
            await host.wait(lambda one: one["type"] == "assistant" and "First." in json.dumps(one))
            host.say("And then?", uuid="u-2")
            assert await host.close() == 0
    assert [(one["result"], one["user_message_uuids"]) for one in results(host)] == [
        ("First.", ["u-1"]),
        ("Second.", ["u-2"]),
    ]
    assert queued(phoenix) == 0


async def test_a_message_in_the_last_reply_waits_for_its_own_turn(tmp_path: Path) -> None:
    async with serve(never_ends, says("Second.")) as server:
        phoenix = with_claude(tmp_path, server.url)
        async with hosted(phoenix, *FLAGS, "--include-partial-messages") as host:
            host.say("Go", uuid="u-1")
            await host.wait(lambda one: one["type"] == "stream_event")
            host.say("Stop, and do this", uuid="u-2")
            assert await poll(lambda: queued(phoenix) == 1)
            answer = await host.ask("interrupt")
            assert await host.close() == 0
        _, second = bodies(server)
    assert answer["response"] == {"still_queued": ["u-2"]}
    assert [(one["terminal_reason"], one["user_message_uuids"]) for one in results(host)] == [
        ("aborted_streaming", ["u-1"]),
        ("completed", ["u-2"]),
    ]
    assert "Stop, and do this" in json.dumps(second["messages"][-1])
    assert queued(phoenix) == 0


async def test_a_command_file_waits_for_its_own_turn(tmp_path: Path) -> None:
    async with serve(waits(), says("First."), says("Second.")) as server:
        phoenix = with_claude(tmp_path, server.url)
        (phoenix.home / "commands").mkdir()
        (phoenix.home / "commands" / "check.md").write_text("Check all of it.")
        async with hosted(phoenix, *FLAGS) as host:
            await begins(host, phoenix)
            host.say("/check", uuid="u-2")
            host.say("And the docs", uuid="u-3")
            (phoenix.cwd / "go").touch()
            assert await host.close() == 0
        _, second, third, *_ = bodies(server)
    assert "Check all of it." not in json.dumps(second)
    assert "Check all of it." in json.dumps(third)
    assert results(host)[0]["user_message_uuids"] == ["u-1"]
    assert sorted(uuid for one in results(host) for uuid in one["user_message_uuids"]) == ["u-1", "u-2", "u-3"]


async def test_messages_beyond_the_queue_of_a_run_wait_and_none_is_lost(tmp_path: Path) -> None:
    async with serve(waits(), says("Read.")) as server:
        phoenix = with_claude(tmp_path, server.url)
        async with hosted(phoenix, *FLAGS) as host:
            await begins(host, phoenix)
            for number in range(102):
                host.say(f"note {number}", uuid=f"n-{number}")
            assert await poll(lambda: queued(phoenix) == 100)
            (phoenix.cwd / "go").touch()
            assert await host.close() == 0
    read = [uuid for one in results(host) for uuid in one["user_message_uuids"]]
    assert read == ["u-1", *(f"n-{number}" for number in range(102))]
