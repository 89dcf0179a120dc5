"""What a headless run collects of its sub-agents, and of what it was not allowed: parts of the result object."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from engine.machine.messages import ToolCall, ToolStatus
from engine.updates import AgentsChanged, AgentView, Asked, Snapshot, ToolEnded, ToolStarted, Update
from tools.contract import JsonObject, JsonValue

DENIED = ("Permission mode '", "User denied permission")
"""How the result of a call begins that was not allowed."""


@dataclass(slots=True)
class Denials:
    """Calls that were refused, of a conversation or of its sub-agents, in order."""

    found: list[JsonValue] = field(default_factory=list["JsonValue"])
    _calls: dict[tuple[str, str], ToolCall] = field(default_factory=dict[tuple[str, str], ToolCall])

    def follow(self, update: Update, agent_id: str = "") -> None:
        """Take in an update of the conversation, or of one of its sub-agents."""
        match update:
            case ToolStarted(call):
                self._calls[agent_id, call.id] = call
            case Asked(question) if question is not None:
                self._calls[agent_id, question.call.id] = question.call
            case ToolEnded(result) if result.status is ToolStatus.ERROR and result.text.startswith(DENIED):
                self._deny(self._calls.get((agent_id, result.call_id)))
            case _:
                pass  # no call

    def _deny(self, call: ToolCall | None) -> None:
        if call is not None:
            tool_input: JsonValue = json.loads(call.input_json)
            self.found.append({"tool_name": call.name, "tool_use_id": call.id, "tool_input": tool_input})


@dataclass(slots=True)
class AgentResults:
    """The sub-agents that worked during a run, oldest first."""

    _before: dict[str, float] = field(default_factory=dict[str, float])
    """When those of earlier runs began last."""
    _views: tuple[AgentView, ...] = ()

    def follow(self, update: Update) -> None:
        """Take in an update of the conversation."""
        match update:
            case Snapshot():
                self._before = {view.id: view.started for view in update.agents}
            case AgentsChanged(agents=views):
                self._views = tuple(view for view in views if self._before.get(view.id) != view.started)
            case _:
                pass  # nothing of sub-agents

    def objects(self) -> list[JsonValue]:
        """One object each."""
        return [agent_object(view) for view in self._views]


def agent_object(view: AgentView) -> JsonObject:
    """A sub-agent for scripts."""
    return {
        "id": view.id,
        "task": view.task,
        "profile": view.profile,
        "status": view.outcome.status.value if view.outcome is not None else "running",
        "turns": view.turn,
        "cost_usd": view.cost_usd,
        "duration_ms": max(0, round((view.ended - view.started) * 1000)) if view.ended and view.started else 0,
    }
