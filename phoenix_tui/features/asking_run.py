"""The run that ends where a client stops a question in place of answering it."""

from __future__ import annotations

from typing import TypeVar

from engine.api.conversation import ConversationApi
from engine.records import SpawnMode

T = TypeVar("T", bound=ConversationApi)


def run_behind(asking: T, root: T) -> T:
    """The conversation to cancel: `root`, whose run waits for the sub-agent that asks; one in the background ends
    alone.
    """
    facts = asking.record.agent
    return asking if facts is not None and facts.mode is SpawnMode.BACKGROUND else root
