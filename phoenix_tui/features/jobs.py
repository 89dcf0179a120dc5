"""Background commands: texts about them, and moving a running one there."""

from __future__ import annotations

from typing import Final

from engine.api.conversation import ConversationApi
from engine.executor.requests import Refused
from phoenix_tui.text.job_text import NOTHING_RUNS, RUNS_ON

NO_JOBS: Final = "This conversation has no background commands."


def send_to_background(conversation: ConversationApi | None) -> str:
    """Send the running command to the background, at once; returns the notice."""
    receipt = conversation.jobs.background() if conversation is not None else Refused(NOTHING_RUNS)
    return receipt.reason if isinstance(receipt, Refused) else RUNS_ON
