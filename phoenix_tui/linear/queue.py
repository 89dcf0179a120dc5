"""The queued messages, and the actions on each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from engine.executor.requests import Receipt, Refused
from engine.records import QueuedMessage
from phoenix_tui.features.run_limits import caps_for
from phoenix_tui.linear.context import LinearContext, LineCommand
from tools.clean import clean_line
from tools.wording import counted

if TYPE_CHECKING:
    from engine.api.conversation import ConversationApi

LONGEST: Final = 120
ACTIONS: Final = ("Stop the run and send it now", "Edit it", "Remove it", "Move it up", "Move it down")


async def queue_up(ctx: LinearContext, text: str) -> Receipt:
    """Queue a message with the attached images, and report its position."""
    conversation = await ctx.active.current()
    images = [image.id for image in ctx.active.images]
    receipt = await conversation.queue.add(text, images, caps_for(ctx, conversation))
    if not isinstance(receipt, Refused):
        ctx.active.images.clear()
    place = len(conversation.queue.waiting)
    ctx.say_outcome(receipt, f"Queued as number {place}; sent when the run ends. /queue lists the queue.")
    return receipt


async def _queue(ctx: LinearContext, text: str) -> None:
    if text:
        await queue_up(ctx, text)
        return
    conversation = ctx.opened
    if conversation is None:
        return
    queue = conversation.queue
    waiting = queue.waiting
    if not waiting:
        ctx.say("The queue is empty. /queue TEXT adds a message, as does sending one while the agent works.")
        return
    held = " The queue is paused; Enter on an empty line resumes it." if queue.held else ""
    chosen = await ctx.choose(f"{counted(len(waiting), 'message')} waiting.{held}", [_row(one) for one in waiting])
    if chosen is None:
        return
    action = await ctx.choose(f"{_row(waiting[chosen])}:", ACTIONS)
    if action is not None:
        await _do(ctx, conversation, waiting[chosen], chosen, action)


async def _do(
    ctx: LinearContext, conversation: ConversationApi, message: QueuedMessage, place: int, action: int
) -> None:
    queue = conversation.queue
    match action:
        case 0:
            caps = caps_for(ctx, conversation)
            ctx.say_outcome(await queue.send_now(message.id, caps), "Sending it now.")
        case 1:
            text = await ctx.ask_line("New text", message.text)
            if text:
                ctx.say_outcome(await queue.edit(message.id, text), "Changed.")
        case 2:
            ctx.say_outcome(await queue.remove(message.id), "Removed.")
        case _:
            to = min(max(place + (-1 if action == 3 else 1), 0), len(queue.waiting) - 1)
            ctx.say_outcome(await queue.move(message.id, to), f"Moved to number {to + 1}.")


def _row(message: QueuedMessage) -> str:
    text = clean_line(message.text)
    words = f"{text[:LONGEST]}{'…' if len(text) > LONGEST else ''}" or "no text"
    return f"{words}, with {counted(len(message.image_ids), 'image')}" if message.image_ids else words


RUNS: Final[dict[str, LineCommand]] = {"queue": _queue}
