"""Fields and names by which hosts that speak with `claude -p` read a run.

Measured with the parser of `claude-agent-sdk` 0.2.187 (Python) and the types of `@anthropic-ai/claude-agent-sdk`
0.3.330 (npm); `make sdk-parsers` repeats it (docs/sdk-parsers.md).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from engine.machine.states import AwaitingApproval, Cancelling, Errored, State, ToolExecuting
from engine.ports import ModelInfo
from phoenix_tui.cli.agent_reports import ModelTotal, Used
from tools.contract import JsonObject, JsonValue
from tools.fresh_ids import fresh_id

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


def framed(line: JsonObject) -> JsonObject:
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
