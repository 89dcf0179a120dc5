"""Messages as text: for a model that summarizes them, and as a summary where there is no such model."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from engine.machine.messages import Block, ImageBlock, Origin, Role, TextBlock, ThinkingBlock, ToolResultBlock, text_in
from engine.machine.messages import ToolUseBlock as ToolUse
from engine.records import StoredMessage

LONGEST_PART = 2_000
"""Characters of one block in a transcript; of a longer one both ends are kept."""
LONGEST_REQUEST = 1_000
"""Characters quoted of one message of the user."""
LISTED = 20
"""Files and commands that a summary by rules names."""


def transcribe(rows: Sequence[StoredMessage], room: int) -> str:
    """The messages as text, at most about `room` characters: long ones lose their oldest tool results first."""
    long = [_of_message(row, LONGEST_PART) for row in rows]
    total = sum(map(len, long))
    for place, row in enumerate(rows):
        if total <= room:
            break
        brief = _of_message(row, LONGEST_PART // 10)
        total -= len(long[place]) - len(brief)
        long[place] = brief
    text = "\n\n".join(part for part in long if part)
    return text if len(text) <= room else f"[the beginning is left out]\n{text[-room:]}"


def requests_of(rows: Sequence[StoredMessage], room: int) -> str:
    """Requests of the user, newest first, each as one entry of a list."""
    lines: list[str] = []
    for row in reversed(rows):
        text = _text(row.blocks).strip()
        if row.origin is not Origin.HUMAN or not text:
            continue
        line = f"- {_ends(text, LONGEST_REQUEST)}"
        if len(line) > room:
            break
        room -= len(line)
        lines.append(line)
    return "\n".join(lines)


def summary_by_rules(rows: Sequence[StoredMessage], earlier: str) -> str:
    """Summary without a model: the last answer, the files named, the commands run, the failures."""
    files: dict[str, None] = {}
    commands: list[str] = []
    failures: list[str] = []
    for row in rows:
        for block in row.blocks:
            if isinstance(block, ToolUse):
                arguments = _arguments(block)
                if path := arguments.get("path"):
                    files[path] = None
                if command := arguments.get("command"):
                    commands.append(command)
            elif isinstance(block, ToolResultBlock) and block.is_error:
                failures.append(_text(block.content).strip().partition("\n")[0])
    answers = [_text(row.blocks).strip() for row in rows if row.role is Role.ASSISTANT]
    last = next((text for text in reversed(answers) if text), "")
    parts = [
        "Made by rules, without a model.",
        f"The last answer was:\n{_ends(last, LONGEST_PART)}" if last else "",
        _listed("Files", list(files)),
        _listed("Commands", commands),
        _listed("What failed", failures),
        f"Before that:\n{_ends(earlier, LONGEST_PART)}" if earlier else "",
    ]
    return "\n\n".join(part for part in parts if part)


def _listed(heading: str, entries: Sequence[str]) -> str:
    lines = [f"- {_ends(entry, 200)}" for entry in entries[-LISTED:] if entry]
    return "\n".join([f"{heading}:", *lines]) if lines else ""


def _arguments(call: ToolUse) -> dict[str, str]:
    try:
        values = msgspec.json.decode(call.input_json, type=dict[str, object])
    except msgspec.MsgspecError:
        return {}
    return {name: value for name, value in values.items() if isinstance(value, str)}


def _of_message(row: StoredMessage, longest: int) -> str:
    speaker = "User" if row.role is Role.USER else "Assistant"
    said = [_ends(_of_block(block), longest) for block in row.blocks]
    text = "\n".join(part for part in said if part)
    if not text:
        return ""
    return text if row.origin is Origin.TOOL else f"{speaker}: {text}"


def _of_block(block: Block) -> str:
    match block:
        case TextBlock(text=text):
            return text.strip()
        case ToolUse(name=name, input_json=arguments):
            return f"[{name} {arguments}]"
        case ToolResultBlock(content=content, is_error=is_error):
            return f"[{'error' if is_error else 'result'}: {_text(content)}]"
        case ImageBlock():
            return f"[an image of {block.width}×{block.height}]"
        case ThinkingBlock():
            return ""


def _text(blocks: Iterable[Block]) -> str:
    return text_in(blocks, "\n")


def _ends(text: str, longest: int) -> str:
    if len(text) <= longest:
        return text
    return f"{text[: longest * 2 // 3]} … {text[-longest // 3 :]}"
