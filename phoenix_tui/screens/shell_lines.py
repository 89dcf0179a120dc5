"""Lines that begin with `!`: run at once, or queued while the agent works."""

from __future__ import annotations

from engine.executor.requests import Accepted, Receipt, shell_line
from engine.machine.states import is_busy
from phoenix_tui.surface import ConversationSurface


async def run_line(conversation: ConversationSurface, line: str, *, now: bool) -> Receipt:
    """Run it where nothing runs; else queue it, and `now` stop what runs for it."""
    if not is_busy(conversation.state):
        return await conversation.shell(*shell_line(line))
    queue = conversation.queue
    receipt = await queue.add(line, is_shell=True)
    if now and isinstance(receipt, Accepted) and queue.waiting:
        await queue.send_now(queue.waiting[-1].id)
    return receipt
