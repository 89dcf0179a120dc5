"""Stored messages of a conversation as updates, for a client that loads it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from acp.schema import ToolCallStart, UserMessageChunk

from engine.api.conversation import ConversationApi
from engine.machine.messages import (
    ImageBlock,
    Origin,
    Role,
    TextBlock,
    ThinkingBlock,
    ToolUseBlock,
    text_in,
)
from engine.records import StoredMessage, ToolCallRecord
from phoenix_tui.acp.lines import fields_of
from phoenix_tui.acp.pump import text_content, thought
from phoenix_tui.acp.tool_calls import (
    HIDDEN,
    Content,
    display_of,
    file_of,
    input_of,
    kind_of,
    shown,
    status_of,
)
from phoenix_tui.acp.translator import Translator, plan_of
from phoenix_tui.acp.whole_diffs import changed_parts
from tools.clean import clean, clean_line
from tools.contract import DiffDisplay

PAGE: Final = 100
"""Messages read at once."""


async def replay(conversation: ConversationApi, translator: Translator) -> None:
    """Send the whole history, oldest first. Raises StorageError."""
    newest = conversation.record.message_count
    for first in range(1, newest + 1, PAGE):
        page = await conversation.history(first + PAGE, PAGE)
        calls = {call.tool_use_id: call for call in page.tool_calls}
        for message in page.messages:
            if message.seq >= first:
                _message(message, calls, translator)
        await translator.pump.flush()
    if conversation.record.todos.items:
        translator.pump.put(plan_of(conversation.record.todos.items))
    await translator.pump.flush()


def _message(message: StoredMessage, calls: Mapping[str, ToolCallRecord], translator: Translator) -> None:
    pump = translator.pump
    if message.silent:
        return
    match message.role:
        case Role.USER if message.origin is Origin.HUMAN:
            text = clean(text_in(message.blocks, "\n\n"))
            images = sum(isinstance(block, ImageBlock) for block in message.blocks)
            text += f"\n\n[{images} image{'s' if images > 1 else ''}]" if images else ""
            if text:
                pump.put(UserMessageChunk(session_update="user_message_chunk", content=text_content(text)))
        case Role.ASSISTANT:
            for block in message.blocks:
                match block:
                    case ThinkingBlock(text=text) if text:
                        pump.put(thought(clean(text)))
                    case TextBlock(text=text):
                        pump.say(f"{clean(text)}\n\n")
                    case ToolUseBlock(id=call_id, name=name) if name not in HIDDEN:
                        pump.put(_call(block, calls.get(call_id), translator))
                    case _:
                        pass
        case Role.SYSTEM if message.origin is Origin.NOTICE:
            translator.notice(text_in(message.blocks, " "))
        case _:
            pass


def _call(block: ToolUseBlock, call: ToolCallRecord | None, translator: Translator) -> ToolCallStart:
    """A settled call; of a diff the changed parts, since the file has changed since."""
    content: list[Content] = []
    if call is not None:
        display = display_of(call.display_json)
        content += shown(display, "" if isinstance(display, DiffDisplay) else call.output_text)
        if isinstance(display, DiffDisplay):
            content.append(changed_parts(file_of(display, (), translator.record.cwd), display))
    given = input_of(block.input_json)
    return ToolCallStart(
        session_update="tool_call",
        tool_call_id=block.id,
        title=_title(block.name, given),
        kind=kind_of(block.name),
        status=status_of(call.status) if call is not None else "failed",
        content=content,
        raw_input=given,
    )


def _title(name: str, given: object) -> str:
    """The command, path or pattern of a stored call, or else its name."""
    fields = fields_of(given)
    words = next((str(fields[one]) for one in ("command", "path", "pattern", "url") if fields.get(one)), "")
    return clean_line(words)[:500] or clean_line(name)
