"""Cache marks for Claude behind a gateway: nothing of a request is cached there unless it is marked. Pure.

OpenRouter's documentation, "Prompt Caching": a part with `cache_control` ends what is cached, at most four a request.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, cast

import msgspec

from tools.contract import JsonObject, JsonValue

CLAUDE: Final = "anthropic/"
"""Begin of the names of models that need marks."""
RECENT: Final = 2
"""Marks besides the one at the system prompt: where the request before ended, and one further on."""
_MARK: Final[JsonObject] = {"type": "ephemeral"}


def with_marks(messages: Sequence[JsonValue]) -> list[JsonValue]:
    """The messages with marks at the system prompt and at the newest that the next request has unchanged.

    The last message is none of these: it ends with what changes between calls.
    """
    marked = list(messages)
    if marked and (first := _marked(marked[0], "system")) is not None:
        marked[0] = first
    left = RECENT
    for place in range(len(marked) - 2, 0, -1):
        if left and (found := _marked(marked[place], "user", "tool", "assistant")) is not None:
            marked[place], left = found, left - 1
    return marked


def _marked(message: JsonValue, *roles: str) -> JsonObject | None:
    """The message with a mark at the end of its text; None where it has none, or another role."""
    value = cast("JsonValue", _decoded(message))
    if not isinstance(value, dict) or value.get("role") not in roles:
        return None
    content = value.get("content")
    parts: JsonValue = [{"type": "text", "text": content}] if isinstance(content, str) and content else content
    last = parts[-1] if isinstance(parts, list) and parts else None
    if not isinstance(parts, list) or not isinstance(last, dict) or last.get("type") != "text":
        return None
    end: JsonObject = {**last, "cache_control": _MARK}
    ended: list[JsonValue] = [*parts[:-1], end]
    return {**value, "content": ended}


def _decoded(message: object) -> object:
    """The message as a value: those that are kept from one request to the next are JSON already."""
    return msgspec.json.decode(message) if isinstance(message, msgspec.Raw) else message
