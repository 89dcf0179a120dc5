"""What limits a run: the profile that its conversation was begun with, however it was opened; else the session."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from engine.api.conversation import ConversationApi
    from engine.executor.requests import RunCaps
    from phoenix_tui.lifecycle.launch import Launch, Services


class Front(Protocol):
    """Where conversations are opened and written in."""

    @property
    def launch(self) -> Launch:
        """What the command line asked for."""
        ...

    @property
    def services(self) -> Services:
        """The engine and what stands beside it."""
        ...


def caps_for(front: Front, conversation: ConversationApi) -> RunCaps:
    """The limits of the next run in a conversation."""
    record = conversation.record
    own = front.services.profiles.caps(record.profile, record.cwd) if record.profile else None
    return own if own is not None else front.launch.caps
