"""Messages in lines: images, the queue, drafts, and earlier ones read again."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from engine.executor.requests import ENGINE_ERRORS, Receipt, Refused
from engine.machine.states import is_busy
from engine.records import Delivery, QueuedMessage
from phoenix_tui.features.composing import (
    NOT_KEPT,
    NOTHING,
    DraftStash,
    ask_images,
    attach_image,
    image_at,
    parse_dropped_images,
)
from phoenix_tui.features.run_limits import caps_for
from phoenix_tui.linear.line_context import LinearContext
from phoenix_tui.terminal.clipboard import Clipboard, ClipboardImage, ClipboardText, ClipboardTrouble
from phoenix_tui.text.context_text import spell_size
from phoenix_tui.text.labels import ago
from tools.clean import clean_line
from tools.wording import number_within, pluralize

if TYPE_CHECKING:
    from engine.conversation import Conversation


REMOVE, KEEP = "Remove it", "Keep it"


async def attach_all(ctx: LinearContext, images: Sequence[Path | bytes]) -> None:
    """Attach images to the next message, and describe each."""
    for image in images:
        name = "the clipboard" if isinstance(image, bytes) else clean_line(image.name)
        try:
            attachment = await attach_image(await ctx.active.current(), image)
        except ENGINE_ERRORS as error:
            ctx.say(f"Refused: {clean_line(str(error))}")
        else:
            ctx.active.images.append(attachment)
            ctx.say(f"Attached {len(ctx.active.images)}: {spell_size(attachment)}, from {name}.")


async def attach_dropped(ctx: LinearContext, text: str) -> bool:
    """Attach the image files a line consists of; False where it is anything else."""
    images = parse_dropped_images(text)
    await attach_all(ctx, images)
    return bool(images)


async def run_image(ctx: LinearContext, name: str) -> None:
    await attach_all(ctx, await ask_images(ctx, name))


async def run_paste(ctx: LinearContext, _: str) -> None:
    clipboard = Clipboard(ctx.services.runner, os.environ, sys.platform, _drop)
    match await clipboard.paste():
        case ClipboardImage(content=content):
            await attach_all(ctx, [content])
        case ClipboardText(text=text):
            ctx.active.invite()
            ctx.terminal.put(text.replace("\r\n", "\n").replace("\r", "\n"))
        case ClipboardTrouble(reason=reason):
            ctx.say(reason)


async def run_images(ctx: LinearContext, text: str) -> None:
    images = ctx.active.images
    place = image_at(ctx, images, text, "/image FILE attaches one, /paste attaches one from the clipboard.")
    if place is None:
        return
    if text:
        chosen = place if await ctx.confirm(f"Image {place + 1}: {spell_size(images[place])}", REMOVE, KEEP) else None
    else:
        heading = f"{pluralize(len(images), 'image')} attached to the next message. Give a number to remove one:"
        chosen = await ctx.choose(heading, [spell_size(image) for image in images])
    if chosen is not None:
        del images[chosen]
        ctx.say(f"Removed. {pluralize(len(images), 'image')} attached.")


def _drop(_: str) -> None:
    return None


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


async def run_steer(ctx: LinearContext, text: str) -> None:
    if text:
        await queue_up(ctx, text, Delivery.TOOL)
    else:
        ctx.say("/steer TEXT gives a message to the running turn: the agent reads it with the next tool result.")


async def run_queue(ctx: LinearContext, text: str) -> None:
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
    chosen = await ctx.choose(f"{pluralize(len(waiting), 'message')} waiting.{held}", [_row(one) for one in waiting])
    if chosen is None:
        return
    action = await ctx.choose(f"{_row(waiting[chosen])}:", ACTIONS)
    if action is not None:
        await _do(ctx, conversation, waiting[chosen], chosen, action)


async def _do(ctx: LinearContext, conversation: Conversation, message: QueuedMessage, place: int, action: int) -> None:
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
    return f"{words}, with {pluralize(len(message.image_ids), 'image')}" if message.image_ids else words


async def run_stash(ctx: LinearContext, text: str) -> None:
    if not ctx.services.kept:
        ctx.say(NOT_KEPT)
        return
    kept = DraftStash(ctx.launch.state_folder, ctx.launch.cwd)
    try:
        if text:
            ctx.say(kept.put(text) or "Put aside. /stash lists the drafts.")
            return
        found = kept.all()
        if not found:
            ctx.say(f"{NOTHING} /stash TEXT puts a text aside.")
            return
        rows = [f"{one.words}, {ago(time.time() - one.at)}" for one in found]
        chosen = await ctx.choose("Drafts put aside:", rows)
        if chosen is None:
            return
        line = await ctx.ask_line("Message, Enter sends it, Esc keeps it", found[chosen].text)
        if line and kept.take(found[chosen]) and not await _send_draft(ctx, line):
            kept.put(line)
    except OSError as error:
        ctx.say(f"The draft could not be put aside or taken: {error.strerror or error}.")


async def _send_draft(ctx: LinearContext, line: str) -> bool:
    """Send a draft, or queue it while the agent works; False where it was refused."""
    if ctx.active.busy:
        return not isinstance(await queue_up(ctx, line), Refused)
    return await ctx.active.send(line)


READ_BACK: Final = 4


MOST_READ: Final = 100


OUTPUT_ROWS: Final = 200


async def run_read(ctx: LinearContext, number: str) -> None:
    await ctx.active.read(number_within(number, MOST_READ) or (MOST_READ if number.isdecimal() else READ_BACK))


async def run_output(ctx: LinearContext, _: str) -> None:
    rows = ctx.active.transcript.last_output.strip().splitlines()
    ctx.say(*(rows[:OUTPUT_ROWS] or ["There is no tool output yet."]))
    if len(rows) > OUTPUT_ROWS:
        ctx.say(f"{len(rows) - OUTPUT_ROWS} more lines.")
