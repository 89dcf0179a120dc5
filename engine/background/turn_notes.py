"""Sums up each turn for a later search: one small request in the background (SPEC UNI-13, DEC-23)."""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from engine.conversation import Conversation
from engine.executor.asking import keep
from engine.executor.session import Session
from engine.executor.side_questions import ask, may_ask
from engine.ports import ConversationChanges, ProviderError, StorageError
from engine.records.model_calls import CallPurpose
from engine.records.turns import TurnDigest, TurnNote
from engine.updates import AnswerEnded, Update

log = logging.getLogger(__name__)

INSTRUCTION: Final = (
    "You keep the table of contents of a conversation. Sum up the exchange below in one or two short sentences, in its"
    " language: what was asked, what was done, how it ended. Name what somebody would look for later, such as files."
    " Answer with these sentences and nothing else."
)
LONGEST: Final = 400
"""Characters of a summary that are kept."""
FEWEST_WORDS: Final = 40
"""An exchange of fewer, in which no tool was used, is its own summary."""


class TurnNotes:
    """Follows one conversation of the user; each turn that ended well is summed up, never while its model throttles."""

    def __init__(self, conversation: Conversation, session: Session) -> None:
        self._conversation = conversation
        self._session = session
        self._tasks: set[asyncio.Task[None]] = set()

    def follow(self, update: Update) -> None:
        """Sum up the turn of a successful run, while the conversation may continue."""
        if not isinstance(update, AnswerEnded):
            return
        if self._session.settings.turn_summaries and not self._session.read_only:
            task = asyncio.get_running_loop().create_task(self._note())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    @property
    def under_way(self) -> bool:
        """True while a model call is in progress."""
        return bool(self._tasks)

    async def close(self) -> None:
        """Ask no longer."""
        tasks = tuple(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _note(self) -> None:
        try:
            await self._ask()
        except (ProviderError, StorageError, TimeoutError) as error:
            log.info("no summary of a turn of %s: %s", self._session.record.id, error)

    async def _ask(self) -> None:
        session = self._session
        model = session.settings.cheap_model or session.record.model
        if not may_ask(session, model):
            return
        turn = await session.ports.library.newest_turn(session.record.id)
        exchange = question(turn) if turn is not None else ""
        if turn is None or not exchange:
            return
        aside = await ask(session, CallPurpose.TURN_SUMMARY, model, INSTRUCTION, exchange)
        words = one_line(aside.text)
        note = TurnNote(turn.number, words) if words else None
        await keep(self._conversation, session, ConversationChanges(turn_note=note))


def question(turn: TurnDigest) -> str:
    """A turn as its model gets to see it; empty where that is not worth a summary."""
    words = len(f"{turn.asked} {turn.answered}".split())
    if not turn.asked or not turn.answered or (words < FEWEST_WORDS and not turn.tools):
        return ""
    tools = ", ".join(f"{name} {count}" for name, count in turn.tools)
    did = f"[Tools: {tools}]" if tools else ""
    changed = f"[Changed: {', '.join(turn.files)}]" if turn.files else ""
    return "\n\n".join(part for part in (f"User: {turn.asked}", did, changed, f"Assistant: {turn.answered}") if part)


def one_line(text: str) -> str:
    """An answer as one line, cut between two words."""
    words = " ".join(text.split()).strip('"“”')
    if len(words) <= LONGEST:
        return words
    return f"{words[:LONGEST].rpartition(' ')[0] or words[: LONGEST - 1]}…"
