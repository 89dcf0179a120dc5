"""A model with tools: asked, answered, shown, refused."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.support.cli import with_claude
from tests.support.journeys import calls, calls_all, result_text, results, rows, says
from tests.support.loopback import Loopback, Talk, serve
from tests.support.program import ENTER, ESC, Program, alive, mark, program
from tests.support.waiting import typing_guard

pytestmark = pytest.mark.pty


async def asked(running: Program, message: str = "Do it") -> None:
    """Send a message and wait for the question it leads to; the typing guard is over afterwards."""
    await running.ready()
    await running.send(message)
    await running.shows("y once", "asks")
    await typing_guard()


def requests(server: Loopback) -> list[str]:
    return [seen.path for seen in server.requests]


async def test_a_command_is_asked_about_run_and_its_patch_shown(tmp_path: Path) -> None:
    edits = [{"op": "replace", "old": "one", "new": "two"}]
    answers = (
        calls("bash", command="printf 'one\\n' > a.txt; echo made $((40 + 2))"),
        calls("read_file", "toolu_2", path="a.txt"),
        calls("patch", "toolu_3", path="a.txt", edits=edits),
        says("All ", "done."),
    )
    async with serve(*answers) as server, program(with_claude(tmp_path, server.url)) as running:
        await asked(running)
        await running.shows("printf 'one\\n' > a.txt; echo made $((40 + 2))")
        assert not (tmp_path / "work" / "a.txt").exists()
        running.type("y")
        await running.shows("wants to edit a.txt", "- one", "+ two")
        await typing_guard()
        running.type("y")
        await running.shows("All done.", "a.txt +1 -1", "ready")
        assert (tmp_path / "work" / "a.txt").read_text() == "two\n"
        assert "made 42" in result_text(server.requests[1])


async def test_a_letter_typed_while_the_question_appears_is_text(tmp_path: Path) -> None:
    go_on = asyncio.Event()

    async def slowly(talk: Talk) -> None:
        await go_on.wait()
        await calls("bash", command="touch made")(talk)

    async with serve(slowly, says("Fine.")) as server, program(with_claude(tmp_path, server.url)) as running:
        await running.ready()
        await running.send("Do it")
        await server.wait_asked()
        running.type("well, ")  # typing begins before the question appears
        await running.shows("well,")
        go_on.set()
        await running.until(lambda: "y  once" in running.text.replace("\u00a0", " "))
        running.type("yes, and then")
        await running.shows("well, yes, and then")
        assert "asks" in running.text
        assert not (tmp_path / "work" / "made").exists()
        await typing_guard()
        running.type("y")  # the composer holds text: still text
        await running.shows("well, yes, and theny")
        assert len(server.requests) == 1
        running.type(b"\x7f" * 20)
        await running.lacks("well,")
        await typing_guard()
        running.type("y")
        await running.shows("Fine.")
        assert (tmp_path / "work" / "made").exists()


async def test_yes_for_this_conversation_asks_no_more_in_it(tmp_path: Path) -> None:
    command = "echo again"
    answers = (calls("bash", command=command), calls("bash", "toolu_2", command=command), says("Twice."))
    async with serve(*answers) as server, program(with_claude(tmp_path, server.url)) as running:
        await asked(running)
        running.type("s")
        await running.shows("Twice.")
        assert ["again" in result_text(seen) for seen in server.requests[1:]] == [True, True]


async def test_always_shows_its_rule_and_keeps_it_over_a_restart(tmp_path: Path) -> None:
    command = "echo again"
    answers = (
        calls("bash", command=command),
        says("First."),
        calls("bash", "toolu_2", command=command),
        says("Second."),
    )
    async with serve(*answers) as server:
        phoenix = with_claude(tmp_path, server.url)
        async with program(phoenix) as running:
            await asked(running)
            running.type("a")
            await running.shows("bash(echo*)")
            await running.lacks("y once")
            await typing_guard()  # reading a rule takes longer
            running.type(ENTER)
            await running.shows("First.")
        assert "echo*" in (phoenix.home / "rules.toml").read_text()
        async with program(phoenix) as running:
            await running.ready()
            await running.send("Once more")
            await running.shows("Second.")
        assert "again" in result_text(server.requests[3])


async def test_no_and_no_with_a_reason_reach_the_model(tmp_path: Path) -> None:
    answers = (
        calls("bash", command="touch made"),
        calls("bash", "toolu_2", command="touch other"),
        says("As you like."),
    )
    async with serve(*answers) as server, program(with_claude(tmp_path, server.url)) as running:
        await asked(running)
        running.type("n")
        await running.shows(
            "User denied permission to run bash.", "1 y once 2 s this conversation: only this exact command"
        )
        running.type("r")
        await running.shows("No, because …")
        running.type("use make instead")
        await running.shows("use make instead")
        running.type(ENTER)
        await running.shows("As you like.")
    assert result_text(server.requests[1]) == "User denied permission to run bash."
    assert result_text(server.requests[2]) == "User denied permission to run bash: use make instead"
    assert list((tmp_path / "work").iterdir()) == []


async def test_esc_at_a_question_stops_the_run_and_every_call_has_its_result(tmp_path: Path) -> None:
    both = calls_all(("bash", "toolu_1", {"command": "touch made"}), ("bash", "toolu_2", {"command": "touch made"}))
    async with serve(both, says("Going on.")) as server:
        phoenix = with_claude(tmp_path, server.url)
        async with program(phoenix) as running:
            await asked(running)
            running.type(ESC)
            await running.shows("ready")
            await running.lacks("y once")
            await running.send("Go on")
            await running.shows("Going on.")
        texts = {one["tool_use_id"]: str(one["content"]) for one in results_anywhere(server)}
        assert "Cancelled by user" in texts["toolu_1"]
        assert "Skipped due to cancellation" in texts["toolu_2"]
        assert rows(phoenix, "select count(*) from messages where role = 'user'")[0][0] >= 2


def results_anywhere(server: Loopback) -> list[dict[str, object]]:
    """Tool results in whatever message of the last request."""
    messages = server.requests[-1].json["messages"]
    assert isinstance(messages, list)
    return [
        block
        for message in messages
        for block in message["content"]
        if isinstance(block, dict) and block["type"] == "tool_result"
    ]


async def test_a_command_that_leaves_something_behind_says_so_and_it_is_gone(tmp_path: Path) -> None:
    marked = mark()
    answers = (calls("bash", command=f"nohup sleep {marked} >/dev/null 2>&1 & echo started"), says("Left."))
    async with (
        serve(*answers) as server,
        program(with_claude(tmp_path, server.url), "--permission-mode", "auto") as running,
    ):
        await running.ready()
        await running.send("Start it")
        await running.shows("Left.")
        assert alive(marked) == []
        (result,) = results(server.requests[1])
        assert "1 background process" in str(result["content"])
