"""Questions of the model in lines: numbered options, an answer for each, Esc declines; `phoenix -p` offers no tool."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.support.cli import with_claude
from tests.support.journeys import calls, result_text, says
from tests.support.loopback import serve
from tests.support.program import ESC, program
from tests.support.questions import COLOUR, PARTS

ROWS, COLUMNS = 200, 200


async def test_questions_are_read_out_and_answered_one_after_the_other(tmp_path: Path) -> None:
    async with serve(calls("ask_user", questions=[COLOUR, PARTS]), says("Done.")) as server:
        phoenix = with_claude(tmp_path, server.url)
        async with program(phoenix, "--screen-reader", rows=ROWS, columns=COLUMNS) as running:
            await running.shows("You:")
            running.type("go\r")
            await running.shows(
                "The agent asks you, 2 questions.", "Question 1 of 2, Colour: Which colour?", "1. Red: warm"
            )
            running.type("2\r")
            await running.shows("Question 2 of 2, Parts: Which parts?", "Answer, or Enter to skip:")
            running.type("1,3\r")
            await running.shows("Assistant: Done.")
    assert result_text(server.requests[1]) == '"Which colour?"="Blue"\n"Which parts?"="API, Tests"'


async def test_own_words_answer_and_esc_declines(tmp_path: Path) -> None:
    answers = (
        calls("ask_user", questions=[COLOUR]),
        calls("ask_user", "toolu_2", questions=[COLOUR]),
        says("Done."),
    )
    async with serve(*answers) as server:
        phoenix = with_claude(tmp_path, server.url)
        async with program(phoenix, "--screen-reader", rows=ROWS, columns=COLUMNS) as running:
            await running.shows("You:")
            running.type("go\r")
            await running.shows("The agent asks you.", "2. Blue: cold")
            running.type("green\r")
            await running.until(lambda: len(server.requests) == 2)
            await running.until(lambda: running.text.count("2. Blue: cold") == 2)
            running.type(ESC)
            await running.shows("Assistant: Done.")
    assert result_text(server.requests[1]) == '"Which colour?"="green"'
    assert result_text(server.requests[2]) == "The user declined to answer"


async def test_the_tool_is_not_offered_without_a_user(tmp_path: Path) -> None:
    async with serve(says("Hello.")) as server:
        ran = await with_claude(tmp_path, server.url).run("-p", "Hello")
    assert ran.code == 0
    tools: Any = server.requests[0].json["tools"]
    assert "ask_user" not in [tool["name"] for tool in tools]
