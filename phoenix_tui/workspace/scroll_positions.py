"""The scroll position of a conversation, kept in the database for the next start."""

from __future__ import annotations

from contextlib import suppress

from engine.api.conversation import ConversationApi
from engine.ports import ConversationChanges, StorageError
from phoenix_tui.widgets.transcript.scroller import seq_at_top
from phoenix_tui.widgets.transcript.view import TranscriptView


async def keep_place(conversation: ConversationApi, transcript: TranscriptView) -> None:
    """Store the scroll position. The draft, which matters more, reports a database that cannot be written."""
    shown = transcript.canvas.model.conversation
    if conversation.read_only or shown is None or shown.id != conversation.id or not transcript.display:
        return
    seq = seq_at_top(transcript.canvas)
    if seq != conversation.record.scroll_seq:
        with suppress(StorageError):
            await conversation.change(ConversationChanges(scroll_seq=seq))
