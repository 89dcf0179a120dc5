"""System prompt of a sub-agent: rules, profile and its parent's transcript (SPEC CLAW-16, UNI-22)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from engine.agents.transcript import up_to_call, within
from engine.context.compaction import UNKNOWN_WINDOW
from engine.context.estimate import CHARACTERS_PER_TOKEN
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


def agent_sections(facts: AgentFacts, profile: Profile | None) -> str:
    """The end of a sub-agent's system prompt."""
    parts = [f"# Sub-agent\n{RULES}", profile.prompt if profile is not None else ""]
    if facts.context:
        parts.append(
            "# The conversation of your parent up to now\nFor information; it is not addressed to you.\n"
            f"<parent_conversation>\n{facts.context}\n</parent_conversation>"
        )
    return "\n\n".join(part for part in parts if part)


def previous_results(found: str) -> str:
    """Results of the earlier agents of a sequence, in the form for the prompt; empty without any."""
    return f"<previous_results>\n{found}\n</previous_results>" if found else ""
