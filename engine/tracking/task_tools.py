"""Tools of the task agent, and the change of the board that each call asks for (SPEC ACX-08)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from msgspec import Struct

from engine.executor.ready_calls import parse_arguments
from engine.machine.messages import ToolUseBlock
from engine.ports.task_store import (
    AddPreference,
    AddProgress,
    AppendMessages,
    AppendToPlanning,
    BoardChange,
    InsertTask,
    TaskRefused,
    UpdateTask,
)
from engine.records.tracked_tasks import TaskStatus
from tools.arguments import Arguments, object_schema
from tools.contract import JsonObject, JsonValue, ToolClass, ToolInputError, ToolSpec

MOST_CALLS: Final = 64
"""Calls of one reply: two for each message of a pass."""
HIGHEST: Final = 1 << 40
"""Bound of an order or a message id."""
_ORDER: Final[JsonObject] = {"type": "integer", "description": "Number of the task on the board, from 1 on."}
_DESCRIPTION: Final[JsonObject] = {"type": "string", "description": "The request in the words of the user."}
_IDS: Final[JsonObject] = {"type": "array", "items": {"type": "integer"}, "description": "Ids of current messages."}
_RANGE: Final[JsonObject] = {
    "type": "array",
    "items": {"type": "integer"},
    "description": "First and last id of current messages, both included; instead of message_ids.",
}
_PROGRESS: Final[JsonObject] = {"type": "string", "description": "A milestone of at most 150 characters."}
_PREFERENCE: Final[JsonObject] = {"type": "string", "description": "What the user prefers, in the third person."}
_STATUS: Final[JsonObject] = {"type": "string", "enum": [status.value for status in TaskStatus]}


class Finish(Struct, frozen=True):
    """The task agent is done; other calls of the same reply still count."""


class Thought(Struct, frozen=True):
    """Thoughts of the task agent; they change nothing."""


TaskCall: TypeAlias = BoardChange | Finish | Thought


class _Tool(Struct, frozen=True):
    spec: ToolSpec
    read: Callable[[Arguments, frozenset[int]], TaskCall]
    """The call with these arguments; the second one has the ids of the current messages."""


def call_of(block: ToolUseBlock, seqs: frozenset[int]) -> TaskCall:
    """The call that a reply asks for. Raises TaskRefused for an unknown tool or arguments that cannot be."""
    tool = _BY_NAME.get(block.name)
    if tool is None:
        raise TaskRefused(f"There is no tool '{block.name[:60]}'.")
    try:
        fields = Arguments(parse_arguments(block.input_json), tuple(_properties(tool.spec)))
        return tool.read(fields, seqs)
    except ToolInputError as error:
        raise TaskRefused(f"{block.name}: {error}") from error


def _insert(fields: Arguments, _: frozenset[int]) -> TaskCall:
    return InsertTask(_whole(fields, "after_task_order"), fields.text("task_description"))


def _update(fields: Arguments, _: frozenset[int]) -> TaskCall:
    status = TaskStatus(_one_of(fields, "task_status")) if fields.has("task_status") else None
    description = fields.text("task_description") if fields.has("task_description") else None
    if status is None and description is None:
        raise ToolInputError("give task_status, task_description or both.")
    return UpdateTask(_whole(fields, "task_order"), status, description)


def _append(fields: Arguments, seqs: frozenset[int]) -> TaskCall:
    return AppendMessages(
        _whole(fields, "task_order"),
        _messages(fields, seqs),
        fields.text("progress") if fields.has("progress") else None,
        fields.text("user_preference") if fields.has("user_preference") else None,
    )


def _plan(fields: Arguments, seqs: frozenset[int]) -> TaskCall:
    return AppendToPlanning(_messages(fields, seqs))


def _progress(fields: Arguments, _: frozenset[int]) -> TaskCall:
    return AddProgress(_whole(fields, "task_order"), fields.text("progress"))


def _prefer(fields: Arguments, _: frozenset[int]) -> TaskCall:
    return AddPreference(fields.text("preference"))


def _think(fields: Arguments, _: frozenset[int]) -> TaskCall:
    fields.text("thinking")
    return Thought()


def _finish(fields: Arguments, _: frozenset[int]) -> TaskCall:
    return Finish()


def _whole(fields: Arguments, name: str) -> int:
    """A required whole number; the board says whether it is on it."""
    if not fields.has(name):
        raise ToolInputError(f"The argument {name} is missing.")
    return fields.whole(name, 0, -HIGHEST, HIGHEST)


def _one_of(fields: Arguments, name: str) -> str:
    value = fields.text(name)
    if value not in set(TaskStatus):
        raise ToolInputError(f"{name} must be one of {', '.join(TaskStatus)}.")
    return value


def _messages(fields: Arguments, seqs: frozenset[int]) -> tuple[int, ...]:
    """The ids that a call names, one by one or as a range."""
    if fields.has("message_ids") == fields.has("message_range"):
        raise ToolInputError("give either message_ids or message_range.")
    if fields.has("message_ids"):
        return tuple(dict.fromkeys(fields.wholes("message_ids", 0, HIGHEST)))
    bounds = fields.wholes("message_range", 0, HIGHEST)
    if len(bounds) != 2 or bounds[0] > bounds[1]:
        raise ToolInputError("message_range must have two ids, the smaller one first.")
    for bound in bounds:
        if bound not in seqs:
            raise ToolInputError(f"Message {bound} is out of range; only the current messages can be linked.")
    return tuple(seq for seq in sorted(seqs) if bounds[0] <= seq <= bounds[1])


def _tool(
    name: str,
    description: str,
    read: Callable[[Arguments, frozenset[int]], TaskCall],
    properties: JsonObject,
    required: tuple[str, ...] = (),
) -> _Tool:
    return _Tool(ToolSpec(name, description, object_schema(properties, required), ToolClass.EDIT), read)


def _properties(spec: ToolSpec) -> Mapping[str, JsonValue]:
    found = spec.input_schema["properties"]
    return found if isinstance(found, dict) else {}


_TOOLS: Final = (
    _tool(
        "insert_task",
        "Insert a new task with the status pending. Tasks behind it move by one.",
        _insert,
        {
            "after_task_order": {"type": "integer", "description": "Number of the task before it; 0: the front."},
            "task_description": _DESCRIPTION,
        },
        ("after_task_order", "task_description"),
    ),
    _tool(
        "update_task",
        "Change the status or the description of a task.",
        _update,
        {"task_order": _ORDER, "task_status": _STATUS, "task_description": _DESCRIPTION},
        ("task_order",),
    ),
    _tool(
        "append_messages_to_task",
        "Append messages to a task, which is running from then on; optionally with a milestone or a preference.",
        _append,
        {
            "task_order": _ORDER,
            "message_ids": _IDS,
            "message_range": _RANGE,
            "progress": _PROGRESS,
            "user_preference": _PREFERENCE,
        },
        ("task_order",),
    ),
    _tool(
        "append_messages_to_planning_section",
        "Append messages that ask for nothing to the planning section.",
        _plan,
        {"message_ids": _IDS, "message_range": _RANGE},
    ),
    _tool(
        "append_task_progress",
        "Add a milestone to a task.",
        _progress,
        {"task_order": _ORDER, "progress": _PROGRESS},
        ("task_order", "progress"),
    ),
    _tool(
        "submit_user_preference",
        "Record what the user prefers in general.",
        _prefer,
        {"preference": _PREFERENCE},
        ("preference",),
    ),
    _tool(
        "report_thinking",
        "Say what you think before other calls; it changes nothing.",
        _think,
        {"thinking": {"type": "string", "description": "Your thoughts."}},
        ("thinking",),
    ),
    _tool("finish", "End: all messages are recorded.", _finish, {}),
)
TOOLS: Final = tuple(tool.spec for tool in _TOOLS)
"""Tools in a fixed order, so that a provider can keep them in its cache."""
_BY_NAME: Final[Mapping[str, _Tool]] = {tool.spec.name: tool for tool in _TOOLS}
