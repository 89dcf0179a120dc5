"""Arguments of a call as the model wrote them, under native names or those of another agent."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any, cast

import msgspec
from msgspec.structs import replace

from engine.machine.messages import Block, ToolUseBlock
from tools.aliases import from_foreign
from tools.contract import JsonObject, ToolInputError
from tools.foreign_names import NATIVE, WITHOUT, native_name


def parse_arguments(text: str) -> JsonObject:
    """The arguments of a call as a JSON object.

    Raises:
        ToolInputError: they are not one; the text says why.
    """
    raw = text.encode("utf-8", "replace") if text.strip() else b"{}"
    try:
        return cast("JsonObject", msgspec.json.decode(raw, type=dict[str, Any]))
    except (msgspec.DecodeError, RecursionError) as error:
        reason = "nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise ToolInputError(f"the arguments are not one JSON object ({reason}).") from error


def native_calls(blocks: tuple[Block, ...], tools: Collection[str], cwd: Path) -> tuple[Block, ...]:
    """The reply with its calls under the native names and fields of `tools`, as they are stored, shown and run.

    A call without a native form keeps its name; `why_not_native` has the sentence for its result.
    """
    return tuple(_native(block, tools, cwd) if isinstance(block, ToolUseBlock) else block for block in blocks)


def offered_name(name: str, tools: Collection[str]) -> str:
    """The name of the tool that a call under `name` is for."""
    native = native_name(name)
    return native if name not in tools and native in tools else name


def why_not_native(name: str, input_json: str, cwd: Path) -> str:
    """Reason why a call under a foreign name has no native form; empty where it has one, and for other names."""
    if name not in NATIVE and name not in WITHOUT:
        return ""
    try:
        from_foreign(name, parse_arguments(input_json), cwd)
    except ToolInputError as error:
        return str(error)
    return ""


def _native(block: ToolUseBlock, tools: Collection[str], cwd: Path) -> ToolUseBlock:
    name = offered_name(block.name, tools)
    if name not in tools or name in NATIVE:  # a tool on offer may have a foreign name
        return block
    try:
        args = parse_arguments(block.input_json)
    except ToolInputError:
        return replace(block, name=name)  # the tool says what is wrong with them
    try:
        call = from_foreign(block.name, args, cwd)
    except ToolInputError:
        return block
    if call.name not in tools or (call.name == block.name and call.input == args):
        return block
    return ToolUseBlock(block.id, call.name, msgspec.json.encode(call.input).decode())
