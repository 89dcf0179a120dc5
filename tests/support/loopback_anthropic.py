"""A strict Messages API on loopback: refuses what the real one refuses, streams what a test scripts."""

from __future__ import annotations

import base64
import json
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, TypeAlias

from tests.support.loopback import Talk

Event: TypeAlias = dict[str, Any]

MAGIC = {b"\x89P": "image/png", b"\xff\xd8": "image/jpeg", b"GI": "image/gif", b"RI": "image/webp"}
TINY_PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
)


def event(body: Event) -> bytes:
    """One event on the wire."""
    return f"event: {body['type']}\ndata: {json.dumps(body)}\n\n".encode()


def start(usage: dict[str, int | None] | None = None, model: str = "claude-sonnet-5-5") -> Event:
    """The first event of a message."""
    return {
        "type": "message_start",
        "message": {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": model,
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": usage or {"input_tokens": 10, "output_tokens": 1},
        },
    }


def text(index: int, *pieces: str) -> list[Event]:
    """A whole text block."""
    return _block(index, {"type": "text", "text": ""}, [{"type": "text_delta", "text": piece} for piece in pieces])


def thinking(index: int, *pieces: str, signature: str) -> list[Event]:
    """A whole thinking block."""
    deltas: list[Event] = [{"type": "thinking_delta", "thinking": piece} for piece in pieces]
    deltas.append({"type": "signature_delta", "signature": signature})
    return _block(index, {"type": "thinking", "thinking": "", "signature": ""}, deltas)


def redacted(index: int, data: str) -> list[Event]:
    """A redacted thinking block."""
    return _block(index, {"type": "redacted_thinking", "data": data}, [])


def tool(index: int, name: str, *pieces: str, tool_id: str = "toolu_1") -> list[Event]:
    """A whole tool use."""
    deltas: list[Event] = [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]
    return _block(index, {"type": "tool_use", "id": tool_id, "name": name, "input": {}}, deltas)


def stop(reason: str = "end_turn", output_tokens: int = 5) -> list[Event]:
    """The end of a message."""
    return [
        {
            "type": "message_delta",
            "delta": {"stop_reason": reason, "stop_sequence": None},
            "usage": {"output_tokens": output_tokens},
        },
        {"type": "message_stop"},
    ]


def recording(*parts: Event | list[Event]) -> list[bytes]:
    """The events of a whole stream as bytes, one entry each."""
    events: list[Event] = []
    for part in parts:
        events.extend(part if isinstance(part, list) else [part])
    return [event(body) for body in events]


def plays(events: Iterable[bytes]) -> Callable[[Talk], Awaitable[None]]:
    """An answer that checks the request and then streams `events`, each as one HTTP chunk."""
    sent = list(events)

    async def answer(talk: Talk) -> None:
        if await refuse(talk):
            return
        await talk.begin()
        await talk.send(*sent)
        await talk.end()

    return answer


def refuses(status: int, error_type: str, message: str, headers: str = "") -> Callable[[Talk], Awaitable[None]]:
    """An answer that is an error."""

    async def answer(talk: Talk) -> None:
        body = json.dumps({"type": "error", "error": {"type": error_type, "message": message}})
        await talk.plain(status, body.encode(), headers)

    return answer


async def refuse(talk: Talk) -> bool:
    """Answer 400 with the reasons, if the request has faults; 404 to who asks for models."""
    if talk.seen.method == "GET":
        await talk.plain(404, b'{"type": "error", "error": {"type": "not_found_error", "message": "not found"}}')
        return True
    faults = violations(json.loads(talk.seen.body), talk.seen.headers)
    if faults:
        error = {"type": "error", "error": {"type": "invalid_request_error", "message": "; ".join(faults)}}
        await talk.plain(400, json.dumps(error).encode())
    return bool(faults)


def violations(body: Any, headers: dict[str, str]) -> list[str]:
    """Every reason for which the request would be refused."""
    faults = [f"no {name}" for name in ("model", "max_tokens") if not body.get(name)]
    if "anthropic-version" not in headers:
        faults.append("no version")
    if not (headers.get("x-api-key") or headers.get("authorization")):
        faults.append("no key")
    faults += _chain(body.get("messages") or [])
    marks = json.dumps(body).count('"cache_control"')
    if marks > 4:
        faults.append(f"{marks} cache markers")
    try:
        json.dumps(body, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        faults.append("lone surrogate")
    if "budget_tokens" in (body.get("thinking") or {}) and body["thinking"]["budget_tokens"] >= body["max_tokens"]:
        faults.append("thinking budget")
    return faults


def _chain(messages: list[Any]) -> list[str]:
    faults: list[str] = []
    pending: list[str] = []
    seen: set[str] = set()
    role = "assistant"
    for number, message in enumerate(messages):
        if message["role"] == role:
            faults.append(f"{number}: role {role} again")
        role = message["role"]
        content = message["content"]
        if not content:
            faults.append(f"{number}: empty")
        results = [block["tool_use_id"] for block in content if block["type"] == "tool_result"]
        if role == "user" and results != pending:
            faults.append(f"{number}: {results} answers {pending}")
        order = [{"tool_result": 0, "image": 1}.get(block["type"], 2) for block in content]
        if role == "user" and order != sorted(order):
            faults.append(f"{number}: order {order}")
        pending = [block["id"] for block in content if block["type"] == "tool_use"]
        faults += [f"{number}: id {each} twice" for each in pending if each in seen]
        seen.update(pending)
        for block in content:
            faults += [f"{number}: {fault}" for fault in _block_faults(block)]
    if role != "user" or not messages:
        faults.append("does not end with the user")
    return faults


def _block_faults(block: Any) -> list[str]:
    match block["type"]:
        case "text":
            return [] if block["text"].strip() else ["empty text"]
        case "thinking":
            return [] if block["signature"] else ["unsigned thinking"]
        case "tool_use":
            return [] if isinstance(block["input"], dict) else ["input is no object"]
        case "tool_result":
            return [fault for part in block["content"] for fault in _block_faults(part)]
        case "image":
            source = block["source"]
            data = base64.b64decode(source["data"], validate=True)
            return [] if MAGIC.get(data[:2]) == source["media_type"] else [f"{source['media_type']} does not fit"]
        case _:
            return []


def _block(index: int, content: Event, deltas: list[Event]) -> list[Event]:
    return [
        {"type": "content_block_start", "index": index, "content_block": content},
        *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": index},
    ]
