"""The queued messages, and the actions on each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from engine.executor.requests import Receipt, Refused
from engine.records import QueuedMessage
from phoenix_tui.features.run_limits import caps_for
from phoenix_tui.linear.context import LinearContext, Run
from tools.clean import clean_line
from tools.wording import counted

if TYPE_CHECKING:
    from engine.api.conversation import ConversationApi

LONGEST: Final = 120
ACTIONS: Final = ("Send it now, stopping what runs", "Change its text", "Take it out", "Move it up", "Move it down")


async def queue_up(ctx: LinearContext, text: str) -> Receipt:
    """Queue a message with the attached images, and report its position."""
    conversation = await ctx.active.current()
    images = [image.id for image in ctx.active.images]
    receipt = await conversation.queue.add(text, images, caps_for(ctx, conversation))
    if not isinstance(receipt, Refused):
        ctx.active.images.clear()
    place = len(conversation.queue.waiting)
    ctx.say_outcome(receipt, f"Queued as number {place}: it is sent when this has ended. /queue shows what waits.")
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
        ctx.say("Nothing waits. /queue TEXT queues a message, as does one that is sent while the agent works.")
        return
    held = " They wait for you: Enter on an empty line sends them." if queue.held else ""
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
            ctx.say_outcome(await queue.send_now(message.id, caps), "It goes now.")
        case 1:
            text = await ctx.ask_line("New text", message.text)
            if text:
                ctx.say_outcome(await queue.edit(message.id, text), "Changed.")
        case 2:
            ctx.say_outcome(await queue.remove(message.id), "Taken out.")
        case _:
            to = min(max(place + (-1 if action == 3 else 1), 0), len(queue.waiting) - 1)
            ctx.say_outcome(await queue.move(message.id, to), f"It is number {to + 1} now.")


def _row(message: QueuedMessage) -> str:
    text = clean_line(message.text)
    words = f"{text[:LONGEST]}{'…' if len(text) > LONGEST else ''}" or "no words"
    return f"{words}, with {counted(len(message.image_ids), 'image')}" if message.image_ids else words


RUNS: Final[dict[str, Run]] = {"queue": _queue}
