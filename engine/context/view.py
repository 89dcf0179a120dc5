"""The messages a model sees: valid whatever is stored (SPEC I1, I2, UNI-15, DEC-14). The store is never changed."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import assert_never

from msgspec.structs import replace

from engine.context.message_cap import capped
from engine.machine.messages import Block, ImageBlock, Role, TextBlock, ThinkingBlock, ToolResultBlock, ToolUseBlock
from engine.ports import ModelMessage
from engine.records import StoredMessage

log = logging.getLogger(__name__)

MISSING_RESULT = "[Tool result missing -- session was compacted]"
"""Answers a tool use whose result is nowhere (SPEC DEC-24)."""
SUMMARY = "[Summary of earlier conversation]\n"
UNDERSTOOD = "I understand the context from our previous conversation."
"""Texts of the pair that puts a summary before the remaining messages (SPEC CLAW-05)."""
EMPTY = "(no text)"
CONTINUE = "Continue."
IMAGE = "(an image)"
CUT_OFF = "[Your reply broke off here: the call failed. Unless told otherwise, continue exactly where it ended.]"
"""Message behind an incomplete reply, so that replies are never adjacent and requests only grow."""


def spoken(messages: Iterable[StoredMessage]) -> list[ModelMessage]:
    """Messages without notices; an incomplete reply is followed by a message that says so."""
    said: list[ModelMessage] = []
    for message in messages:
        if message.role is Role.SYSTEM or message.silent:
            continue
        said.append(ModelMessage(message.role, _in_their_role(capped(message))))
        if message.cut:
            said.append(ModelMessage(Role.USER, (TextBlock(CUT_OFF),)))
    return said


def _in_their_role(message: StoredMessage) -> tuple[Block, ...]:
    """The blocks as that role may send them: one that no version of Phoenix writes there is kept as text."""
    foreign = (ToolUseBlock, ThinkingBlock) if message.role is Role.USER else (ToolResultBlock, ImageBlock)
    if not any(isinstance(block, foreign) for block in message.blocks):
        return message.blocks
    log.warning("message %s of %s holds blocks of another role: kept as text", message.id, message.role.value)
    return tuple(TextBlock(_words(block)) if isinstance(block, foreign) else block for block in message.blocks)


def _words(block: Block) -> str:
    match block:
        case TextBlock(text=text) | ThinkingBlock(text=text):
            return text
        case ToolUseBlock(name=name, input_json=arguments):
            return f"{name} {arguments}"
        case ToolResultBlock(content=content):
            return "\n".join(map(_words, content))
        case ImageBlock():
            return IMAGE
        case _:
            assert_never(block)


def unfinished(partial: Sequence[Block]) -> list[ModelMessage]:
    """The reply that is being continued, if there is one."""
    return [ModelMessage(Role.ASSISTANT, tuple(partial))] if partial else []


def settle(messages: list[ModelMessage], summary: str = "") -> list[ModelMessage]:
    """The valid chain of these messages, from the first one on."""
    begun = [*_summary_pair(summary, messages), *messages] if summary else messages
    return _answer_tools(_merge_roles(_settled(begun)))


def go_on(messages: list[ModelMessage], used: set[str]) -> list[ModelMessage]:
    """The valid chain of messages that begin with a reply and follow a chain that ends with the user.

    `used` are the ids of the tool uses ahead of them; those of `messages` join it.
    """
    return _answer_tools(_merge_roles(_without_orphans(messages, used)))


def finish(chain: list[ModelMessage], transient: str) -> tuple[ModelMessage, ...]:
    """The chain in order, with the user at its end and `transient` behind the last word."""
    if not chain or chain[-1].role is not Role.USER:
        chain = [*chain, ModelMessage(Role.USER, (TextBlock(transient or CONTINUE),))]
    elif transient:
        chain = [*chain[:-1], replace(chain[-1], blocks=(*chain[-1].blocks, TextBlock(transient)))]
    return tuple(in_order(message) for message in chain)


def _summary_pair(summary: str, following: Sequence[ModelMessage]) -> list[ModelMessage]:
    """The summary and its answer; a reply that thinks or calls tools answers it itself, for it must begin so."""
    pair = [ModelMessage(Role.USER, (TextBlock(SUMMARY + summary),))]
    replies = following and following[0].role is Role.ASSISTANT
    if not (replies and any(isinstance(b, ThinkingBlock | ToolUseBlock) for b in following[0].blocks)):
        pair.append(ModelMessage(Role.ASSISTANT, (TextBlock(UNDERSTOOD),)))
    return pair


def _settled(messages: list[ModelMessage]) -> list[ModelMessage]:
    """Begin with the user and keep only matching answers; cutting at one end may free a part at the other."""
    while True:
        kept = _without_orphans(_from_first_user(messages), set())
        if len(kept) == len(messages):
            return kept
        messages = kept


def _from_first_user(messages: list[ModelMessage]) -> list[ModelMessage]:
    first = next((index for index, message in enumerate(messages) if message.role is Role.USER), len(messages))
    return messages[first:]


def _without_orphans(messages: list[ModelMessage], seen: set[str]) -> list[ModelMessage]:
    """Drop results that answer no earlier tool use, second answers, and tool uses whose id was `seen` before."""
    kept: list[ModelMessage] = []
    unanswered: set[str] = set()
    for message in messages:
        blocks: list[Block] = []
        if message.role is Role.ASSISTANT:
            unanswered = set()  # only the next message may answer
        for block in message.blocks:
            match block:
                case ToolUseBlock(id=call):
                    fits = call not in seen
                    seen.add(call)
                    unanswered |= {call} if fits else set()
                case ToolResultBlock(tool_use_id=call):
                    fits = call in unanswered
                    unanswered.discard(call)
                case TextBlock() | ThinkingBlock() | ImageBlock():
                    fits = True
                case _:
                    assert_never(block)
            if fits:
                blocks.append(block)
        if blocks or message.role is Role.ASSISTANT:
            kept.append(ModelMessage(message.role, tuple(blocks)))
    return kept


def _merge_roles(messages: list[ModelMessage]) -> list[ModelMessage]:
    merged: list[ModelMessage] = []
    for message in messages:
        if merged and merged[-1].role is message.role and not _expects_results(merged[-1]):
            merged[-1] = replace(merged[-1], blocks=merged[-1].blocks + message.blocks)
        else:
            merged.append(message)
    return merged


def _expects_results(message: ModelMessage) -> bool:
    return message.role is Role.ASSISTANT and any(isinstance(b, ToolUseBlock) for b in message.blocks)


def _answer_tools(messages: list[ModelMessage]) -> list[ModelMessage]:
    """Give every tool use its result in the very next message, in request order (SPEC UNI-16)."""
    answered: list[ModelMessage] = []
    for index, message in enumerate(messages):
        answered.append(message)
        if not _expects_results(message):
            continue
        following = messages[index + 1] if index + 1 < len(messages) else None
        if following is None or following.role is Role.ASSISTANT:
            answered.append(_with_results(message, ModelMessage(Role.USER, ())))
        else:
            messages[index + 1] = _with_results(message, following)
    return answered


def _with_results(asking: ModelMessage, answer: ModelMessage) -> ModelMessage:
    given = {b.tool_use_id: b for b in answer.blocks if isinstance(b, ToolResultBlock)}
    wanted = [b.id for b in asking.blocks if isinstance(b, ToolUseBlock)]
    missing = (TextBlock(MISSING_RESULT),)
    results = tuple(given.get(call) or ToolResultBlock(call, missing, is_error=True) for call in wanted)
    rest = tuple(b for b in answer.blocks if not isinstance(b, ToolResultBlock))
    return ModelMessage(Role.USER, results + rest)


def in_order(message: ModelMessage) -> ModelMessage:
    """Results first, no empty text, never an empty message (SPEC STM-12)."""
    blocks = tuple(b for b in message.blocks if not (isinstance(b, TextBlock) and not b.text.strip()))
    if message.role is Role.ASSISTANT:
        spoken = any(not isinstance(b, ThinkingBlock) for b in blocks)
        return replace(message, blocks=blocks if spoken else (*blocks, TextBlock(EMPTY)))
    results = tuple(b for b in blocks if isinstance(b, ToolResultBlock))
    rest = tuple(b for b in blocks if not isinstance(b, ToolResultBlock))
    return replace(message, blocks=(results + rest) or (TextBlock(EMPTY),))
