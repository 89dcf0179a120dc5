"""Moving a long command to the background in lines, and the report of its end."""

from __future__ import annotations

from pathlib import Path

from tests.support.cli import with_claude
from tests.support.journeys import calls, result_text, says
from tests.support.loopback import serve
from tests.support.program import alive, mark, program


async def test_the_command_that_runs_is_sent_there_listed_and_ended(tmp_path: Path) -> None:
    marked = mark()
    answers = (calls("bash", command=f"echo begun; sleep {marked}"), says("I go on."))
    async with (
        serve(*answers) as server,
        program(with_claude(tmp_path, server.url), "--screen-reader", "--permission-mode", "auto", rows=100) as running,
    ):
        await running.shows("You:")
        running.type("/background\r")
        await running.shows("Nothing is running.")
        running.type("sleep\r")
        await running.until(lambda: len(alive(f"sleep\0{marked}")) == 1, "a sleeping process")
        running.type("/background\r")
        await running.shows("It continues in the background; /jobs lists it.")
        await running.shows("Tool bash, continues in the background as job-1", "Assistant: I go on.")
        assert "it runs on as job job-1" in result_text(server.requests[1])
        assert len(alive(f"sleep\0{marked}")) == 1
        running.type("/background\r")
        await running.shows("No running command can be sent to the background.")
        running.type("/jobs\r")
        await running.shows("Background commands:", f"1. echo begun; sleep {marked}, running ")
        running.type("1\r")
        await running.shows("1. Read its output", "2. Stop it")
        running.type("1\r")
        await running.shows(f"echo begun; sleep {marked} running ", "begun\n")
        running.type("/jobs\r")
        await running.until(lambda: running.words.count("Background commands:") == 2, "the list again")
        running.type("1\r")
        await running.until(lambda: running.words.count("2. Stop it") == 2, "its actions again")
        running.type("2\r")
        await running.shows(f"Background command ended, killed: echo begun; sleep {marked}")
        assert alive(f"sleep\0{marked}") == []
        running.type("/jobs\r1\r")
        await running.shows(f"1. echo begun; sleep {marked}, killed after", "1. Read its output")
