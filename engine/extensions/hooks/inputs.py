"""Input of hooks: the fields that every event has, bounded, and the text for a program's stdin."""

from __future__ import annotations

from typing import Final

import msgspec

from engine.ports.extensions import HookRequest
from engine.records import PermissionMode
from tools.contract import JsonObject, JsonValue

LONGEST_FIELD: Final = 256 * 1024
"""Characters of one text; the rest is left out."""
MODES: Final = {
    PermissionMode.ASK: "default",
    PermissionMode.ACCEPT_EDITS: "acceptEdits",
    PermissionMode.AUTO: "bypassPermissions",
    PermissionMode.PLAN: "plan",
    PermissionMode.DENY: "dontAsk",
}
"""Permission modes under the names that hooks know."""


def hook_object(request: HookRequest, transcript: str = "") -> JsonObject:
    """The input of a hook: common fields, then those of the event."""
    record = request.record
    agent = record.agent
    found: JsonObject = {
        "session_id": record.id,
        "transcript_path": transcript,
        "cwd": str(record.cwd),
        "hook_event_name": request.event.value,
        "prompt_id": request.prompt_id,
        "permission_mode": MODES[record.permission_mode],
    }
    if agent is not None:
        found |= {"session_id": agent.parent_id, "agent_id": record.id, "agent_type": record.profile or "general"}
    return found | {name: _bounded(value) for name, value in request.fields.items()}


def hook_text(given: JsonObject) -> bytes:
    """An input as the one line that a program reads."""
    return msgspec.json.encode(given) + b"\n"


def _bounded(value: JsonValue) -> JsonValue:
    if isinstance(value, str):
        return value if len(value) <= LONGEST_FIELD else value[:LONGEST_FIELD]
    if isinstance(value, list):
        return [_bounded(one) for one in value]
    if isinstance(value, dict):
        return {name: _bounded(one) for name, one in value.items()}
    return value
