"""Sampling requests that break every rule: the helper passes on what can be read, and goes on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from tests.support.mcp_helper import helper
from tests.support.mcp_raw import RawServer, raw_server
from tests.support.waiting import poll
from tools.mcp_host.protocol import CallTool, ServerAsk
from tools.mcp_sampling import SampleRefused, read_sample

AUDIO: Final = '{"type":"audio","data":"aGk=","mimeType":"audio/wav"}'


def request(content: str = '{"type":"text","text":"hi"}', tokens: str = "10", more: str = "") -> str:
    return f'{{"messages":[{{"role":"user","content":{content}}}],"maxTokens":{tokens}{more}}}'


def nested(depth: int) -> str:
    return "[" * depth + "]" * depth


UNREADABLE: Final = (
    request(more=f',"tools":[{{"name":"x","inputSchema":{nested(20_000)}}}]'),
    request(more=f',"metadata":{{"a":{nested(20_000)}}}'),
    request('{"type":"text","text":"\\ud800"}'),
)
"""Lines that are no JSON for the SDK: dropped."""
WRONG: Final = (request(tokens="1e308"), request('{"type":"odd"}'), "{}")
PASSED_ON: Final = (
    request(more=f',"metadata":{{"a":{nested(150)}}}'),
    request(tokens="1" + "0" * 400),
    request(tokens="-5"),
    request(AUDIO),
    request(json.dumps([{"type": "text", "text": ""}] * 20_000)),
)


async def test_hostile_requests_are_dropped_answered_with_an_error_or_passed_on_bounded(tmp_path: Path) -> None:
    async def sampling(server: RawServer, number: Any) -> None:
        for place, params in enumerate((*UNREADABLE, *WRONG, *PASSED_ON)):
            line = f'{{"jsonrpc":"2.0","id":"s{place}","method":"sampling/createMessage","params":{params}}}\n'
            await server.send_bytes(line.encode())
        await server.text(number, "sent")

    hostile = RawServer({"sampling": sampling})
    async with helper(tmp_path) as running, raw_server(hostile):
        await running.connect(hostile.pipes, sampling=True)
        await running.reply(CallTool(id=running.number(), server="s", tool="sampling"))

        def asks() -> list[ServerAsk]:
            return [one for one in running.events if isinstance(one, ServerAsk)]

        def errors() -> list[int]:
            return [one["error"]["code"] for one in hostile.received if str(one.get("id")).startswith("s")]

        assert await poll(lambda: (len(asks()), len(errors())) == (len(PASSED_ON), len(WRONG)))
        assert errors() == [-32602] * len(WRONG)
        assert [outcome(one) for one in asks()] == [
            10,
            4_096,
            "maxTokens of a sampling request must be at least 1.",
            "Audio in a sampling request is not supported.",
            "A message of a sampling request needs 1 to 100 parts that are not empty.",
        ]


def outcome(asked: ServerAsk) -> object:
    """Tokens of a request that can be answered, or the refusal."""
    try:
        return read_sample(asked.params).max_tokens
    except SampleRefused as refused:
        return refused.sentence
