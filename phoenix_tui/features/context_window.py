"""Request to the model of the conversation in view."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from engine.api.conversation import ConversationApi
from phoenix_tui.features.front_end import FrontEnd
from tools.clean import clean, clean_line
from tools.wording import counted

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
        return f"~{self.tokens:,} tokens in {counted(len(self.sections), 'section')}"


async def sent_prompt(conversation: ConversationApi) -> SentPrompt:
    """The prompt in a form to show."""
    sent = await conversation.context.prompt()
    names = clean_line(", ".join(sent.tools)) or "none"
    tools = f"{counted(len(sent.tools), 'tool')}, ~{sent.tools_tokens:,} tokens: {names}"
    sections = (
        SentSection(clean_line(one.section.name), clean_line(one.section.origin), one.tokens, clean(one.section.text))
        for one in sent.sections
    )
    return SentPrompt(tuple(sections), tools)


def sent_to(front: FrontEnd, *, messages: bool = False) -> ConversationApi | None:
    """The conversation in view, with `messages` only if it has any; None after a notice."""
    conversation = front.conversation
    if conversation is None or (messages and not conversation.record.message_count):
        front.tell(NOTHING_SENT)
        return None
    return conversation
