"""Task tracking of one open conversation: begins passes, and tells viewers what they changed."""

from __future__ import annotations

from engine.conversation import Conversation
from engine.executor.session import Session
from engine.records.tracked_tasks import TrackingStatus
from engine.updates import TasksChanged


class TaskTracker:
    """Follows one conversation of the user."""

    def __init__(self, conversation: Conversation, session: Session) -> None:
        self._conversation = conversation
        self._session = session

    def tell(self, status: TrackingStatus) -> None:
        """Tell subscribers of a change of the board."""
        self._session.publisher.publish(TasksChanged(self._conversation.id, status))
