"""Commands on conversations: open, name, copy, put away, stop."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final

from engine.records import ConversationQuery, ConversationSummary
from phoenix_tui.commands.command_context import CommandContext, Run
from phoenix_tui.commands.shelving import put_aside, rename_one
from phoenix_tui.features.run_limits import caps_for
from phoenix_tui.modals.picker_sheet import PickerRow, PickerSheet
from phoenix_tui.text.labels import age
from phoenix_tui.widgets.question_text import short_path
from tools.wording import counted

MOST: Final = 5_000
"""Conversations to choose from; /search finds the words of all."""


async def new(ctx: CommandContext, _: str) -> None:
    """An empty conversation."""
    await ctx.active.begin()


async def resume(ctx: CommandContext, reference: str) -> None:
    """Open one by title, slug or id, else choose."""
    engine = ctx.active.services.engine
    found: Sequence[ConversationSummary] = ()
    if reference:
        found = await engine.find(reference, partly=True)
        if len(found) == 1:
            await ctx.active.open(found[0].id)
            return
        ctx.tell(
            f"No conversation is called {reference}." if not found else f"{len(found)} conversations match.", bad=True
        )
    rows = found or await engine.list(ConversationQuery(limit=MOST))
    if not rows:
        ctx.tell("There is no conversation to resume yet.")
        return
    now = time.time()
    choices = [PickerRow(row.id, row.title or "New conversation", _remark(row, now)) for row in rows]
    if chosen := await ctx.sheets.show(PickerSheet("Resume a conversation", choices)):
        await ctx.active.open(chosen)


def _remark(row: ConversationSummary, now: float) -> str:
    words = f"{short_path(row.cwd)} · {counted(row.message_count, 'message')} · {age(now - row.updated_at)}"
    return f"by a script · {words}" if row.scripted else words


async def rename(ctx: CommandContext, title: str) -> None:
    """Give the open conversation a title."""
    conversation = ctx.active.conversation
    if conversation is not None:
        await rename_one(ctx, conversation.id, conversation.record.title, title)


async def fork(ctx: CommandContext, _: str) -> None:
    """Continue in a copy."""
    conversation = ctx.active.conversation
    if conversation is None:
        ctx.tell("There is nothing to copy yet.", bad=True)
        return
    await ctx.active.show(await ctx.active.services.engine.fork(conversation.id))
    await ctx.active.index.reload()
    ctx.tell("This is the copy.")


async def retry(ctx: CommandContext, _: str) -> None:
    """Resume an interrupted turn, or try again."""
    active = ctx.active
    await active.attempt(lambda one: one.retry(caps_for(active, one)))


async def stop(ctx: CommandContext, _: str) -> None:
    """Stop the run in view."""
    if not ctx.sending.stop():
        ctx.tell("Nothing runs here.")


async def stopall(ctx: CommandContext, _: str) -> None:
    """Stop every run."""
    count = ctx.active.index.busy
    await ctx.active.services.engine.stop_all()
    ctx.tell(f"{count} stopped." if count else "Nothing runs.")


async def archive(ctx: CommandContext, _: str) -> None:
    """Put the open conversation away."""
    if ctx.active.conversation is not None:
        await put_aside(ctx, [ctx.active.conversation.id], delete=False)


async def delete(ctx: CommandContext, _: str) -> None:
    """Move the open conversation to the trash."""
    if ctx.active.conversation is not None:
        await put_aside(ctx, [ctx.active.conversation.id], delete=True)


RUNS: Final[dict[str, Run]] = {
    "new": new,
    "resume": resume,
    "rename": rename,
    "fork": fork,
    "retry": retry,
    "stop": stop,
    "stopall": stopall,
    "archive": archive,
    "delete": delete,
}
