"""Commands on conversations and panes, and actions on rows of the list: begin, name, copy, archive, each with its undo;
split, go to and close a pane.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Final, TypeAlias, cast

from engine.executor.requests import Refused
from engine.ports import ConversationChanges
from engine.records import ConversationQuery
from phoenix_tui.commands.run import CommandContext, UndoStep
from phoenix_tui.commands.screen_front_end import ScreenFrontEnd, on_screen
from phoenix_tui.features import conversations
from phoenix_tui.features.conversations import archive_or_delete as archive_all
from phoenix_tui.features.conversations import not_done
from phoenix_tui.keys.active_keys import hint, key
from phoenix_tui.modals.archive_sheet import ArchiveSheet
from phoenix_tui.modals.peek_sheet import PeekSheet
from phoenix_tui.modals.rows_sheet import PickerRow, PickerSheet
from phoenix_tui.panes.column import ConversationColumn
from phoenix_tui.panes.saved_panes import recall
from phoenix_tui.panes.split import MOST, Split
from phoenix_tui.text.labels import ListGroup, age, short_path
from phoenix_tui.text.request_text import quick_answer
from phoenix_tui.widgets.answer_gate import GRACE
from tools.displays import MOST_OPTIONS
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


NOTHING_ASKED: Final = "This conversation asks nothing."
MOST_STEPS: Final = 50
"""Archives and deletes that u reverses, one after another."""
RowsAction: TypeAlias = Callable[[CommandContext, tuple[str, ...]], Awaitable[None]]


async def act(ctx: CommandContext, action: str, ids: tuple[str, ...]) -> None:
    """Act on these rows; without any, only actions that need none run."""
    if ids or action in NEED_NONE:
        await ACTS[action](ctx, ids)


async def rename_row(ctx: CommandContext, ids: tuple[str, ...]) -> None:
    """Ask for a title."""
    row = ctx.active.index.summary(ids[0])
    before = row.title if row is not None else ""
    title = await ctx.sheets.ask_line("Title of this conversation", before) or ""
    if title.strip():
        await ctx.active.services.engine.change(ids[0], ConversationChanges(title=title.strip()))
        await ctx.active.index.reload()


async def archive(ctx: CommandContext, ids: tuple[str, ...]) -> None:
    """Put them away."""
    await archive_or_delete(ctx, ids, delete=False)


async def delete(ctx: CommandContext, ids: tuple[str, ...]) -> None:
    """Move them to the trash."""
    await archive_or_delete(ctx, ids, delete=True)


async def archive_or_delete(ctx: CommandContext, ids: Sequence[str], *, delete: bool) -> None:
    """Archive or trash; running ones stay. One undo reverses all of it."""
    active = ctx.active
    if (
        active.conversation is not None
        and active.conversation.id in ids
        and not active.index.runs(active.conversation.id)
    ):
        await active.begin()
    done = await archive_all(active.services.engine, ids, delete=delete)
    if done.ids:
        back = ConversationChanges(deleted=False) if delete else ConversationChanges(archived=False)
        ctx.undo.append(UndoStep(done.ids, back))
        del ctx.undo[:-MOST_STEPS]
    await active.index.reload()
    ctx.tell(done.words(f"{key('restore')} undoes"), bad=not done.ids)


async def bring_back(ctx: CommandContext, _: tuple[str, ...] = ()) -> None:
    """Take back the last archive or delete, however many it was."""
    if not ctx.undo:
        ways = hint(("archived", "shows the archive"), ("trash", "the trash"))
        ctx.tell(f"There is nothing to restore; {ways}.")
        return
    step = ctx.undo.pop()
    await ctx.active.services.engine.bulk.change(step.ids, step.changes)
    await ctx.active.index.reload()
    ctx.tell("Restored." if len(step.ids) == 1 else f"{len(step.ids)} restored.")


async def pin(ctx: CommandContext, ids: tuple[str, ...]) -> None:
    """Pin them to the top; where all of them are, unpin."""
    index = ctx.active.index
    pinned = all((row := index.summary(one)) is not None and row.pinned_at for one in ids)
    refused = await ctx.active.services.engine.bulk.change(ids, ConversationChanges(pinned=not pinned))
    await index.reload()
    if refused:
        ctx.tell(not_done(0, len(refused)), bad=True)


async def stop(ctx: CommandContext, ids: tuple[str, ...]) -> None:
    """Stop the runs in them."""
    running = [one for one in ctx.active.services.engine.live() if one.id in ids and ctx.active.index.runs(one.id)]
    for one in running:
        one.cancel()
    if not running:
        ctx.tell("Nothing is running.")
    elif len(ids) > 1:
        ctx.tell(f"{len(running)} stopped.")


async def fork(ctx: CommandContext, ids: tuple[str, ...]) -> None:
    """Continue in a copy."""
    await ctx.active.show(await ctx.active.services.engine.fork(ids[0]))
    await ctx.active.index.reload()
    ctx.tell("Forked. You are in the copy.")


async def fork_worktree(ctx: CommandContext, ids: tuple[str, ...]) -> None:
    """Continue in a copy, in a git worktree of its own. Raises EngineError."""
    from phoenix_tui.features.worktree import fork_into_worktree  # noqa: PLC0415 - git, seldom used

    row = ctx.active.index.summary(ids[0])
    if row is None:
        return
    copy = await fork_into_worktree(ScreenFrontEnd(ctx), row.id, row.cwd)
    await ctx.active.open(copy.id)
    ctx.environment.count_commits()
    await ctx.active.index.reload()
    ctx.tell("Forked. You are in the copy.")


async def new_worktree(ctx: CommandContext, _: tuple[str, ...] = ()) -> None:
    """Begin a conversation in a git worktree of its own. Raises EngineError."""
    from phoenix_tui.features.worktree import begin_in_fresh_worktree  # noqa: PLC0415 - git, seldom used

    await _in_worktree(ctx, begin_in_fresh_worktree(ScreenFrontEnd(ctx)))


async def peek(ctx: CommandContext, ids: tuple[str, ...]) -> None:
    """Look in without opening; the sheet answers and replies by itself, o opens."""
    row = ctx.active.index.summary(ids[0])
    if row is None:
        return
    active = ctx.active
    openings, plain = active.parts.openings, active.launch.plain
    if await ctx.sheets.show(PeekSheet(active.services.engine, row, ctx.toasts, openings, plain=plain)):
        await active.open(row.id)


async def answer_row(number: int, ctx: CommandContext, ids: tuple[str, ...]) -> None:
    """Answer the one question of a row by the number of an option; anything else that it asks is shown first."""
    found = next((one for one in ctx.active.services.engine.live() if one.id == ids[0]), None)
    question = found.question if found is not None else None
    if found is None or question is None:
        ctx.tell(NOTHING_ASKED)
        return
    answer = quick_answer(question, str(number))
    if answer is None:
        await peek(ctx, ids)
    elif time.monotonic() - question.asked >= GRACE:
        receipt = await found.answer(question.call.id, answer)
        ctx.tell(receipt.reason if isinstance(receipt, Refused) else "Answered.", bad=isinstance(receipt, Refused))


async def run_archived(ctx: CommandContext, _: tuple[str, ...] | str = ()) -> None:
    """Show the archived conversations."""
    await _aside(ctx, ListGroup.ARCHIVED)


async def run_trash(ctx: CommandContext, _: tuple[str, ...] | str = ()) -> None:
    """The conversations that were deleted."""
    await _aside(ctx, ListGroup.TRASH)


async def _aside(ctx: CommandContext, group: ListGroup) -> None:
    opened = await ctx.sheets.show(ArchiveSheet(ctx.active.services.engine, group, plain=ctx.active.launch.plain))
    await ctx.active.index.reload()
    if opened:
        await ctx.active.open(opened)


async def run_pin(ctx: CommandContext, _: str) -> None:
    """Pin the open conversation, or unpin it."""
    if ctx.active.conversation is not None:
        await pin(ctx, (ctx.active.conversation.id,))


async def beside(ctx: CommandContext, ids: tuple[str, ...]) -> None:
    """Show them beside the one in view, each in its pane."""
    for one in ids[:MOST]:
        await split_with(ctx, one)
    ctx.dock.screen.set_focus(ctx.dock.composer)


async def run_worktree(ctx: CommandContext, argument: str) -> None:
    """Begin in a worktree, or merge, remove or list them; then count the commits in view again."""
    from phoenix_tui.features.worktree import worktree  # noqa: PLC0415 - git, seldom used

    await _in_worktree(ctx, worktree(ScreenFrontEnd(ctx), argument))


async def _in_worktree(ctx: CommandContext, work: Awaitable[None]) -> None:
    try:
        await work
    finally:
        ctx.environment.count_commits()
    await ctx.active.index.reload()


ACTS: Final[dict[str, RowsAction]] = {
    "rename": rename_row,
    "archive": archive,
    "delete": delete,
    "restore": bring_back,
    "pin": pin,
    "stop": stop,
    "fork": fork,
    "fork worktree": fork_worktree,
    "new worktree": new_worktree,
    "peek": peek,
    "beside": beside,
    **{f"answer {number}": partial(answer_row, number) for number in range(1, MOST_OPTIONS + 1)},
    "archived": run_archived,
    "trash": run_trash,
}
NEED_NONE: Final = frozenset({"restore", "archived", "trash", "new worktree"})


run_rename: Final = on_screen(conversations.rename, listed=True)
run_fork: Final = on_screen(conversations.fork, listed=True)


async def run_new(ctx: CommandContext, _: str) -> None:
    """An empty conversation."""
    if ctx.active.conversation is not None:
        ctx.active.conversation.hooks.end_reason = "clear"
    await ctx.active.begin()


async def run_archive(ctx: CommandContext, _: str) -> None:
    """Put the open conversation away."""
    if ctx.active.conversation is not None:
        await archive_or_delete(ctx, [ctx.active.conversation.id], delete=False)


async def run_delete(ctx: CommandContext, _: str) -> None:
    """Move the open conversation to the trash."""
    if ctx.active.conversation is not None:
        await archive_or_delete(ctx, [ctx.active.conversation.id], delete=True)
