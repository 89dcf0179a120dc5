"""Frames about sub-agents as tasks of a host: begin, progress, and the end in the two forms that SDKs know."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct, field

from engine.updates import AgentView, ToolStarted, Update
from phoenix_tui.cli.control.names import foreign_name
from tools.contract import JsonObject

STATUSES: Final = {"success": "completed", "failure": "failed", "timeout": "failed", "cancelled": "stopped"}
"""Outcomes of sub-agents as hosts know them in a notification; `task_updated` has `killed` for `stopped`."""
KILLED: Final = "killed"


class _Task(Struct):
    """Facts about one sub-agent."""

    has_ended: bool = False
    uses: int = 0
    """Calls of tools in its present run."""
    last_tool: str = ""
    told: tuple[int, int] = (0, 0)
    """Calls and tokens of the newest frame about its progress."""


class TaskFrames(Struct, eq=False):
    """The sub-agents of one connection."""

    _tasks: dict[str, _Task] = field(default_factory=dict[str, _Task])

    def note(self, agent_id: str, update: Update) -> None:
        """Count the calls of a sub-agent."""
        if isinstance(update, ToolStarted) and (task := self._tasks.get(agent_id)) is not None:
            task.uses += 1
            task.last_tool = foreign_name(update.call.name)

    def of(self, views: Sequence[AgentView]) -> Iterator[JsonObject]:
        """Frames about what has changed since the last views."""
        for view in views:
            task = self._tasks.get(view.id)
            if view.outcome is None and (task is None or task.has_ended):
                self._tasks[view.id] = _Task(told=(0, view.tokens))
                yield _frame("task_started", view) | {"task_type": "local_agent", "description": view.task}
            elif view.outcome is not None and task is not None and not task.has_ended:
                task.has_ended = True
                yield from _ended(view, task)
            elif task is not None and not task.has_ended and (task.uses, view.tokens) != task.told:
                task.told = task.uses, view.tokens
                progress: JsonObject = {"description": view.task, "usage": _usage(view, task)}
                if task.last_tool:
                    progress["last_tool_name"] = task.last_tool
                yield _frame("task_progress", view) | progress


def _ended(view: AgentView, task: _Task) -> Iterator[JsonObject]:
    assert view.outcome is not None, "it has ended"
    status = STATUSES.get(view.outcome.status.value, "failed")
    patch: JsonObject = {"status": KILLED if status == "stopped" else status, "end_time": round(view.ended * 1000)}
    updated: JsonObject = {"patch": patch}
    yield _frame("task_updated", view) | updated
    summary = view.outcome.reason or view.task
    ended: JsonObject = {"status": status, "summary": summary, "output_file": "", "usage": _usage(view, task)}
    yield _frame("task_notification", view) | ended


def _frame(subtype: str, view: AgentView) -> JsonObject:
    return {"type": "system", "subtype": subtype, "task_id": view.id, "tool_use_id": view.call_id or None}


def _usage(view: AgentView, task: _Task) -> JsonObject:
    """Tokens, calls and time; the time counts up to the newest sign of work while it works."""
    until = view.ended or view.last_output
    elapsed = max(0, round((until - view.started) * 1000)) if view.started else 0
    return {"total_tokens": view.tokens, "tool_uses": task.uses, "duration_ms": elapsed}
