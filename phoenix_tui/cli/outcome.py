"""Outcome of a headless run: collected from updates, reported as a result object and an exit code (CONTRACT 2, 3)."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import cast

from engine.executor.deferring import CODE as TOOL_DEFERRED
from engine.executor.requests import Refused
from engine.executor.spending import UNKNOWN_PRICE
from engine.machine.messages import Origin, Role, ToolCall, text_in
from engine.machine.states import Errored, Idle, State
from engine.machine.texts import CUT_OFF
from engine.records import StoredMessage
from engine.records.model_calls import CallPurpose, ModelCall
from engine.updates import (
    CallEnded,
    ContextChanged,
    MessageSaved,
    RunEnded,
    Snapshot,
    StateChanged,
    ToolStarted,
    Update,
)
from phoenix_tui.cli.agent_reports import AgentReports, Denials, Used
from phoenix_tui.cli.agent_sdk import DescribeModel, framed, model_usage, nothing_known, terminal_reason
from phoenix_tui.cli.blocks import encode, usage_object
from phoenix_tui.cli.exits import CommandError, Exit
from tools.contract import JsonObject, JsonValue

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
    denials: Denials = field(default_factory=lambda: Denials())
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
                self._count(call)
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
        return framed(result)

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

    def _count(self, call: ModelCall) -> None:
        self.used.count(call)
        if call.purpose is CallPurpose.REPLY:
            self.stop_reason = STOPS.get(call.stop, call.stop) or None

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
