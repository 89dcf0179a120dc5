"""A conversation as its sub-agents get to read it (SPEC UNI-21, UNI-22, DEC-06)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from msgspec.structs import replace

from engine.machine.messages import Block, ImageBlock, Role, TextBlock, ThinkingBlock, ToolResultBlock, text_in
from engine.machine.messages import ToolUseBlock as ToolUse
from engine.records import StoredMessage

BETWEEN: Final = "\n\n"
LEFT_OUT: Final = "[The beginning is left out.]"
SUMMARY: Final = "[Summary of earlier conversation]"


def transcribe(rows: Iterable[StoredMessage], *, include_tool_details: bool) -> str:
    """Transcript with speakers, blocks joined by a blank line; of a tool its input and result, or only its use."""
    return BETWEEN.join(part for row in rows for part in _blocks(row, details=include_tool_details))


def up_to_call(rows: Sequence[StoredMessage], call_id: str) -> list[StoredMessage]:
    """Messages before a call: without it, and nothing later."""
    before: list[StoredMessage] = []
    for row in rows:
        place = next((n for n, one in enumerate(row.blocks) if isinstance(one, ToolUse) and one.id == call_id), None)
        if place is not None:
            return [*before, replace(row, blocks=row.blocks[:place])]
        before.append(row)
    return before


def within(rows: Sequence[StoredMessage], summary: str, room: int) -> str:
    """The transcript in at most `room` characters: the oldest tool details go first, then the oldest words.

    `summary` replaces everything older than `rows`.
    """
    seen = [row for row in rows if row.role is not Role.SYSTEM and not row.silent]
    earlier = [f"{SUMMARY}\n{summary}"] if summary else []
    parts = [_blocks(row, details=True) for row in seen]
    total = _length(earlier) + sum(map(_length, parts))
    for place, row in enumerate(seen):
        if total - len(BETWEEN) <= room:
            break
        brief = _blocks(row, details=False)
        total -= _length(parts[place]) - _length(brief)
        parts[place] = brief
    text = BETWEEN.join([*earlier, *(block for part in parts for block in part)])
    if len(text) <= room:
        return text
    rest = max(room - len(LEFT_OUT) - len(BETWEEN), 0)
    return f"{LEFT_OUT}{BETWEEN}{text[len(text) - rest :].lstrip()}"[:room]


def _length(blocks: Sequence[str]) -> int:
    """Characters of blocks, each with its separator."""
    return sum(len(block) + len(BETWEEN) for block in blocks)


def _blocks(row: StoredMessage, *, details: bool) -> list[str]:
    speaker = "User" if row.role is Role.USER else "Assistant"
    return [text for block in row.blocks if (text := _block(block, speaker, details=details))]


def _block(block: Block, speaker: str, *, details: bool) -> str:
    match block:
        case TextBlock(text=text):
            return f"{speaker}: {text.strip()}" if text.strip() else ""
        case ToolUse(name=name, input_json=arguments):
            return f"[Used {name} tool]\n{arguments}" if details else f"[Used {name} tool]"
        case ToolResultBlock(content=content, is_error=is_error):
            texts = text_in(content, "\n").strip()
            heading = "[Tool error]" if is_error else "[Tool result]"
            return f"{heading}\n{texts}" if details and texts else ""
        case ImageBlock():
            return f"{speaker}: [an image of {block.width}×{block.height}]"
        case ThinkingBlock():
            return ""
