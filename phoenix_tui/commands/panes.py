"""Commands on panes: several conversations in one screen."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final, cast

from engine.records import ConversationQuery
from phoenix_tui.commands.run import CommandContext
from phoenix_tui.modals.rows_sheet import PickerRow, PickerSheet
from phoenix_tui.panes.column import ConversationColumn
from phoenix_tui.panes.saved_panes import recall
from phoenix_tui.panes.split import MOST, Split
from phoenix_tui.text.labels import age, short_path
from tools.wording import number_within

NEW: Final = "new"
LEAST: Final = 2
"""Panes that are worth remembering."""
NO_PANES: Final = "Only one pane is open. /split adds one."


def panes_of(ctx: CommandContext) -> Split | None:
    """The panes, where there are several."""
    beside = ctx.active.beside
    return beside if isinstance(beside, Split) else None


async def run_split(ctx: CommandContext, reference: str) -> None:
    """Another conversation beside this one: by title or id, else chosen."""
    engine = ctx.active.services.engine
    chosen: str | None = reference if reference == NEW else ""
    if reference and not chosen:
        found = await engine.find(reference, partly=True)
        if not found:
            ctx.tell(f"There is no conversation {reference}.", bad=True)
        chosen = found[0].id if len(found) == 1 else ""
    chosen = chosen or await _choose(ctx)
    if chosen:
        await split_with(ctx, "" if chosen == NEW else chosen)


async def split_with(ctx: CommandContext, conversation_id: str) -> None:
    """Show this conversation beside the one in view, or an empty pane; a pane that has it already gets the focus.

    Raises:
        EngineError: there is no such conversation.
    """
    active, panes = ctx.active, panes_of(ctx)
    if active.conversation is not None and active.conversation.id == conversation_id:
        ctx.tell("This conversation is already open in a pane.")
        return
    async with active.leaving():
        if panes is not None and conversation_id and await panes.bring(conversation_id):
            return
        conversation = await active.services.engine.open(conversation_id) if conversation_id else None
        await (panes or _first(ctx)).add(conversation)


def _first(ctx: CommandContext) -> Split:
    column = cast("ConversationColumn", ctx.dock.parent)
    return Split(column, ctx.active.parts, ctx.active, ctx.toasts)


async def _choose(ctx: CommandContext) -> str | None:
    panes, current = panes_of(ctx), ctx.active.conversation
    in_panes = panes.shown if panes is not None else [current]
    shown = {one.id for one in in_panes if one is not None}
    now = time.time()
    choices = [
        PickerRow(row.id, row.title or "New conversation", f"{short_path(row.cwd)} · {age(now - row.updated_at)}")
        for row in await ctx.active.services.engine.list(ConversationQuery())
        if row.id not in shown
    ]
    sheet = PickerSheet("Open in a second pane", [*choices, PickerRow(NEW, "A new conversation")])
    return await ctx.sheets.show(sheet)


async def run_pane(ctx: CommandContext, where: str) -> None:
    """Go to another pane: next, previous or its number."""
    async with _behind_changes(ctx):
        await _go(ctx, where)


@asynccontextmanager
async def _behind_changes(ctx: CommandContext) -> AsyncGenerator[None]:
    """Take the composer at once while panes or conversations come and go: what is typed is for the pane to come."""
    if ctx.active.is_changing:
        async with ctx.active.leaving():
            yield
    else:
        yield


async def _go(ctx: CommandContext, where: str) -> None:
    panes = panes_of(ctx)
    if panes is None:
        ctx.tell(NO_PANES)
    elif where in {"", "next"}:
        await panes.step(1)
    elif where == "previous":
        await panes.step(-1)
    elif number := number_within(where, panes.count):
        await panes.go(number - 1)
    else:
        ctx.tell(f"Give next, previous or a number from 1 to {panes.count}.", bad=True)


async def run_close(ctx: CommandContext, _: str) -> None:
    """Put the pane in view away."""
    async with _behind_changes(ctx):
        panes = panes_of(ctx)
        if panes is None:
            ctx.tell(NO_PANES)
        else:
            await panes.close()


async def restore(ctx: CommandContext) -> bool:
    """Show the panes of the last time again, if one of them or nothing else was requested; returns True if it did."""
    launch, active, engine = ctx.active.launch, ctx.active, ctx.active.services.engine
    remembered = recall(launch.state_folder, launch.cwd)
    ids = remembered.ids[:MOST]
    busy = launch.prompt or launch.images or launch.pick
    if len(ids) < LEAST or (active.conversation is None and busy):
        return False
    wanted = (
        active.conversation.id if active.conversation is not None else ids[max(0, min(remembered.focus, len(ids) - 1))]
    )
    if wanted not in ids:
        return False
    stored = {row.id for row in await engine.list(ConversationQuery())}
    opened = [await engine.open(one) for one in ids if one in stored]
    mine = [one for one in opened if not one.read_only]  # conversations of other processes cannot be shown
    if len(mine) < LEAST or wanted not in {one.id for one in mine}:
        return False
    if active.conversation is None:
        await active.open(wanted)
    panes = _first(ctx)
    for place, one in enumerate(mine):
        if one.id != wanted:
            await panes.add_behind(one, place)
    return True
