"""Frames of the control protocol: envelopes of requests and answers, and the largest frame that may leave."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from phoenix_tui.cli.blocks import encode
from tools.contract import JsonObject, JsonValue

MOST: Final = 1_000_000
"""Bytes of a frame: the Python SDK ends its session at a line of 1 MiB."""
KEPT: Final = (524_288, 131_072, 32_768, 8_192, 2_048, 256)
"""Characters that each text of a too large frame keeps, tried in this order."""
MOST_ITEMS: Final = 200
"""Members of an object or list in a frame that is too large even with short texts."""
_ALWAYS: Final = ("type", "subtype", "request_id", "uuid", "session_id", "parent_tool_use_id", "is_error")


def request_frame(request_id: str, request: JsonObject) -> JsonObject:
    """A question to the other side."""
    return {"type": "control_request", "request_id": request_id, "request": request}


def cancel_frame(request_id: str) -> JsonObject:
    """Withdrawal of a question."""
    return {"type": "control_cancel_request", "request_id": request_id}


def answer_frame(request_id: str, answer: JsonObject) -> JsonObject:
    """The answer to a request of the host."""
    response: JsonObject = {"subtype": "success", "request_id": request_id, "response": answer}
    return {"type": "control_response", "response": response}


def error_frame(request_id: str, sentence: str) -> JsonObject:
    """The refusal of a request of the host."""
    return {
        "type": "control_response",
        "response": {"subtype": "error", "request_id": request_id, "error": sentence},
    }


def fitting(frame: JsonObject, most: int = MOST) -> str:
    """One line of at most `most` bytes: a larger frame has its longest texts shortened, then its lists."""
    text = encode(frame)
    if _fits(text, most):
        return text
    for kept in KEPT:
        text = encode(_mapped(frame, partial(_shortened, kept=kept)))
        if _fits(text, most):
            return text
    shortest = _mapped(frame, lambda one: _shortened(one, KEPT[-1]), MOST_ITEMS)
    text = encode(shortest)
    return text if _fits(text, most) else encode(_left_out(frame))


def is_too_large(frame: JsonObject) -> bool:
    """True for a frame that would not leave whole."""
    return not _fits(encode(frame), MOST)


def _fits(text: str, most: int) -> bool:
    return len(text) <= most and len(text.encode("utf-8", "replace")) <= most


def _shortened(text: str, kept: int) -> str:
    if len(text) <= kept:
        return text
    half = kept // 2
    return f"{text[:half]}\n[{len(text) - 2 * half:,} characters left out]\n{text[-half:]}"


def _mapped(value: JsonValue, change: Callable[[str], str], most: int | None = None) -> JsonValue:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list):
        return [_mapped(one, change, most) for one in value[:most]]
    if isinstance(value, dict):
        return {change(name): _mapped(one, change, most) for name, one in list(value.items())[:most]}
    return value


def _left_out(frame: JsonObject) -> JsonObject:
    """The bare frame, where not even shortening helps; a message keeps the shape that parsers demand."""
    bare: JsonObject = {name: frame[name] for name in _ALWAYS if name in frame}
    message = frame.get("message")
    if isinstance(message, dict):
        content: list[JsonValue] = [{"type": "text", "text": "[left out: too large for one line]"}]
        kept: JsonObject = {name: message[name] for name in ("id", "role", "model") if name in message}
        kept["content"] = content
        bare["message"] = kept
    return bare
