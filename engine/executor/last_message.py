"""The last message of a conversation, as the rule for turns looks at it."""

from __future__ import annotations

from engine.machine.messages import LastMessage, Role, TextBlock, ToolResultBlock, ToolUseBlock
from engine.records import StoredMessage


def kind_of(message: StoredMessage, before: LastMessage) -> LastMessage:
    """Kind of the last message that a model would see; notices change nothing."""
    match message.role:
        case Role.SYSTEM:
            return before
        case Role.ASSISTANT:
            asks = any(isinstance(block, ToolUseBlock) for block in message.blocks)
            return LastMessage.CUT if message.cut else LastMessage.TOOL_USE if asks else LastMessage.ANSWER
        case Role.USER:
            answers = any(isinstance(block, ToolResultBlock) for block in message.blocks)
            return LastMessage.TOOL_RESULT if answers else LastMessage.USER


def is_shell(message: StoredMessage) -> bool:
    """True for the row of a command of the user."""
    return message.role is Role.SYSTEM and any(isinstance(block, ToolUseBlock) for block in message.blocks)


def tells_of_shell(message: StoredMessage, run_id: str | None) -> bool:
    """True if it contains the output of the user's command for the model (SPEC STM-01)."""
    if message.role is not Role.USER or message.run_id != run_id or len(message.blocks) != 1:
        return False
    block = message.blocks[0]
    return isinstance(block, TextBlock) and block.text.startswith("$ ")
