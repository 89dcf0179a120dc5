"""Application of `ConversationChanges` to an in-memory record."""

from __future__ import annotations

from msgspec.structs import replace

from engine.ports import ConversationChanges
from engine.records import ConversationRecord, TitleBy


def changed(record: ConversationRecord, changes: ConversationChanges, at: float) -> ConversationRecord:
    """The record as the store has it now; the window of another model is its caller's to know."""
    return replace(
        _titled(record, changes),
        draft=record.draft if changes.draft is None else changes.draft,
        scroll_seq=record.scroll_seq if changes.scroll_seq is None else changes.scroll_seq,
        model=changes.model or record.model,
        permission_mode=changes.permission_mode or record.permission_mode,
        sandbox=changes.sandbox or record.sandbox,
        sandbox_required=record.sandbox_required or changes.sandbox is not None,
        supervisor=record.supervisor if changes.supervisor is None else changes.supervisor,
        archived=record.archived if changes.archived is None else changes.archived,
        deleted=record.deleted if changes.deleted is None else changes.deleted,
        pinned_at=record.pinned_at if changes.pinned is None else at * changes.pinned,
    )


def _titled(record: ConversationRecord, changes: ConversationChanges) -> ConversationRecord:
    if changes.title is not None:
        return replace(record, title=changes.title, title_by=TitleBy.USER)
    if changes.suggested_title and record.title_by is TitleBy.FIRST_MESSAGE:
        return replace(record, title=changes.suggested_title, title_by=TitleBy.MODEL)
    return record
