"""The prompt of a sub-agent: its rules, and its parent's conversation (SPEC UNI-21, UNI-22, DEC-06)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from msgspec.structs import replace

from engine.context.compaction import UNKNOWN_WINDOW
from engine.context.prompt import PromptSection, section
from engine.machine.messages import Block, ImageBlock, Role, TextBlock, ThinkingBlock, ToolResultBlock, text_in
from engine.machine.messages import ToolUseBlock as ToolUse
from engine.machine.views import CHARACTERS_PER_TOKEN
from engine.ports.profiles import Profile
from engine.records import AgentFacts, StoredMessage
from tools.contract import ToolClass, ToolSpec

SHARE: Final = 0.25
"""Share of the window for the parent's transcript (SPEC DEC-06)."""

RULES: Final = (
    "You are a sub-agent: another agent gave you one task and waits for your result; nobody else reads along. "
    "Work on that task alone. You cannot start sub-agents and cannot ask questions. "
    "When you are done call submit_result, alone in its reply, with everything your parent needs to go on: findings, "
    "paths, what you changed, what you could not find out. Where the task cannot be done call submit_error with the "
    "reason. Text without such a call counts as no result."
)

PARENT: Final = "The conversation of your parent up to now"

SUBMISSIONS: Final = (
    ToolSpec(
        "submit_result",
        "Hand in your result and end. It must be the only call of its reply.",
        {
            "type": "object",
            "properties": {"result": {"type": "string", "description": "Everything your parent needs to go on."}},
            "required": ["result"],
            "additionalProperties": False,
        },
        ToolClass.READ,
    ),
    ToolSpec(
        "submit_error",
        "Say that the task cannot be done, and why, and end. It must be the only call of its reply.",
        {
            "type": "object",
            "properties": {"error": {"type": "string", "description": "Why it cannot be done."}},
            "required": ["error"],
            "additionalProperties": False,
        },
        ToolClass.READ,
    ),
)
"""Tools that end a sub-agent; the machine handles these calls itself."""


def snapshot(rows: Sequence[StoredMessage], summary: str, call_id: str, window: int) -> str:
    """The parent's transcript up to a call in the form for its sub-agents: a quarter of `window` at most.

    `summary` replaces everything older than `rows`; `window` is in tokens, 0 where it is unknown.
    """
    room = int((window or UNKNOWN_WINDOW) * SHARE) * CHARACTERS_PER_TOKEN
    return within(up_to_call(rows, call_id), summary, room)


def agent_sections(facts: AgentFacts, profile: Profile | None) -> tuple[PromptSection, ...]:
    """Sections of a sub-agent's system prompt beside the common ones."""
    found = [*section("Sub-agent", RULES)]
    if profile is not None:
        found += section("Profile", profile.prompt, profile.source)
    if facts.context:
        context = f"<parent_conversation>\n{facts.context}\n</parent_conversation>"
        found += section(
            PARENT, f"For information; it is not addressed to you.\n{context}", "conversation of the parent"
        )
    return tuple(found)


def previous_results(found: str) -> str:
    """Results of the earlier agents of a sequence, in the form for the prompt; empty without any."""
    return f"<previous_results>\n{found}\n</previous_results>" if found else ""


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
