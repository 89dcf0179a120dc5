"""Lines of `phoenix -p --output-format stream-json` against what the parsers of Claude's SDKs demand."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final
from uuid import UUID

import pytest

from engine.machine.messages import Origin, Role, TextBlock, ThinkingBlock, ToolUseBlock, Usage
from engine.records import StoredMessage
from phoenix_tui.cli.blocks import encode
from phoenix_tui.cli.reporters import Partials
from tests.support.cli import with_claude
from tests.support.control_host import hosted
from tests.support.journeys import Claude, calls, says
from tests.support.loopback import Loopback, serve
from tests.support.sdk_runs import RUNS

LONGEST_LINE: Final = 1024 * 1024
"""Bytes that the Python SDK buffers by default; a longer line ends its session."""
NUMBER: Final = (int, float)
DEMANDED: Final[dict[str, dict[str, type | tuple[type, ...]]]] = {
    "assistant": {"message.content": list, "message.model": str, "message.id": str, "message.usage": dict},
    "user": {"message.content": list},
    "stream_event": {"event.type": str, "uuid": str, "session_id": str},
    "system/init": {
        **dict.fromkeys(("cwd", "model", "permissionMode", "apiKeySource", "claude_code_version", "output_style"), str),
        **dict.fromkeys(("tools", "mcp_servers", "slash_commands", "agents", "skills", "plugins"), list),
    },
    "system/api_retry": {"attempt": int, "max_retries": int, "retry_delay_ms": int, "error": str},
    "system/compact_boundary": {"compact_metadata.trigger": str, "compact_metadata.pre_tokens": int},
    "system/phoenix_route": {},
    "result": {
        **dict.fromkeys(("duration_ms", "duration_api_ms", "num_turns"), int),
        **dict.fromkeys(("subtype", "result", "session_id", "terminal_reason"), str),
        **dict.fromkeys(("usage", "modelUsage"), dict),
        "is_error": bool,
        "permission_denials": list,
        "stop_reason": (str, type(None)),
        "total_cost_usd": (*NUMBER, type(None)),
    },
}
"""Required fields and their types, by type and subtype. Measured with claude-agent-sdk 0.2.187 (a missing key is an
error there) and with the types of @anthropic-ai/claude-agent-sdk 0.3.330; `make sdk-parsers` measures again."""
BLOCKS: Final = {
    "text": ("text",),
    "thinking": ("thinking", "signature"),
    "redacted_thinking": ("data",),
    "tool_use": ("id", "name", "input"),
    "tool_result": ("tool_use_id", "content", "is_error"),
}
OF_A_MODEL: Final[dict[str, type | tuple[type, ...]]] = {
    **dict.fromkeys(("inputTokens", "outputTokens", "cacheReadInputTokens", "cacheCreationInputTokens"), int),
    **dict.fromkeys(("webSearchRequests", "contextWindow", "maxOutputTokens"), int),
    "costUSD": (*NUMBER, type(None)),
}
REASONS: Final = {
    "error of the server": "api_error",
    "bad key": "api_error",
    "a refusal": "model_error",
    "interrupted": "aborted_streaming",
    "terminated": "aborted_streaming",
    "time": "aborted_streaming",
    "turns": "max_turns",
    "budget": "budget_exhausted",
}
"""`terminal_reason` by run; `completed` for all others."""
STOPS: Final = {"tools": "end_turn", "a refusal": "refusal", "turns": "tool_use", "bad key": None}
"""`stop_reason` by run: the reason of its last call."""


def at(line: Any, path: str) -> Any:
    for name in path.split("."):
        line = line[name]
    return line


def faults(line: dict[str, Any]) -> Iterator[str]:
    """Faults of a line for a parser."""
    kind = "/".join(filter(None, (line["type"], line["subtype"] if line["type"] == "system" else "")))
    for path, wanted in {"uuid": str, "session_id": str, **DEMANDED[kind]}.items():
        try:
            found = at(line, path)
        except KeyError:
            yield f"{kind} has no {path}"
            continue
        if not isinstance(found, wanted):
            yield f"{kind}: {path} is {found!r}"
    for block in line["message"]["content"] if kind in {"assistant", "user"} else ():
        yield from (f"{block['type']} has no {name}" for name in BLOCKS[block["type"]] if name not in block)


@pytest.mark.parametrize("name", RUNS)
async def test_every_line_has_what_a_parser_demands(tmp_path: Path, name: str) -> None:
    ran = await RUNS[name](tmp_path)
    lines = ran.lines
    result = lines[-1]
    assert [fault for line in lines for fault in faults(line)] == []
    assert max(len(line) for line in ran.out.encode().split(b"\n")) < LONGEST_LINE
    ids = [str(UUID(line["uuid"])) for line in lines]
    assert (len(set(ids)), [line["type"] for line in lines].count("result")) == (len(lines), 1)
    assert result["terminal_reason"] == REASONS.get(name, "completed")
    assert result.get("errors", []) == ([result["error"]] if result["is_error"] else [])
    _check_sums(result)
    if name in STOPS:
        assert result["stop_reason"] == STOPS[name]
    if name == "tools":
        assert 0 < result["duration_api_ms"] <= result["duration_ms"]
        used = result["modelUsage"]["claude-sonnet-5-5"]
        assert (used["contextWindow"], used["maxOutputTokens"]) == (1_000_000, 128_000)
    if name == "refused tools":
        assert (lines[0]["permission_mode"], lines[0]["permissionMode"]) == ("deny", "dontAsk")


def _check_sums(result: dict[str, Any]) -> None:
    models = list(result["modelUsage"].values())
    assert [name for used in models for name, kind in OF_A_MODEL.items() if not isinstance(used[name], kind)] == []
    costs = [used["costUSD"] for used in models]
    assert result["total_cost_usd"] == (None if None in costs else pytest.approx(sum(costs)))
    assert sum(used["outputTokens"] for used in models) == result["total_usage"]["output_tokens"]


SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "people": {"type": "integer", "minimum": 1}},
    "required": ["city"],
}
FLAG = ("--json-schema", json.dumps(SCHEMA))
GIVES = calls("submit_structured", city="Basel", people=3)
ENDS = says("Done.")


def asked(server: Loopback) -> list[str]:
    return [one.body.decode() for one in server.requests if one.method == "POST"]


async def test_an_answer_is_printed_as_json(claude: Claude) -> None:
    phoenix, _ = await claude(GIVES, ENDS)
    ran = await phoenix.run("-p", *FLAG, "--output-format", "json", "Where?")
    assert ran.json["structured_output"] == {"city": "Basel", "people": 3}
    assert json.loads(ran.json["result"]) == {"city": "Basel", "people": 3}
    phoenix, _ = await claude(GIVES, ENDS)
    ran = await phoenix.run("-p", *FLAG, "Where?")
    assert (ran.code, json.loads(ran.out)) == (0, {"city": "Basel", "people": 3})


async def test_a_wrong_answer_is_sent_back_with_its_place(tmp_path: Path) -> None:
    wrong = calls("submit_structured", city="Basel", people=0)
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


REPLY = StoredMessage(
    id="m1",
    seq=2,
    turn_number=1,
    message_number=2,
    role=Role.ASSISTANT,
    origin=Origin.LLM,
    blocks=(ThinkingBlock("hm", "sig"), TextBlock("Hi."), ToolUseBlock("t1", "bash", '{"command":"ls"}')),
    created_at=0.0,
    usage=Usage(1, 2),
)


def test_blocks_open_and_close_around_their_deltas() -> None:
    partials = Partials("a/b")
    events = [*partials.thinking("hm"), *partials.text("H"), *partials.text("i."), *partials.end_message(REPLY)]
    assert [(event["type"], event.get("index")) for event in events] == [
        ("message_start", None),
        ("content_block_start", 0),
        ("content_block_delta", 0),
        ("content_block_stop", 0),
        ("content_block_start", 1),
        ("content_block_delta", 1),
        ("content_block_delta", 1),
        ("content_block_stop", 1),
        ("content_block_start", 2),
        ("content_block_delta", 2),
        ("content_block_stop", 2),
        ("message_delta", None),
        ("message_stop", None),
    ]
    assert events[9]["delta"] == {"type": "input_json_delta", "partial_json": '{"command":"ls"}'}
    assert events[11]["delta"] == {"stop_reason": "tool_use", "stop_sequence": None}


def test_a_dropped_reply_closes_what_is_open_and_the_next_begins_anew() -> None:
    partials = Partials("a/b")
    dropped = [*partials.text("Once"), *partials.drop_message()]
    assert [event["type"] for event in dropped[-2:]] == ["content_block_stop", "message_stop"]
    assert list(partials.drop_message()) == []
    assert [event["type"] for event in partials.text("Again")][:2] == ["message_start", "content_block_start"]


def test_no_control_character_stands_as_itself_in_json() -> None:
    assert encode({"text": "a\x1b\x9b\u2028\u202eü😀\ud800"}) == ('{"text": "a\\u001b\\u009b\\u2028\\u202eü😀\\ud800"}')
