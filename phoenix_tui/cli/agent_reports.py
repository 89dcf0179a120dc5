"""Sub-agents and denied calls of a headless run: parts of the result object."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Final

from msgspec import Struct

from engine.machine.messages import ToolCall, ToolResult, ToolStatus, Usage
from engine.records.model_calls import CallPurpose, CallStatus, ModelCall
from engine.records.totals import total_cost
from engine.updates import AgentsChanged, AgentView, ApprovalAsked, CallEnded, Snapshot, ToolEnded, ToolStarted, Update
from phoenix_tui.cli.blocks import usage_object
from tools.contract import JsonObject, JsonValue

DENIED = ("Permission mode '", "User denied permission")
"""Prefixes of the result of a denied call."""
MOST_DENIED: Final = 262_144
"""Characters of refused inputs in a result: readers of lines, such as Claude's SDKs, take one of at most 1 MiB."""


def is_denial(result: ToolResult) -> bool:
    """True when a call was not allowed, and so never ran."""
    return result.status is ToolStatus.ERROR and result.text.startswith(DENIED)


@dataclass(slots=True)
class Denials:
    """Calls that were refused, of a conversation or of its sub-agents, in order."""

    found: list[JsonValue] = field(default_factory=list["JsonValue"])
    by_hooks: int = 0
    """Number of those that a hook wanted to be asked about: no mode allows them."""
    _size: int = 0
    """Characters of all their inputs."""
    _calls: dict[tuple[str, str], ToolCall] = field(default_factory=dict[tuple[str, str], ToolCall])

    def follow(self, update: Update, agent_id: str = "") -> None:
        """Take in an update of the conversation, or of one of its sub-agents."""
        match update:
            case ToolStarted(call):
                self._calls[agent_id, call.id] = call
            case ApprovalAsked(question) if question is not None:
                self._calls[agent_id, question.call.id] = question.call
                self.by_hooks += question.by_hook
            case ToolEnded(result) if is_denial(result):
                self._deny(self._calls.get((agent_id, result.call_id)))
            case _:
                pass  # no call

    def _deny(self, call: ToolCall | None) -> None:
        if call is None:
            return
        self._size += len(call.input_json)
        fits = self._size <= MOST_DENIED
        tool_input: JsonValue = json.loads(call.input_json) if fits else {"left_out": len(call.input_json)}
        self.found.append({"tool_name": call.name, "tool_use_id": call.id, "tool_input": tool_input})


class ModelTotal(Struct, frozen=True):
    """Usage of one model; `cost_usd` is None where its price is unknown."""

    provider: str
    usage: Usage = Usage()
    cost_usd: float | None = 0.0


@dataclass(slots=True)
class Used:
    """The model calls of a conversation during a run, and their usage."""

    turns: int = 0
    usage: Usage = field(default_factory=Usage)
    by_model: dict[str, ModelTotal] = field(default_factory=dict[str, "ModelTotal"])
    api_ms: int = 0
    """Time that servers took, of all calls together; calls beside each other count each."""

    def count(self, call: ModelCall) -> None:
        """Take in a call; only whole replies count as turns."""
        self.turns += call.purpose is CallPurpose.REPLY and call.status is CallStatus.OK
        self.api_ms += call.duration_ms
        if call.usage != Usage():
            self._add(call.model, ModelTotal(call.provider, call.usage, call.cost_usd))

    def add(self, other: Used) -> None:
        """Add the usage of another conversation."""
        self.turns += other.turns
        self.api_ms += other.api_ms
        for model, total in other.by_model.items():
            self._add(model, total)

    def _add(self, model: str, total: ModelTotal) -> None:
        self.usage += total.usage
        before = self.by_model.get(model, ModelTotal(total.provider))
        cost = total_cost(before.cost_usd, total.cost_usd)
        self.by_model[model] = ModelTotal(total.provider, before.usage + total.usage, cost)

    def models(self) -> JsonObject:
        """Usage of each model."""
        return {model: usage_object(total.usage) for model, total in self.by_model.items()}


@dataclass(slots=True)
class AgentReports:
    """The sub-agents that worked during a run, oldest first."""

    used: dict[str, Used] = field(default_factory=dict[str, Used])
    """Usage by the ids of sub-agents, of this run alone."""
    _before: dict[str, float] = field(default_factory=dict[str, float])
    """Start of the last run of earlier sub-agents."""
    _views: tuple[AgentView, ...] = ()

    def follow(self, update: Update) -> None:
        """Take in an update of the conversation."""
        match update:
            case Snapshot():
                self._before = {view.id: view.started for view in update.agents}
            case AgentsChanged(agents=views):
                self._views = tuple(view for view in views if self._before.get(view.id) != view.started)
            case _:
                pass  # no update of sub-agents

    def follow_agent(self, agent_id: str, update: Update) -> None:
        """Take in an update of one of them."""
        if isinstance(update, CallEnded):
            self.used.setdefault(agent_id, Used()).count(update.call)

    def objects(self) -> list[JsonValue]:
        """One object each."""
        return [self._object(one) for one in self._views]

    def _object(self, view: AgentView) -> JsonObject:
        usage: JsonObject = {"usage": usage_object(self._usage(view.id))}
        return agent_object(view) | usage

    def _usage(self, agent_id: str) -> Usage:
        return self.used[agent_id].usage if agent_id in self.used else Usage()


def agent_object(view: AgentView) -> JsonObject:
    """A sub-agent for scripts."""
    outcome = view.outcome
    return {
        "id": view.id,
        "task": view.task,
        "profile": view.profile,
        "model": view.model,
        "status": outcome.status.value if outcome is not None else "running",
        "error": outcome.reason if outcome is not None else "",
        "turns": view.turn,
        "cost_usd": view.cost_usd,
        "duration_ms": max(0, round((view.ended - view.started) * 1000)) if view.ended and view.started else 0,
    }
