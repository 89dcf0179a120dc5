"""Limits of a run: from the profile its conversation was begun with, however it was opened; else from the session."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engine.conversation import Conversation
    from engine.executor.requests import RunCaps
    from phoenix_tui.features.front_end import FrontEndSession


def caps_for(session: FrontEndSession, conversation: Conversation) -> RunCaps:
    """The limits of the next run in a conversation."""
    record = conversation.record
    own = session.services.profiles.caps(record.profile, record.cwd) if record.profile else None
    return own if own is not None else session.launch.caps
