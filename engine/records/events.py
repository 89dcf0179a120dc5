"""Events of runs as they are stored: one ordered stream for all conversations (SPEC SDK-20), and their payloads.

Payloads have the field names of SPEC SDK-21; previews are 500 characters (SPEC CLAW-81).
"""

from __future__ import annotations

import json
from enum import StrEnum
from typing import Any, Final

import msgspec
from msgspec import Struct

from engine.codec import storable
from engine.machine.messages import Usage
from engine.machine.states import AgentStatus, Completed, Failed
from engine.records import AgentFacts
from engine.records.runs import PREVIEW
from engine.records.tracked_tasks import TrackedTask
from tools.contract import JsonObject, JsonValue


class EventKind(StrEnum):
    """Canonical names of stored events; pieces of text are none (SPEC SDK-04)."""

    TASK_STARTED = "task:started"
    TASK_PROGRESS = "task:progress"
    """Another stage of a run: thinking, tool_exec, compacting or routing."""
    TASK_TOOL_CALL = "task:tool_call"
    """A model asks for a tool; the call waits for its turn."""
    TASK_TOOL_START = "task:tool_start"
    """A call begins to run."""
    TASK_TOOL_RESULT = "task:tool_result"
    TASK_SUBAGENT_START = "task:subagent_start"
    TASK_SUBAGENT_STOP = "task:subagent_stop"
    TASK_COMPLETED = "task:completed"
    TASK_FAILED = "task:failed"
    TASK_CANCELLED = "task:cancelled"
    RUN_RETRYING = "run.retrying"
    BLOCK_REPLY = "block.reply"
    """Text of a reply that also calls tools (SPEC CLAW-10)."""
    STATE_CHANGED = "state.changed"
    MESSAGE_PERSISTED = "message.persisted"
    MESSAGE_UPDATED = "message.updated"
    CONTEXT_USAGE = "context.usage"
    TRACKED_TASK_CHANGED = "tracked_task.changed"
    INJECTION_DETECTED = "security.injection_detected"


class StoredEvent(Struct, frozen=True):
    """One event of the stream; ids are empty where there is none."""

    seq: int
    """Rises with each event of the database, and is never used again."""
    id: str
    type: str
    """A value of `EventKind`, or one that a newer Phoenix wrote."""
    at: float
    """Wall clock, seconds since the epoch."""
    conversation_id: str
    message_id: str
    run_id: str
    agent_id: str
    """The sub-agent's conversation."""
    payload_json: str
    """JSON object."""


class StandingRun(Struct, frozen=True):
    """A conversation in a snapshot of the stream; `run_id` is empty while none is under way."""

    conversation_id: str
    state: str
    run_id: str


class EventSnapshot(Struct, frozen=True):
    """State of conversations as of the event `seq`: every later event is newer than this."""

    seq: int
    conversations: tuple[StandingRun, ...]


NO_PROMPT: Final = '{"prompt":"",'
"""Beginning of the payload of a run whose prompt is stored already."""


def encode_payload(payload: JsonObject) -> str:
    """A payload as the table holds it."""
    try:
        return msgspec.json.encode(payload).decode()
    except UnicodeEncodeError:  # lone surrogates, from a broken server or a file name
        return msgspec.json.encode(msgspec.json.decode(storable(json.dumps(payload, ensure_ascii=False)))).decode()


def usage(used: Usage) -> JsonObject:
    """Tokens of calls."""
    return {
        "inputTokens": used.input_tokens,
        "outputTokens": used.output_tokens,
        "cacheCreationTokens": used.cache_creation_tokens,
        "cacheReadTokens": used.cache_read_tokens,
    }


LONGEST_INPUT: Final = 200_000
MOST_FIELDS: Final = 64
"""Characters of arguments that are read for an event, and arguments that it names."""


def build_input(text: str) -> JsonObject:
    """Arguments of a call, of each the beginning; what is no object is the field `text`."""
    try:
        found = msgspec.json.decode(text, type=dict[str, Any]) if len(text) <= LONGEST_INPUT else None
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        found = None
    if found is None:
        return {"text": text[:PREVIEW]}
    return {name[:PREVIEW]: _cut(value) for name, value in list(found.items())[:MOST_FIELDS]}


def _cut(value: Any) -> JsonValue:
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return value if len(text) <= PREVIEW else text[:PREVIEW]


def tool_result(name: str, call_id: str, output: str, *, success: bool) -> JsonObject:
    """The end of a call."""
    return {"tool": name, "output": output[:PREVIEW], "success": success, "toolUseId": call_id}


def build_failed(error: str, code: str, status: str, *, recoverable: bool) -> JsonObject:
    """The end of a run that did not succeed; `status` as in `runs.status`."""
    return {"error": error[:PREVIEW], "recoverable": recoverable, "code": code, "status": status}


def state_changed(before: str, after: str) -> JsonObject:
    """Another state, by the names of the column `conversations.state`."""
    return {"from": before, "to": after}


def build_tracked_task(task: TrackedTask, *, removed: bool = False) -> JsonObject:
    """A task of the board as it is now."""
    return {
        "taskId": task.id,
        "order": task.order,
        "status": task.status.value,
        "description": task.description[:PREVIEW],
        "isPlanning": task.is_planning,
        "removed": removed,
    }


def agent_start(agent_id: str, facts: AgentFacts, profile: str, run_id: str) -> JsonObject:
    """A sub-agent leaves the queue."""
    task: JsonObject = {"message": facts.task[:PREVIEW], "background": facts.mode.value == "background"}
    return task | {"agentId": agent_id, "agentName": profile, "taskId": run_id, "toolUseId": facts.call_id}


def agent_stop(agent_id: str, facts: AgentFacts, profile: str, run_id: str, state: Completed | Failed) -> JsonObject:
    """A sub-agent has ended; `taskId` is empty for one that never began."""
    stop: JsonObject = {"agentId": agent_id, "agentName": profile, "taskId": run_id, "toolUseId": facts.call_id}
    if isinstance(state, Completed):
        return stop | {"status": AgentStatus.SUCCESS.value, "result": state.result[:PREVIEW]}
    known = {"cancelled": AgentStatus.CANCELLED, "timeout": AgentStatus.TIMEOUT}
    status = known.get(state.kind, AgentStatus.FAILURE)
    return stop | {"status": status.value, "error": state.error[:PREVIEW], "result": state.partial[:PREVIEW]}
