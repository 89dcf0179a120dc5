"""`/compact`: a summary of older messages, on which the user decides before it takes effect."""

from __future__ import annotations

import asyncio
from typing import Protocol

from engine.api.conversation import ConversationApi
from engine.api.errors import ENGINE_ERRORS
from engine.executor.requests import EngineError, Proposal, Receipt, Refused, Review, SummaryDecision
from engine.machine.states import Compacting
from phoenix_tui.features.context_window import sent_to
from phoenix_tui.features.front_end import FrontEnd


class SummaryReview:
    """One request for a summary, and the verdict on each proposal that follows."""

    def __init__(self, conversation: ConversationApi, focus: str = "", before: int = 0) -> None:
        self.conversation = conversation
        self.proposal: Proposal | None = None
        """Newest proposal; None while the first one is written."""
        self._focus = focus
        self._before = before
        """The seq of the first message that stays; 0: the newest ones stay."""
        self._verdict: asyncio.Future[SummaryDecision] | None = None
        """Verdict that the engine waits for, while it does."""

    @property
    def waits(self) -> bool:
        """True while a proposal waits for a verdict."""
        return self._verdict is not None

    @property
    def is_over(self) -> bool:
        """True once the summary is in force, or none was made: the conversation says which."""
        return not isinstance(self.conversation.state, Compacting)

    async def request(self, review: Review) -> str:
        """Ask for the summary, shown by `review`; returns the reason of a refusal."""
        try:
            outcome: Receipt = await self.conversation.context.compact(self._focus, review, self._before)
        except ENGINE_ERRORS as error:
            return str(error)
        return outcome.reason if isinstance(outcome, Refused) else ""

    def offer(self, proposal: Proposal) -> asyncio.Future[SummaryDecision]:
        """Put a proposal before the user; returns the verdict to wait for."""
        self.proposal = proposal
        self._verdict = asyncio.get_running_loop().create_future()
        return self._verdict

    def decide(self, verdict: SummaryDecision) -> None:
        """Give the verdict on the proposal that waits for one."""
        waiting, self._verdict = self._verdict, None
        if waiting is not None and not waiting.done():
            waiting.set_result(verdict)

    def stop(self) -> None:
        """Stop the model that writes the proposal."""
        self.conversation.cancel()


class SummaryAsker(Protocol):
    """A front end's side of a summary."""

    async def decide_on(self, summary: SummaryReview) -> str:
        """Request it, show each proposal, and give a verdict on it; returns the reason of a refusal."""
        ...


async def compact(front: FrontEnd, asker: SummaryAsker, focus: str = "", *, before: int = 0) -> None:
    """Summarize older messages of the conversation in view, or those before one; `focus` has priority.

    Raises:
        EngineError: the reason of a refusal.
    """
    conversation = sent_to(front, messages=True)
    refusal = await asker.decide_on(SummaryReview(conversation, focus, before)) if conversation is not None else ""
    if refusal:
        raise EngineError(refusal)
