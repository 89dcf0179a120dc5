"""Summarizes older messages in the background once a run has ended and left many of them (SPEC CLAW-31, CLAW-32)."""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from msgspec.structs import replace

from engine.conversation import Conversation
from engine.executor.asking import summary_model
from engine.executor.compacting import NotCompacted, select_older, summarize, summary_draft
from engine.executor.inbox import InboxEntry, Priority
from engine.executor.memory_flush import flush_memory
from engine.executor.requests import Receipt
from engine.executor.session import Session
from engine.executor.side_questions import may_ask
from engine.machine.events import OlderSummarized
from engine.machine.messages import Role
from engine.machine.states import AwaitingLlm, Compacting, CompactingContext, is_busy
from engine.machine.views import CompactionCause, CompactionDraft
from engine.ports import ProviderError, StorageError
from engine.updates import AnswerEnded, BackgroundSummary, StateChanged, Update

log = logging.getLogger(__name__)

NEWEST_KEPT: Final = 0.0
"""Share of the messages that stays, beside the fewest: all but the last four are summarized."""


def is_due(messages: int, tokens: int, window: int, most: int, percent: int) -> bool:
    """True above `most` messages (0: any number), or above `percent` of the window (SPEC T-CMPX 1, 2)."""
    full = window > 0 and percent <= 100 and tokens * 100 > window * percent
    return full or 0 < most < messages


class CompactionAfterRun:
    """Follows one conversation of the user; one summary at a time, which a message does not wait for."""

    def __init__(self, conversation: Conversation, session: Session) -> None:
        self._conversation = conversation
        self._session = session

    def follow(self, update: Update) -> None:
        """Begin after a run that ended well; end when the conversation makes a summary of its own."""
        if isinstance(update, StateChanged):
            state = update.state
            waits = isinstance(state, AwaitingLlm) and isinstance(state.phase, CompactingContext)
            if waits or isinstance(state, Compacting):
                self._session.stop_summary()
        elif isinstance(update, AnswerEnded) and not self.under_way and self._wanted():
            self._session.summarizing = asyncio.get_running_loop().create_task(self._work())

    @property
    def under_way(self) -> bool:
        """True while a summary is being made."""
        return self._session.summarizes

    async def close(self) -> None:
        """Make none any longer."""
        self._session.stop_summary()
        if self._session.summarizing is not None:
            await asyncio.wait((self._session.summarizing,))

    def _wanted(self) -> bool:
        session = self._session
        record, settings = session.record, session.settings
        if not settings.compact_after_runs or session.read_only or record.agent is not None:
            return False
        percent = record.compact_percent or settings.compact_percent
        if percent > 100 or not session.has_grown:
            return False
        most_there = record.message_count - max(record.context_start_seq - 1, 0)
        return is_due(most_there, record.context_tokens, record.context_window, settings.compact_messages, percent)

    async def _work(self) -> None:
        publish = self._session.publisher.publish
        try:
            draft = await self._draft()
            if draft is not None:
                await self._apply(draft)
        except (ProviderError, StorageError, TimeoutError, NotCompacted) as error:
            log.info("older messages of %s stay as they are: %s", self._session.record.id, error)
        finally:
            publish(BackgroundSummary(active=False))

    async def _draft(self) -> CompactionDraft | None:
        session = self._session
        record, settings = session.record, session.settings
        if not may_ask(session, summary_model(session)):
            return None
        rows = await session.ports.store.messages(record.id, first_seq=max(1, record.context_start_seq))
        seen = sum(row.role is not Role.SYSTEM and not row.silent for row in rows)
        percent = record.compact_percent or settings.compact_percent
        if not is_due(seen, record.context_tokens, record.context_window, settings.compact_messages, percent):
            return None
        selection = await asyncio.to_thread(select_older, session, rows, 0, NEWEST_KEPT)
        if selection is None:
            return None
        session.publisher.publish(BackgroundSummary(active=True))
        await flush_memory(session, rows)
        made = await summarize(session, selection, "")
        return await asyncio.to_thread(summary_draft, session, rows, made, CompactionCause.RESTED)

    async def _apply(self, draft: CompactionDraft) -> None:
        """Let the draft take effect while nothing runs; it names messages by seq, so later ones change nothing."""
        before, is_running = draft.facts.tokens_before, True
        while is_running:
            await self._conversation.wait_idle()
            receipt: asyncio.Future[Receipt] = asyncio.get_running_loop().create_future()
            entry = InboxEntry(lambda: OlderSummarized(self._current(draft, before)), receipt=receipt)
            self._session.inbox.put(Priority.OUTCOME, entry)
            await receipt
            is_running = is_busy(self._session.state)  # a run that began meanwhile goes first

    def _current(self, draft: CompactionDraft, before: int) -> CompactionDraft | None:
        """The draft with what has changed since it was begun; None where another summary has been made."""
        record = self._session.record
        earlier = draft.view.earlier[-1]
        if (earlier.start_seq, earlier.summary) != (record.context_start_seq, record.summary):
            return None
        view = replace(draft.view, omitted=record.omitted)
        tokens = max(draft.tokens + record.context_tokens - before, 1)
        facts = replace(draft.facts, message_count=record.message_count, tokens_after=tokens)
        return replace(draft, view=view, tokens=tokens, facts=facts)
