"""Messages in the shape of the Anthropic Messages API, as `claude -p` prints them."""

from __future__ import annotations

import json
import re
from typing import assert_never

from engine.machine.messages import (
    Block,
    ImageBlock,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    Usage,
)
from engine.records import StoredMessage
from tools.contract import JsonObject, JsonValue

RAW = re.compile("[\x7f-\x9f\xad\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff\U000e0000-\U000e007f]")
"""Characters that `json.dumps` leaves unchanged, and that a terminal or a line reader would act on, or hide: C1, line
ends, text direction, zero width, tags.
"""


def encode(value: JsonValue, *, indent: int | None = None, compact: bool = False) -> str:
    """Encode `value` as JSON with every control character escaped (FAULTS 59); `compact`: without blanks."""
    between = (",", ":") if compact else None
    text = json.dumps(value, ensure_ascii=False, indent=indent, separators=between)
    return RAW.sub(lambda found: json.dumps(found[0])[1:-1], text)


def block_object(block: Block) -> JsonObject:
    """One content block."""
    match block:
        case TextBlock(text):
            return {"type": "text", "text": text}
        case ImageBlock(attachment_id, width, height):
            return {"type": "text", "text": f"[image {attachment_id}, {width}x{height}]"}
        case ThinkingBlock(text, signature, redacted):
            if redacted:
                return {"type": "redacted_thinking", "data": signature}
            return {"type": "thinking", "thinking": text, "signature": signature}
        case ToolUseBlock(call_id, name, input_json):
            return {"type": "tool_use", "id": call_id, "name": name, "input": json.loads(input_json)}
        case ToolResultBlock(call_id, content, is_error):
            parts: list[JsonValue] = [block_object(part) for part in content]
            return {"type": "tool_result", "tool_use_id": call_id, "content": parts, "is_error": is_error}
        case _:
            assert_never(block)


def usage_object(usage: Usage | None) -> JsonObject:
    """Token counts under the API's names."""
    counted = usage or Usage()
    return {
        "input_tokens": counted.input_tokens,
        "output_tokens": counted.output_tokens,
        "cache_creation_input_tokens": counted.cache_creation_tokens,
        "cache_read_input_tokens": counted.cache_read_tokens,
    }


def assistant_object(message: StoredMessage, model: str) -> JsonObject:
    """A whole reply."""
    uses_tools = any(isinstance(block, ToolUseBlock) for block in message.blocks)
    content: list[JsonValue] = [block_object(block) for block in message.blocks]
    return {
        "id": message.id,
        "type": "message",
        "role": "assistant",
        "model": message.model or model,
        "content": content,
        "stop_reason": None if message.cut else "tool_use" if uses_tools else "end_turn",
        "stop_sequence": None,
        "usage": usage_object(message.usage),
    }


def user_object(message: StoredMessage) -> JsonObject:
    """User message of a model request: tool results."""
    content: list[JsonValue] = [block_object(block) for block in message.blocks]
    return {"role": "user", "content": content}
