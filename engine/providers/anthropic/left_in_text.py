"""Calls and reasoning that a server behind Claude's API left in the text of a whole reply. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from engine.machine.messages import Block, StopReason, TextBlock, ThinkingBlock, ToolUseBlock
from engine.ports import ModelReply
from engine.providers.openai_compatible.answer_text import AnswerText, CallSpotter
from engine.providers.wire import unique_tool_id
from tools.contract import ToolSpec


def sort_out_text(reply: ModelReply, tools: Sequence[ToolSpec], used_ids: set[str]) -> ModelReply:
    """The reply with the calls in its last text as calls, and the reasoning ahead of it as reasoning."""
    last = reply.blocks[-1] if reply.blocks else None
    if not tools or reply.stop is not StopReason.END_TURN or not isinstance(last, TextBlock):
        return reply
    reader = AnswerText(CallSpotter(tools))
    for _ in reader.feed(last.text):
        pass
    found, blocks = reader.finish(cut=False), list[Block](reply.blocks[:-1])
    if not found.calls and not found.thinking:
        return reply
    if found.thinking:
        blocks.append(ThinkingBlock(found.thinking, ""))
    if found.text.strip():
        blocks.append(TextBlock(found.text))
    used = set(used_ids)
    for given, name, arguments in found.calls:
        blocks.append(ToolUseBlock(unique_tool_id(given, used, f"call_{len(used)}"), name, arguments))
    return replace(reply, blocks=tuple(blocks), stop=StopReason.TOOL_USE if found.calls else reply.stop)
