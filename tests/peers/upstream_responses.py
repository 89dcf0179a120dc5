"""Scripted upstream in the format of OpenAI's Responses API, which gateways use for clients of Claude's."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from engine.machine.messages import Usage

Event = dict[str, Any]


def as_messages(given: list[Any]) -> list[dict[str, Any]]:
    """The `input` of a request as the messages of the older API, as far as a script looks at them."""
    return [
        {"role": "tool"}
        if item.get("type") == "function_call_output"
        else {"role": item.get("role", "assistant"), "content": _texts(item.get("content"))}
        for item in given
    ]


def _texts(content: Any) -> str:
    parts = content if isinstance(content, list) else [{"text": content or ""}]
    return " ".join(part.get("text", "") for part in parts)


def stream(
    thinking: str, pieces: Iterable[str], commands: Iterable[str], usage: Usage, *, end: str, number: int
) -> list[bytes]:
    """The events of one answer."""
    head = _response("in_progress", [])
    events: list[Event] = [{"type": "response.created", "response": head}]
    items: list[Event] = []
    for item, inner in _items(thinking, "".join(pieces), commands, number):
        at = {"output_index": len(items)}
        events.append({"type": "response.output_item.added", **at, "item": {**item, "status": "in_progress"}})
        events += [{**each, **at, "item_id": item["id"]} for each in inner]
        if end == "whole":
            events.append({"type": "response.output_item.done", **at, "item": {**item, "status": "completed"}})
        items.append({**item, "status": "completed"})
    if end == "whole":
        events.append({"type": "response.completed", "response": _response("completed", items, usage)})
    if end == "error":
        events.append({"type": "error", "code": "server_error", "message": "The server had an error.", "param": None})
    numbered = ({**each, "sequence_number": index} for index, each in enumerate(events))
    return [f"event: {each['type']}\ndata: {json.dumps(each)}\n\n".encode() for each in numbered]


def _items(thinking: str, text: str, commands: Iterable[str], number: int) -> Iterator[tuple[Event, list[Event]]]:
    """Each item as it ends, with the events inside it."""
    if thinking:
        summary = {"type": "summary_text", "text": thinking}
        delta = {"type": "response.reasoning_summary_text.delta", "summary_index": 0, "delta": thinking}
        yield {"type": "reasoning", "id": f"rs_{number}", "summary": [summary]}, [delta]
    if text:
        part = {"type": "output_text", "text": text, "annotations": []}
        begun = {"type": "response.content_part.added", "content_index": 0, "part": {**part, "text": ""}}
        deltas = [
            {"type": "response.output_text.delta", "content_index": 0, "delta": text[at : at + 24]}
            for at in range(0, len(text), 24)
        ]
        done = {"type": "response.output_text.done", "content_index": 0, "text": text}
        yield {"type": "message", "id": f"msg_{number}", "role": "assistant", "content": [part]}, [begun, *deltas, done]
    for index, command in enumerate(commands):
        arguments = json.dumps({"command": command})
        call = {"type": "function_call", "call_id": f"call_{number}_{index}", "name": "bash", "arguments": arguments}
        pieces = [
            {"type": "response.function_call_arguments.delta", "delta": arguments[:5]},
            {"type": "response.function_call_arguments.delta", "delta": arguments[5:]},
            {"type": "response.function_call_arguments.done", "arguments": arguments},
        ]
        yield {"id": f"fc_{number}_{index}", **call}, pieces


def _response(status: str, output: list[Event], usage: Usage | None = None) -> Event:
    counts = None
    if usage is not None:
        prompt = usage.input_tokens + usage.cache_read_tokens
        counts = {
            "input_tokens": prompt,
            "input_tokens_details": {"cached_tokens": usage.cache_read_tokens},
            "output_tokens": usage.output_tokens,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": prompt + usage.output_tokens,
        }
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "status": status,
        "model": "gpt-5",
        "output": output,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "error": None,
        "usage": counts,
    }
