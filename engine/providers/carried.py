"""Fields that a service wants back with a reply, unchanged: a redacted block of reasoning carries each. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal, TypeAlias, cast

import msgspec

from engine.machine.messages import ThinkingBlock
from tools.contract import JsonValue

CarriedField: TypeAlias = Literal["reasoning_details", "extra_content"]
"""`reasoning_details` of OpenRouter's replies; `extra_content` of Gemini's calls, one entry per call."""
_MARKS: Final = ("reasoning_details:", "extra_content:")
"""Signatures of other services are Base64, which has no colon."""


def carry(field: CarriedField, value: JsonValue) -> ThinkingBlock:
    """The block that keeps the value of a field."""
    return ThinkingBlock("", f"{field}:{msgspec.json.encode(value).decode()}", redacted=True)


def is_carried(block: ThinkingBlock) -> bool:
    """True when a block holds a field of one service, which no other service understands."""
    return block.redacted and block.signature.startswith(_MARKS)


def carried(blocks: Iterable[ThinkingBlock], field: CarriedField) -> list[JsonValue]:
    """The kept list of a field; empty where there is none, or it cannot be read."""
    start = f"{field}:"
    text = next((one.signature for one in blocks if one.redacted and one.signature.startswith(start)), start)
    return listed(text.removeprefix(start).encode("utf-8", "replace"))


def listed(raw: bytes) -> list[JsonValue]:
    """The JSON list that `raw` is, else an empty one."""
    found = value_of(raw)
    return found if isinstance(found, list) else []


def value_of(raw: bytes) -> JsonValue:
    """The JSON value that `raw` is; None where it is none."""
    try:
        return cast("JsonValue", msgspec.json.decode(raw)) if raw else None
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None
