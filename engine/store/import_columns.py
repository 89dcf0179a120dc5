"""Columns accepted from an exported row, and the checks of their values; settings and pending work are not taken."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Final, TypeAlias, cast

from engine.codec import (
    CodecError,
    decode_blocks,
    decode_display,
    decode_earlier,
    decode_flags,
    decode_omitted,
    decode_todos,
    decode_totals,
    decode_usage,
    storable,
)
from engine.machine.messages import Usage
from engine.machine.views import EarlierView, Omission
from engine.ports import ImportRefused
from engine.records.runs import Totals
from engine.run_options import Effort
from engine.store.copying import ColumnValue, is_task_data, is_task_status, is_tracking
from engine.store.messages import is_attachment_name
from engine.store.names import are_names
from tools.displays import TodoList, is_sound
from tools.planning import LONGEST_PLAN

LONG: Final = 16_000_000
"""Characters of one text; the longest that Phoenix itself stores are a few hundred thousand."""
SHORT: Final = 1_000
MOST: Final = 10**12
LATEST: Final = 4_102_444_800.0
"""The year 2100: every later time is a mistake, and some cannot be shown at all."""
ID: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_CALL_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,128}")
_ROW_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,128}(/[0-9]{1,9})?")
Check: TypeAlias = Callable[[ColumnValue], bool]


class WrongValue(ImportRefused):
    """A value of an export that cannot be; the message is a sentence."""

    def __init__(self, table: str, column: str, value: object) -> None:
        super().__init__(f"This export has an invalid part: {table}.{column} is {storable(f'{value!r:.40}')}.")


def text(most: int = SHORT) -> Check:
    """Check for text of at most `most` characters."""
    return lambda value: isinstance(value, str) and len(value) <= most


def matching(pattern: re.Pattern[str]) -> Check:
    """Text that is all of a pattern."""
    return lambda value: isinstance(value, str) and pattern.fullmatch(value) is not None


def number(most: float = MOST) -> Check:
    """A whole number from 0 on."""
    return lambda value: isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= most


def amount(most: float = MOST) -> Check:
    """A number from 0 on, finite."""
    return lambda value: (
        isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and 0 <= value <= most
    )


def json_of(decode: Callable[[str], object], sound: Callable[[object], bool] = lambda _: True) -> Check:
    """Check for text that a decoder of the codec accepts; empty text means no value."""

    def check(value: ColumnValue) -> bool:
        if not isinstance(value, str) or len(value) > LONG:
            return False
        try:
            return not value or sound(decode(value))
        except (CodecError, RecursionError):
            return False

    return check


def _is_count(value: object) -> bool:
    """True for plausible counts: none below zero, none beyond real usage."""
    if not isinstance(value, Usage | Totals):
        return False
    figures: list[object] = [getattr(value, name) for name in value.__struct_fields__]
    return all(amount()(one) for one in figures if isinstance(one, int | float))


def _is_numbered(value: object) -> bool:
    """Places in a transcript: every whole number in them is small and not below -1."""
    found = cast("tuple[Omission | EarlierView, ...]", value)
    cells: list[object] = [getattr(each, name) for each in found for name in each.__struct_fields__]
    return all(-1 <= one <= MOST for one in cells if isinstance(one, int))


def _is_todo_list(value: object) -> bool:
    """True for a list that `todo_write` or `/todo` could have stored."""
    return isinstance(value, TodoList) and 0 <= value.at <= MOST and is_sound(value.items)


_TIME, _FLAG, _LONG_TEXT = amount(LATEST), number(1), text(LONG)
_NAME, _ROW = matching(ID), matching(_ROW_ID)
_USAGE = json_of(decode_usage, _is_count)

TAKEN: Final[Mapping[str, Mapping[str, Check]]] = {
    "conversations": {
        "id": _NAME,
        "title": text(),
        "title_by": text(),
        "created_at": _TIME,
        "updated_at": _TIME,
        "totals_json": json_of(decode_totals, _is_count),
        "context_tokens": number(),
        "context_window": number(),
        "scroll_seq": number(),
        "context_estimated": _FLAG,
        "last_usage_json": _USAGE,
        "summary": _LONG_TEXT,
        "context_start_seq": number(),
        "compaction_count": number(),
        "context_omitted_json": json_of(decode_omitted, _is_numbered),
        "context_earlier_json": json_of(decode_earlier, _is_numbered),
        "unread": _FLAG,
        "todos_json": json_of(decode_todos, _is_todo_list),
        "plan_text": text(LONGEST_PLAN),
        "plan_at": number(),
        "mcp_off_json": are_names,
        "mcp_loaded_json": are_names,
        "effort": lambda value: value in set(Effort),
        "spawn_mode": text(),
        "spawn_tool_use_id": matching(_CALL_ID),
        "agent_task": _LONG_TEXT,
        "agent_ordinal": number(SHORT),
        "result_status": text(),
        "result_text": _LONG_TEXT,
        "result_error": _LONG_TEXT,
    },
    "turns": {"id": _ROW, "turn_number": number(), "started_at": _TIME, "ended_at": _TIME, "summary": _LONG_TEXT},
    "runs": {
        "id": _ROW,
        "turn_id": _ROW,
        "trigger_message_id": _ROW,
        "parent_run_id": _ROW,
        "agent_id": text(),
        "type": text(),
        "prompt": _LONG_TEXT,
        "priority": text(),
        "timeout_ms": number(),
        "strategy": text(),
        "routing_json": _LONG_TEXT,
        "status": text(),
        "output": _LONG_TEXT,
        "error": _LONG_TEXT,
        "error_code": text(),
        "recoverable": _FLAG,
        "artifacts_json": _LONG_TEXT,
        "usage_json": _USAGE,
        "model_usage_json": _LONG_TEXT,
        "cost_usd": amount(),
        "iterations": number(),
        "retries": number(),
        "started_at": _TIME,
        "ended_at": _TIME,
        "duration_ms": number(),
    },
    "messages": {
        "id": _ROW,
        "turn_id": _ROW,
        "seq": number(),
        "message_number": number(),
        "role": text(),
        "origin": text(),
        "content_json": json_of(decode_blocks),
        "text": _LONG_TEXT,
        "original_len": number(),
        "silent": _FLAG,
        "run_id": _ROW,
        "agent_id": text(),
        "model": text(),
        "usage_json": _USAGE,
        "cost_usd": amount(),
        "duration_ms": number(),
        "flags_json": json_of(decode_flags),
        "tracked_task_id": _ROW,
        "task_process_status": is_tracking,
        "created_at": _TIME,
    },
    "tracked_tasks": {
        "id": _ROW,
        "ord": number(),
        "status": is_task_status,
        "is_planning": _FLAG,
        "data_json": is_task_data,
        "created_at": _TIME,
        "updated_at": _TIME,
    },
    "tool_calls": {
        "id": _ROW,
        "assistant_message_id": _ROW,
        "run_id": _ROW,
        "tool_use_id": matching(_CALL_ID),
        "ordinal": number(),
        "name": text(),
        "input_json": _LONG_TEXT,
        "status": text(),
        "output_text": _LONG_TEXT,
        "output_json": json_of(decode_blocks),
        "display_json": json_of(decode_display),
        "is_error": _FLAG,
        "truncated": _FLAG,
        "started_at": _TIME,
        "ended_at": _TIME,
        "duration_ms": number(),
    },
    "attachments": {
        "id": _ROW,
        "sha256": lambda value: isinstance(value, str) and is_attachment_name(value),
        "media_type": lambda value: value in {"image/png", "image/jpeg", "image/gif", "image/webp"},
        "width": number(),
        "height": number(),
        "bytes": number(),
        "orig_width": number(),
        "orig_height": number(),
        "orig_bytes": number(),
        "created_at": _TIME,
    },
    "model_calls": {
        "id": _ROW,
        "run_id": _ROW,
        "message_id": _ROW,
        "purpose": text(),
        "status": text(),
        "provider": text(),
        "model": text(),
        "iteration": number(),
        "attempt": number(),
        "input_tokens": number(),
        "output_tokens": number(),
        "cache_creation_tokens": number(),
        "cache_read_tokens": number(),
        "estimated": _FLAG,
        "cost_usd": amount(),
        "started_at": _TIME,
        "duration_ms": number(),
        "error": text(),
        "web_searches": number(),
    },
    "copied_rows": {"id": _ROW, "origin": _ROW},
    "traces": {
        "id": _ROW,
        "run_id": _ROW,
        "status": text(),
        "input_tokens": number(),
        "output_tokens": number(),
        "cost_usd": amount(),
        "started_at": _TIME,
        "ended_at": _TIME,
    },
    "spans": {
        "id": _ROW,
        "trace_id": _ROW,
        "parent_span_id": _ROW,
        "kind": text(),
        "name": text(),
        "iteration": number(),
        "provider": text(),
        "model": text(),
        "input_tokens": number(),
        "output_tokens": number(),
        "status": text(),
        "error": _LONG_TEXT,
        "output_preview": _LONG_TEXT,
        "input_preview": _LONG_TEXT,
        "started_at": _TIME,
        "duration_ms": number(),
        "tool_use_id": text(),
    },
}
"""Table -> column -> check. NULL passes here; the schema restricts it."""
