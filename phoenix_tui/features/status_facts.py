"""Facts for the user's status line program, under names that scripts written for other agents know."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

from engine.machine.messages import Usage
from engine.machine.states import STATE_NAMES, AwaitingApproval
from engine.records import ConversationRecord
from engine.run_options import Effort
from phoenix_tui.cli.names import VERSION
from phoenix_tui.text.labels import short_model
from tools.contract import JsonObject

if TYPE_CHECKING:
    from engine.conversation import Conversation

LONG_CONTEXT = 200_000
"""Tokens of `exceeds_200k_tokens`."""


def status_facts(conversation: Conversation | None, cwd: Path, model: str, conversations: int) -> JsonObject:
    """All fields. Null: Phoenix does not count it, or does not know it yet.

    Cost and tokens are those of `/cost`, sub-agents included.
    """
    record = conversation.record if conversation is not None else None
    folder, model = (str(record.cwd), record.model) if record is not None else (str(cwd), model)
    state = conversation.state if conversation is not None else None
    return {
        "session_id": record.id if record is not None else "",
        "transcript_path": "",
        "cwd": folder,
        "model": {"id": model, "display_name": short_model(model)},
        "workspace": {"current_dir": folder, "project_dir": folder, "added_dirs": []},
        "version": VERSION,
        "output_style": {"name": "default"},
        "cost": _cost(record),
        "context_window": _window(record),
        "exceeds_200k_tokens": record is not None and record.context_tokens > LONG_CONTEXT,
        "thinking": {"enabled": record is None or record.effort is not Effort.OFF},
        "phoenix": {
            "state": STATE_NAMES[type(state)] if state is not None else "idle",
            "needs_you": isinstance(state, AwaitingApproval),
            "conversations": conversations,
        },
    }


def _cost(record: ConversationRecord | None) -> JsonObject:
    return {
        "total_cost_usd": record.spent.cost_usd if record is not None else 0.0,
        "total_duration_ms": int(max(time.time() - record.created_at, 0.0) * 1000) if record is not None else 0,
        "total_api_duration_ms": None,
        "total_lines_added": None,
        "total_lines_removed": None,
    }


def _window(record: ConversationRecord | None) -> JsonObject:
    if record is None:
        return {"total_input_tokens": 0, "total_output_tokens": 0, "context_window_size": 0} | _fill(0, 0, None)
    spent = record.spent
    return {
        "total_input_tokens": spent.input_tokens + spent.cache_creation_tokens + spent.cache_read_tokens,
        "total_output_tokens": spent.output_tokens,
        "context_window_size": record.context_window,
    } | _fill(record.context_tokens, record.context_window, record.last_usage)


def _fill(tokens: int, window: int, usage: Usage | None) -> JsonObject:
    used = round(min(tokens / window, 1.0) * 100, 1) if window else None
    current: JsonObject | None = None
    if usage is not None:
        current = {
            "input_tokens": usage.input_tokens,
            "output_tokens": usage.output_tokens,
            "cache_creation_input_tokens": usage.cache_creation_tokens,
            "cache_read_input_tokens": usage.cache_read_tokens,
        }
    return {
        "current_usage": current,
        "used_percentage": used,
        "remaining_percentage": round(100 - used, 1) if used is not None else None,
    }
