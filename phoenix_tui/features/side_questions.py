"""Common part of both front ends for side questions: texts, and the answer as text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from engine.api.conversation import ConversationApi, SideQuestionsApi
from engine.api.errors import ENGINE_ERRORS
from engine.records import SideExchange
from tools.clean import clean, clean_line
from tools.wording import one_line

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
