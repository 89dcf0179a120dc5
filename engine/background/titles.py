"""Names a conversation after its first answer: one small request in the background, on `cheap_model` if set."""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from engine.conversation import Conversation
from engine.executor.asking import keep
from engine.executor.session import Session
from engine.executor.side_questions import ask, may_ask
from engine.machine.messages import Origin, Role, text_in
from engine.ports import ConversationChanges, ProviderError, StorageError
from engine.records import StoredMessage, TitleBy
from engine.records.model_calls import CallPurpose
from engine.updates import RunEnded, Update

log = logging.getLogger(__name__)

INSTRUCTION: Final = (
    "You name conversations. Answer with a title for the exchange below and nothing else: at most six words, in the"
    " language of the exchange, no quotation marks, no full stop."
)
LONGEST: Final = 50
"""Characters of a title (SPEC STM-11)."""
EXCERPT: Final = 1_500
"""Characters of each side that the model gets to see."""
FIRST_MESSAGES: Final = 40
"""Number of messages searched for the first exchange."""


class Titler:
    """Follows one conversation; asks once, never while the model throttles, and never where the user gave a title."""

    def __init__(self, conversation: Conversation, session: Session) -> None:
        self._conversation = conversation
        self._session = session
        self._task: asyncio.Task[None] | None = None

    def follow(self, update: Update) -> None:
        """Begin when the first run has ended well."""
        if self._task is None and isinstance(update, RunEnded) and update.status == "success" and self._wanted():
            self._task = asyncio.get_running_loop().create_task(self._name())

    @property
    def under_way(self) -> bool:
        """True while a model call is in progress."""
        return self._task is not None and not self._task.done()

    async def close(self) -> None:
        """Ask no longer."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait((self._task,))

    def _wanted(self) -> bool:
        session = self._session
        return (
            session.settings.auto_title and not session.read_only and session.record.title_by is TitleBy.FIRST_MESSAGE
        )

    async def _name(self) -> None:
        try:
            await self._ask()
        except (ProviderError, StorageError, TimeoutError) as error:
            log.info("no title for %s: %s", self._session.record.id, error)

    async def _ask(self) -> None:
        session = self._session
        model = session.settings.cheap_model or session.record.model
        if not may_ask(session, model):
            return
        messages = await session.ports.store.messages(session.record.id, first_seq=1, last_seq=FIRST_MESSAGES)
        exchange = excerpt(messages)
        if exchange:
            aside = await ask(session, CallPurpose.TITLE, model, INSTRUCTION, exchange)
            title = title_of(aside.text) or None
            await keep(self._conversation, session, ConversationChanges(suggested_title=title))


def excerpt(messages: list[StoredMessage]) -> str:
    """The first message and its answer, each cut; empty where one of them has no words."""
    asked = next((words for one in messages if one.origin is Origin.HUMAN and (words := _words(one))), "")
    answers = (words for one in reversed(messages) if one.role is Role.ASSISTANT and (words := _words(one)))
    answered = next(answers, "")
    return f"User: {asked[:EXCERPT]}\n\nAssistant: {answered[:EXCERPT]}" if asked and answered else ""


def _words(message: StoredMessage) -> str:
    return text_in(message.blocks, " ").strip()


def title_of(text: str) -> str:
    """The first line of an answer as a title: bare words, cut between two of them; empty where there is none."""
    line = next((bare for line in text.splitlines() if (bare := line.strip(" \t#*_`\"'“”«».:"))), "")
    words = " ".join(line.removeprefix("Title:").split())
    if len(words) <= LONGEST:
        return words
    head = words[: LONGEST + 1].rpartition(" ")[0]
    return head or words[:LONGEST]
