"""Logs whether a message creates, resumes or reactivates a conversation (SPEC UNI-14)."""

from __future__ import annotations

import logging

from engine.machine.states import State, is_busy
from engine.records import ConversationRecord

log = logging.getLogger(__name__)


def log_launch(record: ConversationRecord, state: State) -> None:
    """A message comes that begins a run: of a new task or of one at rest. One at work refuses it."""
    if not is_busy(state):
        log.info("%s %s", "Reactivating existing task" if record.message_count else "Created new task", record.id)


def log_read_on(record: ConversationRecord) -> None:
    """A message comes that a task at work reads before its next model call."""
    log.info("Resuming existing task %s", record.id)
