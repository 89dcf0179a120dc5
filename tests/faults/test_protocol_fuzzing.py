"""Thousands of wrong lines of hosts and editors: each gets a proper error or nothing, and the next right one counts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest

from tests.phoenix_tui.cli.test_control_handshake import SENT_BY_SDKS
from tests.support.cli import Phoenix, Ran, phoenix_in
from tests.support.control_host import FLAGS
from tests.support.mutated import broken_lines, mutated
from tests.support.preloaded import EDITOR, run_door

EACH: Final = 700
"""Wrong lines of one run."""
FIELDS: Final[dict[str, Any]] = {
    "mode": "default",
    "model": "demo/guide",
    "serverName": "one",
    "server_name": "one",
    "servers": {"one": {"command": "true", "args": ["x"], "env": {"A": "b"}}},
    "message": {"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {}},
    "enabled": True,
    "title": "Title",
    "max_thinking_tokens": 1_000,
    "message_uuid": "u-1",
    "user_message_id": "u-1",
    "task_id": "t-1",
    "question": "Why?",
    "hooks": {"PreToolUse": [{"matcher": "Bash", "hookCallbackIds": ["a"], "timeout": 3}]},
    "agents": {"helper": {"description": "Helps.", "prompt": "Help.", "tools": ["Read"], "model": "inherit"}},
    "sdkMcpServers": ["one"],
    "skills": ["one"],
    "jsonSchema": {"type": "object", "properties": {"a": {"type": "string"}}},
    "plugins": [{"type": "local", "path": "/x"}],
    "settings": {"permissions": {"deny": ["Bash(rm:*)"]}},
    "dry_run": True,
}
"""Fields of requests of the agent SDKs."""
HOSTS: Final = (
    *(
        {"type": "control_request", "request_id": f"r-{subtype}", "request": {"subtype": subtype, **FIELDS}}
        for subtype in SENT_BY_SDKS
        if subtype not in {"interrupt", "initialize"}
    ),
    {
        "type": "control_response",
        "response": {"subtype": "success", "request_id": "r", "response": {"behavior": "allow"}},
    },
    {"type": "control_cancel_request", "request_id": "r"},
    {"type": "keep_alive"},
)
TEXT: Final = {"type": "text", "text": "hi"}
IMAGE: Final = {"type": "image", "data": "AA==", "mimeType": "image/png"}
EDITORS: Final[tuple[tuple[str, dict[str, Any]], ...]] = (
    ("initialize", {"protocolVersion": 1, "clientCapabilities": {"fs": {"readTextFile": True}, "terminal": True}}),
    ("authenticate", {"methodId": "none"}),
    ("session/new", {"cwd": "/", "mcpServers": [{"name": "one", "command": "true", "args": ["x"], "env": []}]}),
    ("session/load", {"cwd": "/", "sessionId": "x", "mcpServers": []}),
    ("session/resume", {"cwd": "/", "sessionId": "x"}),
    ("session/fork", {"cwd": "/", "sessionId": "x"}),
    ("session/list", {"cwd": "/", "cursor": "0"}),
    ("session/close", {"sessionId": "x"}),
    ("session/delete", {"sessionId": "x"}),
    (
        "session/prompt",
        {"sessionId": "x", "prompt": [TEXT, {"type": "image", "data": "AA==", "mimeType": "image/png"}]},
    ),
    ("session/set_mode", {"sessionId": "x", "modeId": "ask"}),
    ("session/set_model", {"sessionId": "x", "modelId": "demo/guide"}),
    ("session/set_config_option", {"sessionId": "x", "configId": "mode", "value": "ask"}),
)


def check(ran: Ran) -> list[dict[str, Any]]:
    """No line of the answer, and none on stderr, tells of a mistake of Phoenix; the lines."""
    for line in (*ran.out.splitlines(), *ran.err.splitlines()):
        assert [word for word in ("Internal error", "Traceback", "object has no", "Error(") if word in line] == [], line
    return ran.lines


def host(phoenix: Phoenix, messages: list[Any]) -> Ran:
    user = {"type": "user", "message": {"role": "user", "content": "hi"}, "uuid": "last"}
    lines = b"".join(json.dumps(one).encode() + b"\n" for one in [*messages, user])
    return run_door(phoenix, *FLAGS, stdin=lines)


@pytest.mark.parametrize("seed", range(3))
def test_wrong_requests_of_a_host_are_answered_or_passed_by(tmp_path: Path, seed: int) -> None:
    messages = list(mutated(HOSTS, EACH, seed, kept=frozenset({"type"})))
    lines = check(ran := host(phoenix_in(tmp_path), messages))
    results = [line for line in lines if line["type"] == "result"]
    assert (ran.code, [one["subtype"] for one in results]) == (0, ["success"])


@pytest.mark.parametrize("seed", range(4))
def test_a_wrong_handshake_or_message_of_a_host_ends_in_a_sentence_at_most(tmp_path: Path, seed: int) -> None:
    first = {"type": "control_request", "request_id": "i", "request": {"subtype": "initialize", **FIELDS}}
    said = {"type": "user", "message": {"role": "user", "content": [TEXT, dict(TEXT)]}, "uuid": "u", "priority": "now"}
    for number, message in enumerate(mutated([first, said], 8, seed, kept=frozenset({"type"}))):
        folder = tmp_path / str(number)
        folder.mkdir()
        lines = check(ran := host(phoenix_in(folder), [message]))
        assert ran.code in {0, 1, 2, 41}, ran.err  # 41: the guide does not understand the message
        assert [line["type"] for line in lines].count("result") >= (ran.code == 0)


def test_lines_of_a_host_that_are_none_end_the_connection_with_one_sentence(tmp_path: Path) -> None:
    for number, line in enumerate(broken_lines(HOSTS[0])):
        folder = tmp_path / str(number)
        folder.mkdir()
        ran = run_door(phoenix_in(folder), *FLAGS, stdin=line + b"\n")
        check(ran)
        assert ran.code in {0, 1}, line[:40]
        assert len(ran.err.splitlines()) <= 1, ran.err


@pytest.mark.parametrize("seed", range(2))
def test_wrong_messages_of_an_editor_are_answered_and_the_next_one_counts(tmp_path: Path, seed: int) -> None:
    right = [{"jsonrpc": "2.0", "id": 0, "method": method, "params": params} for method, params in EDITORS]
    wrong = mutated(right, EACH // 2, seed, kept=frozenset({"jsonrpc", "id", "method"}))
    sent = [message | {"id": number} for number, message in enumerate(wrong, 1)]
    new = {"jsonrpc": "2.0", "id": EACH, "method": "session/new", "params": {"cwd": str(tmp_path), "mcpServers": []}}
    lines = b"".join(json.dumps(one).encode() + b"\n" for one in [*sent, new])
    ran = run_door(phoenix_in(tmp_path), EDITOR, stdin=lines)
    answers = {one["id"]: one for one in check(ran) if "method" not in one}
    assert ran.code == 0
    assert sorted(answers) == [*range(1, len(sent) + 1), EACH]
    assert answers[EACH]["result"]["sessionId"]
