"""Every line of `phoenix -p --output-format stream-json` against what the parsers of Claude's SDKs demand."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final
from uuid import UUID

import pytest

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
