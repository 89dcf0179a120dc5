"""A conversation as Markdown, for people."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import assert_never

from engine.machine.messages import Block, ImageBlock, Role, TextBlock, ThinkingBlock, ToolResultBlock, ToolUseBlock
from engine.records import ConversationRecord, StoredMessage
from phoenix_tui.cli.times import local_time
from tools.clean import clean

SPEAKERS = {Role.USER: "You", Role.ASSISTANT: "Phoenix", Role.SYSTEM: "Note"}
BACKTICKS = re.compile("`{3,}")


def markdown(record: ConversationRecord, messages: Sequence[StoredMessage]) -> str:
    """The whole conversation; nothing in it can drive a terminal (FAULTS 59)."""
    lines = [
        f"# {clean(record.title) or 'Untitled'}",
        "",
        f"- Conversation: {record.id}",
        f"- Folder: {clean(str(record.cwd))}",
        f"- Model: {clean(record.model)}",
        f"- Begun: {local_time(record.created_at)}",
    ]
    for message in messages:
        if not message.silent:
            lines += _message(message)
    return "\n".join(lines) + "\n"


def _message(message: StoredMessage) -> Iterator[str]:
    speaks = any(isinstance(block, TextBlock | ImageBlock) for block in message.blocks)
    if speaks:
        yield from ("", f"## {SPEAKERS[message.role]}")
    for block in message.blocks:
        text = _block(block)
        if text:
            yield from ("", text)


def _block(block: Block) -> str:
    match block:
        case TextBlock(text):
            return clean(text)
        case ImageBlock(_, width, height):
            return f"*Image, {width}x{height}*"
        case ThinkingBlock():
            return ""
        case ToolUseBlock(_, name, input_json):
            return f"**{clean(name)}**\n\n{_fenced(clean(input_json), 'json')}"
        case ToolResultBlock(_, content):
            return _fenced("\n".join(_block(part) for part in content), "")
        case _:
            assert_never(block)


def _fenced(text: str, language: str) -> str:
    longest = max((len(found[0]) for found in BACKTICKS.finditer(text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"
