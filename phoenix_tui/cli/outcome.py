"""Outcome of a run without a screen: collected from updates, reported as an object and an exit code (CONTRACT 2, 3).

The fields and names by which hosts that speak with `claude -p` read it were measured with the parser of
`claude-agent-sdk` 0.2.187 (Python) and the types of `@anthropic-ai/claude-agent-sdk` 0.3.330 (npm); `make sdk-parsers`
repeats it (docs/sdk-parsers.md).
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final, TypeAlias, cast

from msgspec import Struct

from engine.executor.asking import UNKNOWN_PRICE
from engine.executor.call_hooks import CODE as TOOL_DEFERRED
from engine.executor.requests import Refused
from engine.machine.messages import Origin, Role, ToolCall, ToolResult, ToolStatus, Usage, text_in
from engine.machine.states import AwaitingApproval, Cancelling, Errored, Idle, State, ToolExecuting
from engine.machine.texts import CUT_OFF
from engine.ports import ModelInfo
from engine.ports.extensions import Invocable, InvocableCatalogue
from engine.records import StoredMessage
from engine.records.runs import CallPurpose, CallStatus, ModelCall, total_cost
from engine.updates import (
    AgentsChanged,
    AgentView,
    ApprovalAsked,
    CallEnded,
    ContextChanged,
    MessageSaved,
    RunEnded,
    Snapshot,
    StateChanged,
    ToolEnded,
    ToolStarted,
    Update,
)
from phoenix_tui.cli.blocks import encode, usage_object
from phoenix_tui.cli.exits import CommandError, Exit
from tools.contract import JsonObject, JsonValue
from tools.fresh_ids import fresh_id

DENIED = ("Permission mode '", "User denied permission")
"""Prefixes of the result of a denied call."""
MOST_DENIED: Final = 262_144
"""Characters of refused inputs in a result: readers of lines, such as Claude's SDKs, take one of at most 1 MiB."""


def is_denial(result: ToolResult) -> bool:
    """True when a call was not allowed, and so never ran."""
    return result.status is ToolStatus.ERROR and result.text.startswith(DENIED)


@dataclass(slots=True)
class DeniedCalls:
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
        used = {one.id: usage_object(self.used.get(one.id, Used()).usage) for one in self._views}
        return [{**agent_object(one), "usage": used[one.id]} for one in self._views]


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


DescribeModel: TypeAlias = Callable[[str], ModelInfo | None]
"""Look up a model by its reference; None where no provider knows it."""
COMPATIBLE_VERSION: Final = "2.1.330"
"""Version of the program whose output these lines follow: its SDK warns where none is named."""
MODES: Final = {"ask": "default", "accept-edits": "acceptEdits", "auto": "bypassPermissions", "deny": "dontAsk"}
"""Permission modes under the other program's names; `plan` is the same word."""
_REASONS: Final = {
    "success": "completed",
    "error_max_turns": "max_turns",
    "error_max_budget_usd": "budget_exhausted",
    "error_during_execution": "api_error",
}


def add_frame_id(line: JsonObject) -> JsonObject:
    """A line with an id of its own, which parsers demand."""
    return line | {"uuid": fresh_id()}


def session_fields(permission_mode: str) -> JsonObject:
    """Fields of an init line besides the run's own settings, as they are without extensions."""
    nothing: list[JsonValue] = []
    return {
        "permissionMode": MODES.get(permission_mode, permission_mode),
        "apiKeySource": "none",
        "slash_commands": nothing,
        "agents": nothing,
        "skills": nothing,
        "plugins": nothing,
        "output_style": "default",
        "claude_code_version": COMPATIBLE_VERSION,
    }


def model_usage(used: Used, describe: DescribeModel) -> JsonObject:
    """Usage of each model; `costUSD` is null where a price is unknown."""
    return {model: _of_model(model, total, describe) for model, total in used.by_model.items()}


def terminal_reason(subtype: str, state: State | None) -> str:
    """Reason of a run's end; `state` is the last one in which it worked, or the error in which it ended."""
    if subtype == "error_during_execution" and not isinstance(state, Errored):
        return "model_error"
    in_tools = isinstance(state, ToolExecuting | AwaitingApproval | Cancelling)
    stopped = "aborted_tools" if in_tools else "aborted_streaming"
    return _REASONS.get(subtype, stopped)


def _of_model(model: str, total: ModelTotal, describe: DescribeModel) -> JsonObject:
    known = describe(f"{total.provider}/{model}")
    return {
        "inputTokens": total.usage.input_tokens,
        "outputTokens": total.usage.output_tokens,
        "cacheReadInputTokens": total.usage.cache_read_tokens,
        "cacheCreationInputTokens": total.usage.cache_creation_tokens,
        "webSearchRequests": total.usage.web_searches,
        "costUSD": total.cost_usd,
        "contextWindow": known.context_window if known is not None else 0,
        "maxOutputTokens": known.max_output if known is not None else 0,
    }


def nothing_known(reference: str) -> ModelInfo | None:
    """Describes no model."""
    del reference
    return None


class HostCommands(Struct, frozen=True):
    """A part of the handshake; the files are looked at before the first turn."""

    catalogue: Callable[[], InvocableCatalogue]
    """The newest catalogue, from memory."""
    offered: Callable[[], InvocableCatalogue]
    """The same with the skills that models are offered."""
    look: Callable[[], Awaitable[None]]
    """Looks at the files again, within its own bound."""

    def begin(self, request: JsonObject) -> None:
        """Take nothing: a host defines no commands."""

    async def ready(self) -> None:
        """Look at the files."""
        await self.look()

    def init_fields(self) -> JsonObject:
        """Names of what a user may call, and of the skills that models are offered."""
        calls: list[JsonValue] = [one.name for one in _list_callable(self.catalogue())]
        skills: list[JsonValue] = [skill.name for skill in self.offered().skills]
        return {"slash_commands": calls, "skills": skills}

    def objects(self) -> list[JsonValue]:
        """The commands as the answer to the handshake lists them."""
        return [
            {"name": one.name, "description": one.description, "argumentHint": one.argument_hint}
            for one in _list_callable(self.catalogue())
        ]


def _list_callable(catalogue: InvocableCatalogue) -> list[Invocable]:
    """All that a user may call by its plain name."""
    found = (*catalogue.commands, *catalogue.skills)
    return [one for one in found if one.for_users and catalogue.find(one.name) is one]


CAPS = {
    "iteration_limit": "error_max_turns",
    "budget": "error_max_budget_usd",
    "price": "error_max_budget_usd",
    "timeout": "error_timeout",
}
"""Subtype of each cap, by the run's error code."""
CAPPED = {
    "iteration_limit": "The --max-turns limit was reached before the sub-agents' results were read.",
    "budget": "The --max-budget-usd limit was reached before the sub-agents' results were read.",
    "price": f"The run was stopped: --max-budget-usd cannot be enforced, because {UNKNOWN_PRICE}.",
    "timeout": "The --timeout limit was reached while sub-agents were working.",
}
"""Reasons why a run is incomplete though its own turns went well."""

RUN_STOPPED = "The run was stopped."

SAID = frozenset({"refusal", "content_filter", "output_limit"})
"""Error codes of runs whose last reply is whole, or as much of it as there will be."""
STOPS = {"content_filter": "refusal"}
"""Stop reasons unknown to the Messages API, and their replacements."""


@dataclass(slots=True)
class RunOutcome:
    """Data of a result object; fed with every update of the run."""

    session_id: str
    model: str
    text: str = ""
    has_last_words: bool = False
    """True when `text` is the model's last, with no tool behind it."""
    used: Used = field(default_factory=lambda: Used())
    """Usage of the conversation itself; `agents` has that of its sub-agents."""
    denials: DeniedCalls = field(default_factory=lambda: DeniedCalls())
    agents: AgentReports = field(default_factory=lambda: AgentReports())
    ended: RunEnded | None = None
    refused: Refused | None = None
    """Refusal of the message, which therefore began no run."""
    capped: str = ""
    """The limit that was reached while its sub-agents worked, as an error code."""
    stopped_by: Exit | None = None
    """The signal that ended it, as its exit code."""
    fault: CommandError | None = None
    """Fault with which Phoenix could not begin, or not go on; None where the run itself ended."""
    duration_ms: int = 0
    structured: JsonObject | None = None
    """The answer of `--json-schema`; None without one."""
    describe: DescribeModel = nothing_known
    """Windows and limits of the models that were used."""
    stop_reason: str | None = None
    """Stop reason of the last reply; None while none came, or the last call brought none."""
    _worked: State | None = None
    """The last state before it came to rest."""
    _call: ToolCall | None = None
    """The newest call of a tool."""
    _is_cut: bool = False
    _state: State | None = None
    _cost_before: float | None = 0.0
    _cost: float | None = 0.0

    def follow(self, update: Update) -> None:
        """Take in one update."""
        self.denials.follow(update)
        self.agents.follow(update)
        match update:
            case Snapshot():
                self._cost_before = self._cost = update.conversation.spent.cost_usd
            case CallEnded(call):
                self.used.count(call)
                if call.purpose is CallPurpose.REPLY:
                    self.stop_reason = STOPS.get(call.stop, call.stop) or None
            case MessageSaved(message):
                self._read(message)
            case ContextChanged():
                self._cost = update.cost_usd
            case StateChanged(state):
                self._worked = self._worked if isinstance(state, Idle | Errored) else state
                self._state = state
            case ToolStarted(call):
                self._call = call
            case RunEnded():
                self.ended = update
            case _:
                pass  # for the screen only

    def next_one(self) -> RunOutcome:
        """The outcome of the run after this one, which is followed without another snapshot."""
        return RunOutcome(
            self.session_id, self.model, describe=self.describe, _cost_before=self._cost, _cost=self._cost
        )

    def settle(self, state: State) -> None:
        """Take in the state the conversation came to rest in."""
        self._state = state

    @property
    def cost(self) -> float | None:
        """US dollars of this run; None when a price was unknown."""
        if self._cost is None or self._cost_before is None:
            return None
        return max(0.0, self._cost - self._cost_before)

    @property
    def exit_code(self) -> Exit:
        """Exit code of the program."""
        if self.stopped_by is not None:
            return self.stopped_by
        if self.fault is not None:
            return self.fault.code
        if self.refused is not None:
            return Exit.CAP if self.refused.is_cap else Exit.RETRYABLE if self.refused.is_busy else Exit.FAILED
        if self.capped == "price":
            return Exit.CAP
        if self.ended is None or self.ended.status in {"cancelled", "interrupted"}:
            return Exit.INTERRUPTED
        if self.capped:
            return Exit.CAP
        if self.ended.status == "success" or self.deferred is not None:
            return Exit.OK
        if self._hit_cap:
            return Exit.CAP
        return _failure_code(self.failed) if self.failed is not None else Exit.FAILED

    @property
    def deferred(self) -> ToolCall | None:
        """The call that a hook put off, with which the run ended; None elsewhere."""
        return self._call if self.ended is not None and self.ended.error_code == TOOL_DEFERRED else None

    @property
    def error(self) -> str:
        """Reason of a failure, one sentence; empty for a success."""
        if self.stopped_by is not None:
            return RUN_STOPPED if self.stopped_by is Exit.INTERRUPTED else CUT_OFF
        if self.fault is not None:
            return self.fault.sentence
        if self.refused is not None:
            return self.refused.reason
        if self.capped:
            return CAPPED[self.capped]
        return (self.ended.error if self.ended is not None else "") or RUN_STOPPED

    @property
    def ended_in_words(self) -> bool:
        """True when `text` is the answer as far as it came, though the run did not succeed."""
        code = self.ended.error_code if self.ended is not None else ""
        return self.has_last_words and (self._is_cut or code in SAID)

    def result_object(self) -> JsonObject:
        """The object that ends json and stream-json."""
        code, whole = self.exit_code, self.whole()
        subtype = self._subtype(code)
        result: JsonObject = {
            "type": "result",
            "subtype": subtype,
            "is_error": code is not Exit.OK,
            "duration_ms": self.duration_ms,
            "duration_api_ms": whole.api_ms,
            "num_turns": self.turns,
            "total_turns": whole.turns,
            "result": self.text,
            "stop_reason": self.stop_reason,
            "terminal_reason": terminal_reason(subtype, self.failed or self._worked),
            "session_id": self.session_id,
            "task_id": self.ended.run_id if self.ended is not None else "",
            "total_cost_usd": self.cost,
            "usage": usage_object(self.used.usage),
            "total_usage": usage_object(whole.usage),
            "model_usage": whole.models(),
            "modelUsage": model_usage(whole, self.describe),
            "model": self.model,
            "permission_denials": list(self.denials.found),
            "agents": self.agents.objects(),
        }
        if self.structured is not None:
            result |= {"structured_output": self.structured, "result": encode(self.structured)}
        if self.deferred is not None:
            call = self.deferred
            given = cast("JsonValue", json.loads(call.input_json or "{}"))
            result |= {"deferred_tool_use": {"id": call.id, "name": call.name, "input": given}}
            result |= {"stop_reason": TOOL_DEFERRED, "terminal_reason": TOOL_DEFERRED}
        if code is not Exit.OK:
            result |= {"error": self.error, "errors": [self.error]}
        return add_frame_id(result)

    @property
    def turns(self) -> int:
        """Replies of its own model, which --max-turns counts."""
        return self.used.turns

    def whole(self) -> Used:
        """All that the conversation and its sub-agents used."""
        whole = Used()
        for used in (self.used, *self.agents.used.values()):
            whole.add(used)
        return whole

    @property
    def worked(self) -> State | None:
        """The last state before it came to rest; None while there was none."""
        return self._worked

    @property
    def failed(self) -> Errored | None:
        """The error in which it ended, or None."""
        return self._state if isinstance(self._state, Errored) else None

    @property
    def _hit_cap(self) -> bool:
        """A cap, and not a provider's own time limit, which is an error under the same name."""
        code = self.ended.error_code if self.ended is not None else ""
        return code in CAPS and (self.failed is None or code == "budget")

    def _subtype(self, code: Exit) -> str:
        if code is Exit.OK:
            return "success"
        if code in {Exit.INTERRUPTED, Exit.TERMINATED}:
            return "cancelled"
        if self.refused is not None and self.refused.is_cap:
            return CAPS["budget"]
        if code is Exit.CAP and self.ended is not None:
            return CAPS.get(self.capped or self.ended.error_code, "error_during_execution")
        return "error_during_execution"

    def _read(self, message: StoredMessage) -> None:
        if message.origin is Origin.TOOL:
            self.has_last_words = False
        if message.role is not Role.ASSISTANT or message.origin is not Origin.LLM:
            return
        self.model = self.model or message.model
        spoken = "" if message.silent else text_in(message.blocks)
        if spoken or message.silent:
            self.text, self._is_cut = spoken, bool(message.cut)
        self.has_last_words = bool(spoken)


def _failure_code(state: Errored) -> Exit:
    if state.kind in {"auth", "not_understood"}:  # the guide asks for a real model (CONTRACT 5)
        return Exit.CREDENTIALS
    if state.kind == "storage":  # a person may try again; a script waits in vain
        return Exit.FAILED
    return Exit.RETRYABLE if state.retryable else Exit.FAILED
