"""The queued messages, and the actions on each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from engine.executor.requests import Receipt, Refused
from engine.machine.states import is_busy
from engine.records import Delivery, QueuedMessage
from phoenix_tui.features.run_limits import caps_for
from phoenix_tui.linear.context import LinearContext, LineCommand
from tools.clean import clean_line
from tools.wording import counted

if TYPE_CHECKING:
    from engine.api.conversation import ConversationApi

LONGEST: Final = 120
DELIVERIES: Final = ("Give it to the running turn", "Send it when the run ends")
ACTIONS: Final = ("Stop the run and send it now", "Edit it", "Remove it", "Move it up", "Move it down", *DELIVERIES)


async def queue_up(ctx: LinearContext, text: str, delivery: Delivery | None = None) -> Receipt:
    """Queue a message with the attached images, and report its position; by default as `busy_enter` says."""
    conversation = await ctx.active.current()
    images = [image.id for image in ctx.active.images]
    if delivery is None:
        delivery = Delivery.TOOL if ctx.launch.busy_enter == "steer" else Delivery.IDLE
    busy = is_busy(conversation.state)
    receipt = await conversation.queue.add(text, images, caps_for(ctx, conversation), delivery=delivery)
    if not isinstance(receipt, Refused):
        ctx.active.images.clear()
    place = len(conversation.queue.waiting)
    when = "read with the next tool result" if busy and delivery is Delivery.TOOL else "sent when the run ends"
    ctx.say_outcome(receipt, f"Queued as number {place}; {when}. /queue lists the queue.")
    return receipt


async def _steer(ctx: LinearContext, text: str) -> None:
    if text:
        await queue_up(ctx, text, Delivery.TOOL)
    else:
        ctx.say("/steer TEXT gives a message to the running turn: the agent reads it with the next tool result.")


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
        case 5:
            ctx.say_outcome(await queue.deliver(message.id, Delivery.TOOL), "Read with the next tool result.")
        case 6:
            ctx.say_outcome(await queue.deliver(message.id, Delivery.IDLE), "Sent when the run ends.")
        case _:
            to = min(max(place + (-1 if action == 3 else 1), 0), len(queue.waiting) - 1)
            ctx.say_outcome(await queue.move(message.id, to), f"Moved to number {to + 1}.")


def _row(message: QueuedMessage) -> str:
    text = clean_line(message.text)
    words = f"{text[:LONGEST]}{'…' if len(text) > LONGEST else ''}" or "no text"
    words += ", with the next tool result" if message.delivery is Delivery.TOOL else ""
    return f"{words}, with {counted(len(message.image_ids), 'image')}" if message.image_ids else words


RUNS: Final[dict[str, LineCommand]] = {"queue": _queue, "steer": _steer}
