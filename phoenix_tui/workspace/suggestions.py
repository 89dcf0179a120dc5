"""The next message, proposed on the user's wish: shown in the empty composer, taken with Tab."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from engine.machine.states import Idle, is_busy
from engine.ports import ProviderError, StorageError
from tools.clean import clean_line

if TYPE_CHECKING:
    from engine.executor.requests import Activity
    from phoenix_tui.modals.base import PhoenixScreen
    from phoenix_tui.workspace.active_conversation import ActiveConversation
    from phoenix_tui.workspace.conversation_view import ConversationView


class Suggesting:
    """Asks for a suggestion when a run in view has ended well and nothing is being written."""

    def __init__(self, screen: PhoenixScreen[None], active: ActiveConversation, *, wanted: bool) -> None:
        self._screen = screen
        self._active = active
        self.wanted = wanted
        self._busy: set[str] = set()
        """Conversations at work."""

    def noticed(self, activity: Activity) -> None:
        """Handle an update of one of the conversations."""
        conversation_id = activity.summary.id
        if is_busy(activity.state):
            self._busy.add(conversation_id)
        elif conversation_id in self._busy:
            self._busy.discard(conversation_id)
            if self.wanted and isinstance(activity.state, Idle) and activity.summary.last_status == "success":
                self._begin(conversation_id)

    def _begin(self, conversation_id: str) -> None:
        visible = self._active.visible
        if visible is not None and visible.conversation.id == conversation_id and self._may_show(visible):
            self._screen.run_worker(self._ask(visible), group="suggestion")

    async def _ask(self, visible: ConversationView) -> None:
        """Ask in the background; a model that cannot be asked proposes nothing."""
        text = ""
        with suppress(ProviderError, StorageError):
            text = await visible.conversation.side.suggestion()
        if text and visible is self._active.visible and self._may_show(visible):
            visible.update_details(suggestion=clean_line(text))

    def _may_show(self, visible: ConversationView) -> bool:
        conversation, composer = visible.conversation, self._active.parts.dock.composer
        rests = isinstance(conversation.state, Idle) and not conversation.queue.waiting
        return rests and conversation.record.agent is None and not conversation.read_only and not composer.text
