"""Questions beside a conversation: answered from its messages, without tools, and not stored."""

from __future__ import annotations

import asyncio
import unicodedata
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from engine.context.compaction import transcribe
from engine.executor.asking import ModelAnswer, answer_to, background_model
from engine.executor.session import Session
from engine.ports import ConversationChanges, ProviderError
from engine.records import SideExchange
from engine.records.runs import CallPurpose

SMALL_PATIENCE: Final = 30.0
"""Seconds after which an answer is no longer waited for."""
SMALL_TOKENS: Final = 1_024
"""Room for a model that thinks before it writes a line."""


def may_ask(session: Session, model: str) -> bool:
    """True when `model` has time for it: not throttled, not local, which is slow enough, no rules, and memory not
    short.

    Raises:
        ProviderError: there is no such model.
    """
    provider, name = session.ports.providers.resolve(model)
    tight = session.model_use.governor.is_tight(f"{provider.name}/{name}", session.ports.clock.monotonic())
    return not (session.settings.memory_gauge.refusal() or provider.describe(name).local or tight)


async def ask_small(session: Session, purpose: CallPurpose, model: str, instruction: str, text: str) -> ModelAnswer:
    """Answer of `model` to `text`.

    Raises:
        ProviderError: it cannot be asked, or its answer breaks off.
        TimeoutError: it takes too long.
    """
    async with asyncio.timeout(SMALL_PATIENCE):
        return await answer_to(session, purpose, model, instruction, text, SMALL_TOKENS)


PATIENCE: Final = 120.0
"""Seconds that an answer may take."""
MAX_TOKENS: Final = 4_096
"""Room for a model that thinks before it answers."""
CHARACTERS_PER_TOKEN: Final = 2
"""Characters of the conversation per token of the window: half of it, at four characters a token."""
LONGEST: Final = 400_000
SHORTEST: Final = 20_000
"""Characters of the messages that are read again, however large or unknown the window is."""
MOST_EARLIER: Final = 8
LONGEST_EARLIER: Final = 8_000
"""Earlier questions that a follow-up is asked with, the newest ones, and characters of each text."""
INSTRUCTION: Final = (
    "A user works with an agent. Below is their conversation so far, then a question that the user asks you beside it."
    " Answer the question alone, in a few sentences, from what the conversation tells and what you know. You have no"
    " tools and change nothing. Say so where the conversation does not tell."
)
SUGGESTING: Final = (
    "A user works with an agent. Below is their last exchange. Write the message that this user would most likely send"
    " next, as the user would write it: one line of at most twelve words, in the user's language, without quotation"
    " marks. Answer with that line and nothing else, or with the word NONE where nothing in particular comes next."
)
LONGEST_SUGGESTION: Final = 120
"""Characters."""


class SideQuestions:
    """Asks models beside the conversation, also while the agent works; the cost counts to the conversation."""

    def __init__(self, session: Session, store: Callable[[ConversationChanges], Awaitable[None]]) -> None:
        self._session = session
        self._store = store
        """Stores changes with the ended calls."""
        self.asked = 0
        """Questions that wait for their answer."""

    async def ask(self, question: str, earlier: Sequence[SideExchange] = ()) -> str:
        """Ask the conversation's own model; `earlier` questions beside it are given with their answers.

        Raises:
            ProviderError: the model cannot be asked, or takes too long.
            StorageError: what was said cannot be read.
        """
        self.asked += 1
        try:
            return await self._ask(question, earlier)
        finally:
            self.asked -= 1

    async def _ask(self, question: str, earlier: Sequence[SideExchange]) -> str:
        session = self._session
        room = min(max(session.record.context_window * CHARACTERS_PER_TOKEN, SHORTEST), LONGEST)
        summary = f"{session.record.summary}\n\n" if session.record.summary else ""
        said = transcribe(await session.rows(), room)
        before = "".join(
            f"\n\nEarlier the user asked you beside it:\n{one.question[:LONGEST_EARLIER]}\n\nYou answered:\n"
            f"{one.answer[:LONGEST_EARLIER]}"
            for one in earlier[-MOST_EARLIER:]
        )
        text = f"{summary}{said}{before}\n\nThe question beside the conversation:\n{question}"
        try:
            async with asyncio.timeout(PATIENCE):
                answer = await answer_to(
                    session, CallPurpose.ASIDE, session.record.model, INSTRUCTION, text, MAX_TOKENS
                )
        except TimeoutError as error:
            late = f"{session.record.model} did not answer within {PATIENCE:.0f} s."
            raise ProviderError(late, kind="network", retryable=True) from error
        if not session.read_only:
            await self._store(ConversationChanges())
        return answer.text

    async def suggestion(self) -> str:
        """A likely next message of the user; empty without one, or when no model has time for it.

        Raises:
            ProviderError: the model cannot be asked.
            StorageError: what was said cannot be read.
        """
        session = self._session
        model = background_model(session)
        if session.read_only or not may_ask(session, model):
            return ""
        turn = await session.ports.library.newest_turn(session.record.id)
        if turn is None or not (turn.asked and turn.answered):
            return ""
        try:
            answer = await ask_small(
                session, CallPurpose.SUGGESTION, model, SUGGESTING, f"User: {turn.asked}\n\nAssistant: {turn.answered}"
            )
        except TimeoutError:
            return ""
        await self._store(ConversationChanges())
        return clean_suggestion(answer.text)


def clean_suggestion(text: str) -> str:
    """An answer as a message of one line; empty where it is none."""
    if any(unicodedata.category(letter) in {"Cc", "Cf"} and not letter.isspace() for letter in text):
        return ""  # invisible text would be sent with one Tab and one Enter
    line = " ".join(text.split()).strip('"“”').strip()
    if line.startswith(("!", "/", "@", "#", "！", "／", "＠", "＃")):
        return ""
    return "" if line.strip(".").upper() == "NONE" or len(line) > LONGEST_SUGGESTION else line
