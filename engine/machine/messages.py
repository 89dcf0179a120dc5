"""Contents of a conversation: content blocks, messages and tool calls as values."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Final, TypeAlias

from msgspec import Struct

from tools.call_values import AgentEnd


class TextBlock(Struct, frozen=True, tag="text", omit_defaults=True):
    """Plain or Markdown text."""

    text: str
    attached: str = ""
    """Short name of the source when a message of the user attaches the text; empty for words."""


class ImageBlock(Struct, frozen=True, tag="image"):
    """A stored image, named by its attachment id; messages never contain its bytes (SPEC I9)."""

    attachment_id: str
    width: int
    height: int


class ThinkingBlock(Struct, frozen=True, tag="thinking"):
    """Reasoning with the provider's signature, replayed unchanged (SPEC STM-12)."""

    text: str
    signature: str
    redacted: bool = False
    """True: `signature` is the opaque data of a redacted block and `text` is empty."""


class ToolUseBlock(Struct, frozen=True, tag="tool_use"):
    """The model's request to run a tool; `input_json` is a JSON object as text."""

    id: str
    name: str
    input_json: str


class ToolResultBlock(Struct, frozen=True, tag="tool_result"):
    """The answer to one tool use."""

    tool_use_id: str
    content: tuple[TextBlock | ImageBlock, ...]
    is_error: bool = False


Block: TypeAlias = TextBlock | ImageBlock | ThinkingBlock | ToolUseBlock | ToolResultBlock


def text_in(blocks: Iterable[object], between: str = "") -> str:
    """Text of the text blocks, without attachments."""
    return between.join(block.text for block in blocks if isinstance(block, TextBlock) and not block.attached)


def find_attachments(blocks: Iterable[object]) -> tuple[TextBlock, ...]:
    """Copies of files and digests of conversations that a message attaches."""
    return tuple(block for block in blocks if isinstance(block, TextBlock) and block.attached)


class Role(StrEnum):
    """Author of a message; `system` rows are notices for the user and never reach a model."""

    USER = "user"
    ASSISTANT = "assistant"
    SYSTEM = "system"


OWN_CALL: Final = "shell_"
"""Prefix of the id of a call that the user made with `!`."""
UNSENT_CALL: Final = f"{OWN_CALL}unsent_"
"""The same where no model reads the output: a line that begins with `!!`."""


def is_own_call(call_id: str) -> bool:
    """Tell whether the user made a call with `!`."""
    return call_id.startswith(OWN_CALL)


class Origin(StrEnum):
    """Source of a message."""

    HUMAN = "human"
    LLM = "llm"
    TOOL = "tool"
    COMPLETION = "completion"
    SUBAGENT = "subagent"
    NOTICE = "notice"


class NewMessage(Struct, frozen=True):
    """A message that is about to be stored."""

    id: str
    role: Role
    origin: Origin
    blocks: tuple[Block, ...]
    silent: bool = False
    original_length: int | None = None
    """Characters of the words of the user, where a model is sent only the first 32,768 (SPEC CLAW-04)."""
    cut: str = ""
    """Reason why a reply is incomplete, in a sentence for the user; empty for a whole message."""
    suspected: tuple[str, ...] = ()
    """Patterns of an injection that it matches, to show below it (SPEC CLAW-03)."""


class ToolCall(Struct, frozen=True):
    """One tool use of the reply being worked on."""

    id: str
    name: str
    input_json: str


class ToolStatus(StrEnum):
    """State of a tool call; the column `tool_calls.status`."""

    QUEUED = "queued"
    AWAITING_APPROVAL = "awaiting_approval"
    RUNNING = "running"
    SUCCESS = "success"
    ERROR = "error"
    CANCELLED = "cancelled"
    SKIPPED = "skipped"
    INTERRUPTED = "interrupted"


class ToolResult(Struct, frozen=True):
    """The settled outcome of a call, as the model will read it."""

    call_id: str
    text: str
    status: ToolStatus
    images: tuple[ImageBlock, ...] = ()
    display_json: str = ""
    """The encoded `tools.contract.Display`, empty when there is none."""
    truncated: bool = False
    agents: tuple[AgentEnd, ...] = ()
    """Outcomes of the sub-agents that it started."""

    @property
    def is_error(self) -> bool:
        """True for everything but success."""
        return self.status is not ToolStatus.SUCCESS


class Usage(Struct, frozen=True):
    """Tokens of one reply and its searches, as the provider counted them."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_creation_tokens: int = 0
    cache_read_tokens: int = 0
    web_searches: int = 0
    """Searches of the web by the server, which it charges apart from tokens."""

    @property
    def context_tokens(self) -> int:
        """Tokens in the window after this reply (SPEC T-CTX)."""
        return self.input_tokens + self.cache_read_tokens + self.cache_creation_tokens + self.output_tokens

    def __add__(self, other: Usage) -> Usage:
        """Sum of both."""
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cache_creation_tokens + other.cache_creation_tokens,
            self.cache_read_tokens + other.cache_read_tokens,
            self.web_searches + other.web_searches,
        )


class StopReason(StrEnum):
    """Reasons why a reply ended."""

    END_TURN = "end_turn"
    STOP_SEQUENCE = "stop_sequence"
    REFUSAL = "refusal"
    """The model declines."""
    CONTENT_FILTER = "content_filter"
    """A filter of the provider stopped it."""
    TOOL_USE = "tool_use"
    MAX_TOKENS = "max_tokens"
    PAUSE_TURN = "pause_turn"


class LastMessage(StrEnum):
    """Kind of the newest message a model can see; the turn rule needs no more (SPEC UNI-06)."""

    NONE = "none"
    ANSWER = "answer"
    """Assistant text without a tool use: the turn is over."""
    CUT = "cut"
    """Incomplete assistant text: the turn continues, and a retry completes it."""
    TOOL_USE = "tool_use"
    TOOL_RESULT = "tool_result"
    USER = "user"
    SHELL = "shell"
    """Output of a user's command: the next message continues its turn, and no answer is due."""


UNANSWERED = frozenset({LastMessage.USER, LastMessage.TOOL_RESULT, LastMessage.CUT})
"""Kinds of message after which the model still has to answer: the turn can be resumed (SPEC STM-01)."""
