"""The approvals that wait in all conversations of this process, oldest first."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from engine.api.conversation import ConversationApi
from engine.api.engine import EngineApi
from engine.machine.states import STATE_NAMES, AwaitingApproval
from engine.records import ConversationQuery, ConversationRecord
from engine.updates import Question
from phoenix_tui.features.sub_agents import asking
from phoenix_tui.text.labels import short_model
from tools.clean import clean_line

UNTITLED: Final = "New conversation"
NOTHING_WAITS: Final = "No approvals are pending."


class Pending(Struct, frozen=True):
    """A question and the conversation that asks it."""

    conversation: ConversationApi
    question: Question

    @property
    def title(self) -> str:
        """Title of the asking conversation, on one line; a sub-agent's includes its parent's."""
        if self.conversation.record.agent is not None:
            return clean_line(self.question.asker)
        return clean_line(self.conversation.record.title) or UNTITLED


def as_asked(question: Question, record: ConversationRecord) -> Question:
    """The question with its model as asker: a reader sees the title beside it, but for a sub-agent's."""
    return replace(question, asker=short_model(record.model)) if question.asker in {"", record.title} else question


def pending(engine: EngineApi) -> list[Pending]:
    """Every open question, the one that waits longest first."""
    found = [
        Pending(conversation, question)
        for conversation in engine.live()
        if not conversation.read_only and (question := conversation.question) is not None
    ]
    return sorted(found, key=lambda one: one.question.asked)


async def list_asked_elsewhere(engine: EngineApi) -> list[str]:
    """A sentence for each conversation that asks in another process. Raises StorageError."""
    return [
        f"{row.title or UNTITLED} asks in process {row.owner_pid}; answer it there."
        for row in await engine.list(ConversationQuery())
        if row.state_name == STATE_NAMES[AwaitingApproval] and row.owner_pid not in {None, os.getpid()}
    ]


def pending_of(engine: EngineApi, parent_id: str) -> list[Pending]:
    """The open questions of a conversation's sub-agents, the one that waits longest first."""
    found = asking(engine, parent_id)
    return [Pending(one, one.question) for one in found if one.question is not None]


def titles_of_others(engine: EngineApi, current: ConversationApi | None) -> Sequence[str]:
    """Titles of the conversations beside this one that ask something."""
    docked = current
    if current is not None and current.question is None:
        docked = next(iter(asking(engine, current.id)), current)
    return [one.title for one in pending(engine) if one.conversation is not docked]
