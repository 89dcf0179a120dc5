"""Model calls in the background after a run: titles, summaries of turns, summaries of older messages."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from typing import Final

from msgspec.structs import replace

from engine.conversation import Conversation
from engine.executor.asking import background_model, small_model, summary_model
from engine.executor.compacting import NotCompacted, draft_summary, flush_memory, select_older, summarize
from engine.executor.model_limits import dollars
from engine.executor.requests import InboxEntry, Priority, Receipt
from engine.executor.session import Session
from engine.executor.side_questions import ask_small, may_ask
from engine.machine.events import OlderSummarized
from engine.machine.messages import Origin, Role, ToolResultBlock, ToolUseBlock, text_in
from engine.machine.states import AwaitingLlm, Compacting, CompactingContext, is_busy
from engine.machine.views import CompactionCause, CompactionDraft
from engine.ports import ConversationChanges, ProviderError, StorageError
from engine.records import StoredMessage, TitleBy
from engine.records.runs import CallPurpose, TurnDigest, TurnNote
from engine.updates import AnswerEnded, BackgroundSummary, Noticed, RunEnded, StateChanged, Update

log = logging.getLogger(__name__)

NEWEST_KEPT: Final = 0.0
"""Share of the messages that stays, beside the fewest: all but the last four are summarized."""


def is_due(messages: int, tokens: int, window: int, most: int, percent: int) -> bool:
    """True above `most` messages (0: any number), or above `percent` of the window (SPEC T-CMPX 1, 2)."""
    full = window > 0 and percent <= 100 and tokens * 100 > window * percent
    return full or 0 < most < messages


def count_said(rows: Iterable[StoredMessage]) -> int:
    """Messages as a person counts them: those to the agent, and its final answers (SPEC DEC-26).

    A reply that calls tools, and their results, belong to the answer that they lead to.
    """
    return sum(
        row.role is not Role.SYSTEM
        and not row.silent
        and not any(isinstance(block, ToolUseBlock | ToolResultBlock) for block in row.blocks)
        for row in rows
    )


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
                self._session.background.stop_summary()
        elif isinstance(update, AnswerEnded) and not self.under_way and self._is_wanted():
            self._session.background.summary = asyncio.get_running_loop().create_task(self._work())

    @property
    def under_way(self) -> bool:
        """True while a summary is being made."""
        return self._session.background.summarizes

    async def close(self) -> None:
        """Make none any longer."""
        self._session.background.stop_summary()
        if self._session.background.summary is not None:
            await asyncio.wait((self._session.background.summary,))

    def _is_wanted(self) -> bool:
        session = self._session
        record, settings = session.record, session.settings
        if not settings.compact_after_runs or session.read_only or record.agent is not None:
            return False
        percent = record.compact_percent or settings.compact_percent
        if percent > 100 or not session.has_grown:
            return False
        # Counting what a person counts needs the messages: here it is enough that no fewer rows are there.
        most_there = record.message_count - max(record.context_start_seq - 1, 0)
        return is_due(most_there, record.context_tokens, record.context_window, settings.compact_messages, percent)

    async def _work(self) -> None:
        publish = self._session.publisher.publish
        try:
            draft = await self._make_draft()
            if draft is not None:
                before, is_running = draft.facts.tokens_before, True
                while is_running:
                    await self._conversation.wait_idle()
                    receipt: asyncio.Future[Receipt] = asyncio.get_running_loop().create_future()
                    entry = InboxEntry(lambda: OlderSummarized(self._update_draft(draft, before)), receipt=receipt)
                    self._session.moves.inbox.put(Priority.OUTCOME, entry)
                    await receipt
                    is_running = is_busy(self._session.state)  # a run that began meanwhile goes first
        except (ProviderError, StorageError, TimeoutError, NotCompacted) as error:
            log.info("older messages of %s stay as they are: %s", self._session.record.id, error)
        finally:
            publish(BackgroundSummary(active=False))

    async def _make_draft(self) -> CompactionDraft | None:
        session = self._session
        record, settings = session.record, session.settings
        if not may_ask(session, summary_model(session)):
            return None
        rows = await session.ports.store.messages(record.id, first_seq=max(1, record.context_start_seq))
        percent = record.compact_percent or settings.compact_percent
        if not is_due(
            count_said(rows), record.context_tokens, record.context_window, settings.compact_messages, percent
        ):
            return None
        selection = await asyncio.to_thread(select_older, session, rows, 0, NEWEST_KEPT)
        if selection is None:
            return None
        session.publisher.publish(BackgroundSummary(active=True))
        await flush_memory(session, rows)
        made = await summarize(session, selection, "")
        return await asyncio.to_thread(draft_summary, session, rows, made, CompactionCause.RESTED)

    def _update_draft(self, draft: CompactionDraft, before: int) -> CompactionDraft | None:
        """The draft with what has changed since it was begun; None where another summary has been made."""
        record = self._session.record
        earlier = draft.view.earlier[-1]
        if (earlier.start_seq, earlier.summary) != (record.context_start_seq, record.summary):
            return None
        view = replace(draft.view, omitted=record.omitted)
        tokens = max(draft.tokens + record.context_tokens - before, 1)
        facts = replace(draft.facts, message_count=record.message_count, tokens_after=tokens)
        return replace(draft, view=view, tokens=tokens, facts=facts)


TITLE_INSTRUCTION: Final = (
    "You name conversations. Answer with a title for the exchange below and nothing else: at most six words, in the"
    " language of the exchange, no quotation marks, no full stop."
)
LONGEST_TITLE: Final = 50
"""Characters of a title (SPEC STM-11)."""
NEW_SMALL_MODEL: Final = "{model} writes titles, summaries and the task board{cost} (cheap_model, /cost)."
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
        if self._task is None and isinstance(update, RunEnded) and update.status == "success" and self._is_wanted():
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

    def _is_wanted(self) -> bool:
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
        model = background_model(session)
        if not may_ask(session, model):
            return
        messages = await session.ports.store.messages(session.record.id, first_seq=1, last_seq=FIRST_MESSAGES)
        asked = next((words for one in messages if one.origin is Origin.HUMAN and (words := _read_words(one))), "")
        answers = (words for one in reversed(messages) if one.role is Role.ASSISTANT and (words := _read_words(one)))
        answered = next(answers, "")
        exchange = f"User: {asked[:EXCERPT]}\n\nAssistant: {answered[:EXCERPT]}" if asked and answered else ""
        if exchange:
            is_new = bool(small_model(session)) and not await session.ports.library.has_called_model(model)
            aside = await ask_small(session, CallPurpose.TITLE, model, TITLE_INSTRUCTION, exchange)
            if is_new and (model := small_model(session)):
                cost = "" if aside.cost_usd is None else f"; this title was {dollars(aside.cost_usd)}"
                session.publisher.publish(Noticed(NEW_SMALL_MODEL.format(model=model, cost=cost)))
            title = read_title(aside.text) or None
            await self._conversation.change_with_calls(ConversationChanges(suggested_title=title))


def _read_words(message: StoredMessage) -> str:
    return text_in(message.blocks, " ").strip()


def read_title(text: str) -> str:
    """The first line of an answer as a title: bare words, cut between two of them; empty where there is none."""
    line = next((bare for line in text.splitlines() if (bare := line.strip(" \t#*_`\"'“”«».:"))), "")
    words = " ".join(line.removeprefix("Title:").split())
    if len(words) <= LONGEST_TITLE:
        return words
    head = words[: LONGEST_TITLE + 1].rpartition(" ")[0]
    return head or words[:LONGEST_TITLE]


NOTE_INSTRUCTION: Final = (
    "You keep the table of contents of a conversation. Sum up the exchange below in one or two short sentences, in its"
    " language: what was asked, what was done, how it ended. Name what somebody would look for later, such as files."
    " Answer with these sentences and nothing else."
)
LONGEST_NOTE: Final = 400
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
        model = background_model(session)
        if not may_ask(session, model):
            return
        turn = await session.ports.library.newest_turn(session.record.id)
        exchange = describe_turn(turn) if turn is not None else ""
        if turn is None or not exchange:
            return
        aside = await ask_small(session, CallPurpose.TURN_SUMMARY, model, NOTE_INSTRUCTION, exchange)
        words = cut_note(aside.text)
        note = TurnNote(turn.number, words) if words else None
        await self._conversation.change_with_calls(ConversationChanges(turn_note=note))


def describe_turn(turn: TurnDigest) -> str:
    """A turn as its model gets to see it; empty where that is not worth a summary."""
    words = len(f"{turn.asked} {turn.answered}".split())
    if not turn.asked or not turn.answered or (words < FEWEST_WORDS and not turn.tools):
        return ""
    tools = ", ".join(f"{name} {count}" for name, count in turn.tools)
    did = f"[Tools: {tools}]" if tools else ""
    changed = f"[Changed: {', '.join(turn.files)}]" if turn.files else ""
    return "\n\n".join(part for part in (f"User: {turn.asked}", did, changed, f"Assistant: {turn.answered}") if part)


def cut_note(text: str) -> str:
    """An answer as one line, cut between two words."""
    words = " ".join(text.split()).strip('"“”')
    if len(words) <= LONGEST_NOTE:
        return words
    return f"{words[:LONGEST_NOTE].rpartition(' ')[0] or words[: LONGEST_NOTE - 1]}…"
