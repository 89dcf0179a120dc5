"""The result frame of one turn, as hosts of Claude's agent SDKs read it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final, cast

from engine.machine.messages import ToolCall
from engine.machine.states import AwaitingApproval, Errored, ToolExecuting
from phoenix_tui.cli.agent_reports import Used
from phoenix_tui.cli.agent_sdk import model_usage
from phoenix_tui.cli.control.names import bare_model, foreign_call, foreign_names
from phoenix_tui.cli.exits import Exit
from phoenix_tui.cli.outcome import RunOutcome
from tools.contract import JsonObject, JsonValue, ToolInputError

ERRORS: Final = {
    "auth": "authentication_failed",
    "rate_limit": "rate_limit",
    "overloaded": "server_error",
    "server": "server_error",
    "invalid_request": "invalid_request",
}
"""Kinds of failures by the names of the SDK; `unknown` for all others."""
HOOK_STOPPED: Final = "hook_stopped"
"""Error code, and reason in a result, of a run that a hook ended."""
NAMED: Final = {"cancelled": "error_during_execution", "error_timeout": "error_during_execution"}
"""Subtypes of Phoenix that SDKs do not know."""
OF_PHOENIX: Final = frozenset({"storage", "busy", "internal"})
"""Kinds of errors that no server of a model caused."""


def is_api_failure(outcome: RunOutcome) -> bool:
    """True where the model's server ended the run."""
    code = outcome.ended.error_code if outcome.ended is not None else ""
    by_server = outcome.failed is not None and outcome.failed.kind not in OF_PHOENIX
    return by_server and outcome.exit_code is not Exit.CAP and code != "loop"


def failure_kind(failed: Errored | None) -> str:
    """The SDK's name of a failure."""
    return ERRORS.get(failed.kind, "unknown") if failed is not None else "unknown"


def result_frame(outcome: RunOutcome, whole: Used, cost: float | None, uuids: tuple[str, ...]) -> JsonObject:
    """The result of a turn; `whole` and `cost` are of the connection so far, `uuids` of the messages it answers."""
    result = outcome.result_object()
    for name in ("model_usage", "error", "total_usage", "total_turns"):
        result.pop(name, None)
    failed = outcome.exit_code is not Exit.OK
    ids: list[JsonValue] = list(uuids)
    subtype = str(result["subtype"])
    result |= {
        "subtype": NAMED.get(subtype, subtype),
        "total_cost_usd": cost,
        "modelUsage": model_usage(whole, outcome.describe),
        "model": bare_model(outcome.model),
        "user_message_uuids": ids,
    }
    result["permission_denials"] = [_foreign(one) for one in outcome.denials.found]
    if ids:
        result["user_message_uuid"] = ids[-1]
    if outcome.ended is not None and outcome.ended.error_code == HOOK_STOPPED:
        nothing = list[JsonValue]()
        result |= {"subtype": "success", "is_error": False, "errors": nothing, "result": outcome.error}
        result["terminal_reason"] = HOOK_STOPPED
    elif failed and is_api_failure(outcome):
        nothing = list[JsonValue]()
        status = outcome.failed.status if outcome.failed is not None else 0
        result |= {"subtype": "success", "result": outcome.error, "errors": nothing, "api_error_status": status or None}
        result["terminal_reason"] = "api_error"
    return result


def deferred_fields(call: ToolCall, cwd: Path) -> JsonObject:
    """The call that a hook put off, as the host knows it."""
    given = cast("JsonObject", json.loads(call.input_json or "{}"))
    try:
        name, args = foreign_call(call.name, given, cwd)
    except ToolInputError:
        name, args = foreign_names([call.name])[0], given
    return {"deferred_tool_use": {"id": call.id, "name": name, "input": args}}


def _foreign(denial: JsonValue) -> JsonValue:
    """A refused call under the host's name."""
    if not isinstance(denial, dict):
        return denial
    name: JsonObject = {"tool_name": foreign_names([str(denial["tool_name"])])[0]}
    return denial | name


def interrupted_in_a_tool(outcome: RunOutcome) -> bool:
    """True where a tool ran, or was asked about, when the user stopped the run."""
    return isinstance(outcome.worked, ToolExecuting | AwaitingApproval)
