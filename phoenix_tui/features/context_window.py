"""Request to the model of the conversation in view."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from engine.api.conversation import ConversationApi
from phoenix_tui.features.front_end import FrontEnd
from tools.clean import clean, clean_line
from tools.wording import counted

NOTHING_SENT: Final = "Nothing was sent yet: the context is empty."


class SentPrompt(Struct, frozen=True):
    """The system prompt as it is sent, and the tools beside it."""

    text: str
    tools: str


def sent_prompt(conversation: ConversationApi) -> SentPrompt:
    """Both parts of the prompt in a form to show."""
    sent = conversation.context.prompt()
    tools = f"{counted(len(sent.tools), 'tool')}: {clean_line(', '.join(sent.tools)) or 'none'}"
    return SentPrompt(clean(f"{sent.static}\n\n{sent.dynamic}"), tools)


def sent_to(front: FrontEnd, *, messages: bool = False) -> ConversationApi | None:
    """The conversation in view, with `messages` only if it has any; None after a notice."""
    conversation = front.conversation
    if conversation is None or (messages and not conversation.record.message_count):
        front.tell(NOTHING_SENT)
        return None
    return conversation
