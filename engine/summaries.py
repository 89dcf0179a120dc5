"""A list row made from a whole conversation."""

from __future__ import annotations

from engine.machine.states import STATE_NAMES, State
from engine.records import ConversationRecord, ConversationSummary


def summary_of(record: ConversationRecord, state: State) -> ConversationSummary:
    """The row of an open conversation; it is read while it is shown, so never unread here."""
    return ConversationSummary(
        id=record.id,
        title=record.title,
        cwd=record.cwd,
        model=record.model,
        state_name=STATE_NAMES[type(state)],
        context_tokens=record.context_tokens,
        context_window=record.context_window,
        totals=record.spent,
        archived=record.archived,
        unread=False,
        updated_at=record.updated_at,
        message_count=record.message_count,
        owner_pid=record.owner_pid,
        pinned_at=record.pinned_at,
        last_status=record.last_status,
        has_draft=bool(record.draft),
        progress=record.todos.progress if record.todos.is_open else "",
        put_away_at=record.updated_at if record.archived or record.deleted else 0.0,
    )
