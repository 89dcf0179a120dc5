"""`--json-schema`: the answer as JSON of a given shape, with and without a host."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.cli import with_claude
from tests.support.control_host import hosted
from tests.support.loopback import Loopback, serve
from tests.support.loopback_agents import calls, says

SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "people": {"type": "integer", "minimum": 1}},
    "required": ["city"],
}
FLAG = ("--json-schema", json.dumps(SCHEMA))
GIVES = calls("submit_structured", {"city": "Basel", "people": 3})
ENDS = says("Done.")


def asked(server: Loopback) -> list[str]:
    return [one.body.decode() for one in server.requests if one.method == "POST"]


async def test_an_answer_is_printed_as_json(tmp_path: Path) -> None:
    async with serve(GIVES, ENDS) as server:
        phoenix = with_claude(tmp_path, server.url)
        ran = await phoenix.run("-p", *FLAG, "--output-format", "json", "Where?")
    assert ran.json["structured_output"] == {"city": "Basel", "people": 3}
    assert json.loads(ran.json["result"]) == {"city": "Basel", "people": 3}
    async with serve(GIVES, ENDS) as server:
        ran = await with_claude(tmp_path, server.url).run("-p", *FLAG, "Where?")
    assert (ran.code, json.loads(ran.out)) == (0, {"city": "Basel", "people": 3})


async def test_a_wrong_answer_is_sent_back_with_its_place(tmp_path: Path) -> None:
    wrong = calls("submit_structured", {"city": "Basel", "people": 0})
    async with serve(wrong, GIVES, ENDS) as server:
        ran = await with_claude(tmp_path, server.url).run("-p", *FLAG, "--output-format", "json", "Where?")
        bodies = asked(server)
    assert ran.json["structured_output"] == {"city": "Basel", "people": 3}
    assert "/people must be at least 1" in bodies[1]


async def test_a_model_that_forgets_the_answer_is_reminded_once(tmp_path: Path) -> None:
    async with serve(says("Basel."), GIVES, ENDS) as server:
        ran = await with_claude(tmp_path, server.url).run("-p", *FLAG, "--output-format", "json", "Where?")
        bodies = asked(server)
    assert ran.json["structured_output"]["city"] == "Basel"
    assert "You have not called submit_structured yet" in bodies[1]
    async with serve(says("Basel.")) as server:
        ran = await with_claude(tmp_path, server.url).run("-p", *FLAG, "--output-format", "json", "Where?")
        assert len(asked(server)) == 2
    assert ("structured_output" in ran.json, ran.json["subtype"], ran.json["result"]) == (False, "success", "Basel.")


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ("{", "--json-schema needs a JSON schema"),
        ("/nowhere/schema.json", "No such file"),
        ('{"type": "array"}', "must describe an object"),
        ('{"type": "object", "if": {}}', "The keyword if at # is not supported"),
    ],
)
async def test_a_schema_that_cannot_be_checked_is_a_wrong_usage(tmp_path: Path, schema: str, words: str) -> None:
    async with serve() as server:
        ran = await with_claude(tmp_path, server.url).run("-p", "--json-schema", schema, "Where?")
    assert (ran.code, ran.out) == (2, "")
    assert words in ran.err
    assert "Traceback" not in ran.err


async def test_a_host_gets_the_answer_of_each_turn(tmp_path: Path) -> None:
    answers = (GIVES, ENDS, says("No."), says("No."))
    async with serve(*answers) as server, hosted(with_claude(tmp_path, server.url), *FLAG) as host:
        first = await host.turn("Where?")
        second = await host.turn("And now?")
    assert "StructuredOutput" in first[0]["tools"]
    names = [
        block["name"]
        for one in first
        if one["type"] == "assistant"
        for block in one["message"]["content"][:1]
        if block["type"] == "tool_use"
    ]
    assert names == ["StructuredOutput"]
    assert first[-1]["structured_output"] == {"city": "Basel", "people": 3}
    assert "structured_output" not in second[-1]
    assert [one["type"] for one in second].count("result") == 1


async def test_a_schema_counts_only_without_a_screen(tmp_path: Path) -> None:
    async with serve() as server:
        ran = await with_claude(tmp_path, server.url).run(*FLAG, "Where?")
    assert ran.code == 2
    assert "--json-schema works with -p" in ran.err
