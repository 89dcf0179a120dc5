"""A `/chat/completions` server on loopback: refuses what a strict one refuses, streams what a test scripts."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, TypeAlias

from tests.support.loopback import Talk

Chunk: TypeAlias = dict[str, Any]
DONE = b"data: [DONE]\n\n"


def chunk(delta: Chunk | None = None, finish: str | None = None, **more: Any) -> bytes:
    """One event on the wire."""
    choices = [] if delta is None and finish is None else [{"index": 0, "delta": delta or {}, "finish_reason": finish}]
    body = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "model": "gpt-5", "choices": choices, **more}
    return f"data: {json.dumps(body)}\n\n".encode()


def call(index: int | None, name: str | None, arguments: Any, call_id: str | None = None) -> Chunk:
    """A delta with one piece of a tool call; what is None is left out."""
    piece: Chunk = {"function": {"arguments": arguments}}
    if index is not None:
        piece["index"] = index
    if name is not None:
        piece["function"]["name"] = name
    if call_id is not None:
        piece |= {"id": call_id, "type": "function"}
    return {"tool_calls": [piece]}


def usage(prompt: int, completion: int, cached: int = 0) -> bytes:
    """The chunk that counts tokens."""
    details = {"prompt_tokens_details": {"cached_tokens": cached}} if cached else {}
    return chunk(usage={"prompt_tokens": prompt, "completion_tokens": completion, **details})


def plays(pieces: Iterable[bytes]) -> Callable[[Talk], Awaitable[None]]:
    """An answer that checks the request and then streams `pieces`, each as one HTTP chunk."""
    sent = list(pieces)

    async def answer(talk: Talk) -> None:
        faults = violations(json.loads(talk.seen.body))
        if faults:
            await talk.plain(400, json.dumps({"error": {"message": "; ".join(faults)}}).encode())
            return
        await talk.begin()
        await talk.send(*sent)
        await talk.end()

    return answer


def refuses(status: int, error: Any, headers: str = "") -> Callable[[Talk], Awaitable[None]]:
    """An answer that is an error."""

    async def answer(talk: Talk) -> None:
        await talk.plain(status, json.dumps({"error": error}).encode(), headers)

    return answer


def violations(body: Any) -> list[str]:
    """Every reason for which the request would be refused."""
    faults = [f"no {name}" for name in ("model", "messages") if not body.get(name)]
    pending: list[str] = []
    for number, message in enumerate(body["messages"]):
        if message["role"] == "tool":
            if not pending or message["tool_call_id"] != pending.pop(0):
                faults.append(f"{number}: answers no call")
        elif pending:
            faults.append(f"{number}: calls {pending} unanswered")
        if message["role"] == "assistant":
            pending = [each["id"] for each in message.get("tool_calls") or ()]
        faults += [f"{number}: {fault}" for fault in _message_faults(message, first=number == 0)]
    if pending or body["messages"][-1]["role"] in {"assistant", "system"}:
        faults.append("does not end with the user")
    return faults


def _message_faults(message: Any, *, first: bool) -> list[str]:
    faults: list[str] = []
    content, calls = message.get("content"), message.get("tool_calls") or ()
    if message["role"] == "system" and not first:
        faults.append("system prompt in the middle")
    if content is None and not calls:
        faults.append("no content")
    if isinstance(content, str) and not content.strip():
        faults.append("empty content")
    if not all(isinstance(json.loads(each["function"]["arguments"]), dict) for each in calls):
        faults.append("arguments are no object")
    return faults
