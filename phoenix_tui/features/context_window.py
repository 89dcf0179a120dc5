"""The context window of the conversation in view: what is sent, its summary, and questions beside it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final, Protocol

from msgspec import Struct

from engine.api.conversation import ConversationApi, SideQuestionsApi
from engine.api.errors import ENGINE_ERRORS
from engine.executor.requests import EngineError, Proposal, Receipt, Refused, Review, SummaryDecision
from engine.machine.states import Compacting
from engine.records import SideExchange
from phoenix_tui.features.front_end import FrontEnd
from tools.clean import clean, clean_line
from tools.wording import one_line, pluralize

NOTHING_SENT: Final = "Nothing was sent yet: the context is empty."


class SentSection(Struct, frozen=True):
    """A section of the system prompt in a form to show."""

    name: str
    origin: str
    tokens: int
    text: str


class SentPrompt(Struct, frozen=True):
    """The system prompt as it is sent, and the tools beside it."""

    sections: tuple[SentSection, ...]
    tools: str

    @property
    def tokens(self) -> int:
        """Estimated tokens of all sections, the shares of system prompt and instructions in /context."""
        return sum(one.tokens for one in self.sections)

    @property
    def total(self) -> str:
        """Number of tokens and sections in words."""
        return f"~{self.tokens:,} tokens in {pluralize(len(self.sections), 'section')}"


async def read_prompt(conversation: ConversationApi) -> SentPrompt:
    """The prompt in a form to show."""
    sent = await conversation.context.prompt()
    names = clean_line(", ".join(sent.tools)) or "none"
    tools = f"{pluralize(len(sent.tools), 'tool')}, ~{sent.tools_tokens:,} tokens: {names}"
    sections = (
        SentSection(clean_line(one.section.name), clean_line(one.section.origin), one.tokens, clean(one.section.text))
        for one in sent.sections
    )
    return SentPrompt(tuple(sections), tools)


def require_conversation(front: FrontEnd, *, messages: bool = False) -> ConversationApi | None:
    """The conversation in view, with `messages` only if it has any; None after a notice."""
    conversation = front.conversation
    if conversation is None or (messages and not conversation.record.message_count):
        front.tell(NOTHING_SENT)
        return None
    return conversation


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
    conversation = require_conversation(front, messages=True)
    refusal = await asker.decide_on(SummaryReview(conversation, focus, before)) if conversation is not None else ""
    if refusal:
        raise EngineError(refusal)


NOTHING_SAID: Final = "This conversation is empty; there is nothing to ask about."
USAGE: Final = "Give a question: /btw QUESTION. The agent keeps working, and nothing is stored."
NO_ANSWER: Final = "(no answer)"
FORKED: Final = "Forked. You are in the copy, which ends with the side question."
SHOWN: Final = 200
"""Characters of the question that are shown."""


class SideAnswer(Struct, frozen=True):
    """Answer in a form to show."""

    text: str
    failed: bool = False
    """True when the text is the reason why there is no answer."""


def why_not(conversation: ConversationApi | None, question: str) -> str:
    """Reason why nothing is asked; empty where it can be."""
    if conversation is None or not conversation.record.message_count:
        return NOTHING_SAID
    return "" if question else USAGE


def in_one_line(question: str) -> str:
    """The question as its answer is headed."""
    return one_line(clean_line(question), SHOWN)


async def answer_of(side: SideQuestionsApi, question: str, earlier: Sequence[SideExchange] = ()) -> SideAnswer:
    """Ask; a failure is an answer too."""
    try:
        return SideAnswer(clean(await side.ask(question, earlier)).strip() or NO_ANSWER)
    except ENGINE_ERRORS as error:
        return SideAnswer(clean(str(error)), failed=True)
