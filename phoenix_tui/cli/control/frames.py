"""Lines of the control protocol: those of a host as values, and frames that leave as lines of a bounded size."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final, TypeAlias, cast

from msgspec import Struct

from phoenix_tui.cli.blocks import encode
from tools.contract import JsonObject, JsonValue
from tools.fresh_ids import fresh_id

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


def encode_frame(frame: JsonObject, most: int = MOST) -> str:
    """One line of at most `most` bytes: a larger frame has its longest texts shortened, then its lists."""
    text = encode(frame)
    if _fits(text, most):
        return text
    for kept in KEPT:
        text = encode(_map_texts(frame, partial(_shorten, kept=kept)))
        if _fits(text, most):
            return text
    shortest = _map_texts(frame, lambda one: _shorten(one, KEPT[-1]), MOST_ITEMS)
    text = encode(shortest)
    return text if _fits(text, most) else encode(_strip(frame))


def is_too_large(frame: JsonObject) -> bool:
    """True for a frame that would not leave whole."""
    return not _fits(encode(frame), MOST)


def _fits(text: str, most: int) -> bool:
    return len(text) <= most and len(text.encode("utf-8", "replace")) <= most


def _shorten(text: str, kept: int) -> str:
    if len(text) <= kept:
        return text
    half = kept // 2
    return f"{text[:half]}\n[{len(text) - 2 * half:,} characters left out]\n{text[-half:]}"


def _map_texts(value: JsonValue, change: Callable[[str], str], most: int | None = None) -> JsonValue:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list):
        return [_map_texts(one, change, most) for one in value[:most]]
    if isinstance(value, dict):
        return {change(name): _map_texts(one, change, most) for name, one in list(value.items())[:most]}
    return value


def _strip(frame: JsonObject) -> JsonObject:
    """The bare frame, where not even shortening helps; a message keeps the shape that parsers demand."""
    bare: JsonObject = {name: frame[name] for name in _ALWAYS if name in frame}
    message = frame.get("message")
    if isinstance(message, dict):
        content: list[JsonValue] = [{"type": "text", "text": "[left out: too large for one line]"}]
        kept: JsonObject = {name: message[name] for name in ("id", "role", "model") if name in message}
        kept["content"] = content
        bare["message"] = kept
    return bare


LONGEST: Final = 16 << 20
"""Bytes of one line: a message with some large images."""
PIECE: Final = 1 << 16
"""Bytes of one read: the capacity of a pipe."""
TOO_LONG: Final = f"a line on stdin is longer than {LONGEST >> 20} MiB"


class LineFault(Struct, frozen=True):
    """A line that is no message; the rest of stdin cannot be trusted."""

    reason: str


class EndOfInput(Struct, frozen=True):
    """The host has closed stdin."""


HostLine: TypeAlias = "JsonObject | LineFault | EndOfInput"


def parse_line(line: bytes) -> JsonObject | LineFault | None:
    """One line as a JSON object; None for a blank one."""
    text = line.decode("utf-8", "replace").strip()
    if not text:
        return None
    try:
        value: Any = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        reason = "nested too deeply" if isinstance(error, RecursionError) else str(error)
        return LineFault(f"a line on stdin is no JSON ({reason})")
    return cast("JsonObject", value) if isinstance(value, dict) else LineFault("a line on stdin is no JSON object")


def split_lines(read: Callable[[], bytes], longest: int = LONGEST) -> Iterator[bytes | LineFault]:
    """Whole lines of a stream; the last one may have no end. Ends behind a line that is too long."""
    waiting = bytearray()
    while piece := read():
        start = len(waiting)
        waiting += piece
        while (end := waiting.find(b"\n", start)) >= 0:
            if end > longest:
                yield LineFault(TOO_LONG)
                return
            yield bytes(waiting[:end])
            del waiting[: end + 1]
            start = 0
        if len(waiting) > longest:
            yield LineFault(TOO_LONG)
            return
    if waiting:
        yield bytes(waiting)


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON value")


MOST_IMAGES: Final = 100
"""Images of one message: as many as the Messages API takes."""
LEFT_OUT: Final = "[left out: {kind}, which Phoenix cannot read here]"


class HostMessage(Struct, frozen=True):
    """One message of the user."""

    uuid: str
    """The host's own id of it, or one that was made here."""
    text: str
    images: tuple[bytes, ...] = ()
    content: JsonValue = None
    """The content as it was sent, to be replayed."""
    is_composed: bool = False
    """True for a text that the host made: `/name` in it calls nothing."""

    @property
    def size(self) -> int:
        """Characters and bytes of it."""
        return len(self.text) + sum(map(len, self.images))


def read_message(line: JsonObject) -> HostMessage | None:
    """The message of a `user` line; None where it has no content."""
    message = line.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    given = line.get("uuid")
    is_composed = line.get("client_composed") is True
    uuid = given if isinstance(given, str) and given else fresh_id()
    if isinstance(content, str):
        return HostMessage(uuid, content, content=content, is_composed=is_composed)
    if not isinstance(content, list):
        return None
    texts, images = list[str](), list[bytes]()
    for block in content:
        found = _read_block(block) if isinstance(block, dict) else LEFT_OUT.format(kind="a block that is no object")
        if isinstance(found, bytes) and len(images) < MOST_IMAGES:
            images.append(found)
        elif isinstance(found, str):
            texts.append(found)
    return HostMessage(uuid, "\n\n".join(filter(None, texts)), tuple(images), content, is_composed)


def _read_block(block: JsonObject) -> str | bytes:
    kind, source = block.get("type"), block.get("source")
    if kind == "text":
        return _text(block.get("text"))
    if kind == "image" and isinstance(source, dict) and source.get("type") == "base64":
        try:
            return base64.b64decode(_text(source.get("data")), validate=True)
        except (binascii.Error, ValueError):
            return LEFT_OUT.format(kind="an image that is no base64")
    if kind == "document" and isinstance(source, dict) and source.get("type") == "text":
        title = _text(block.get("title"))
        return f"{title}\n\n{_text(source.get('data'))}" if title else _text(source.get("data"))
    return LEFT_OUT.format(kind=f"a block of type {kind}" if isinstance(kind, str) else "a block without a type")


def _text(value: JsonValue) -> str:
    return value if isinstance(value, str) else ""
