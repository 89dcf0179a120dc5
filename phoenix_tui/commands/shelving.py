"""What is done to rows of the list: one or many at once, each with its way back."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeAlias

from engine.ports import ConversationChanges
from phoenix_tui.commands.command_context import CommandContext, Run, UndoStep
from phoenix_tui.commands.panes import split_with
from phoenix_tui.keys.active_keys import hint, key
from phoenix_tui.modals.archive import ArchiveSheet
from phoenix_tui.modals.peek import PeekSheet
from phoenix_tui.panes.split import MOST
from phoenix_tui.widgets.roster import Group

MOST_STEPS: Final = 50
"""Archives and deletes that u takes back, one after another."""
Act: TypeAlias = Callable[[CommandContext, tuple[str, ...]], Awaitable[None]]


async def act(bench: CommandContext, action: str, ids: tuple[str, ...]) -> None:
    """Do something to these rows; without one only what needs none."""
    if ids or action in NEED_NONE:
        await ACTS[action](bench, ids)


async def rename_row(bench: CommandContext, ids: tuple[str, ...]) -> None:
    """Ask for a title."""
    row = bench.desk.overview.summary(ids[0])
    await rename_one(bench, ids[0], row.title if row is not None else "")


async def rename_one(bench: CommandContext, conversation_id: str, before: str, title: str = "") -> None:
    """Ask for a title where none is given."""
    title = title or await bench.sheets.ask_line("Title of this conversation", before) or ""
    if title.strip():
        await bench.desk.services.engine.change(conversation_id, ConversationChanges(title=title.strip()))
        await bench.desk.overview.reload()


async def archive(bench: CommandContext, ids: tuple[str, ...]) -> None:
    """Put them away."""
    await put_aside(bench, ids, delete=False)


async def delete(bench: CommandContext, ids: tuple[str, ...]) -> None:
    """Move them to the trash."""
    await put_aside(bench, ids, delete=True)


async def put_aside(bench: CommandContext, ids: Sequence[str], *, delete: bool) -> None:
    """Archive or trash; what runs stays. One undo takes all of it back."""
    desk = bench.desk
    resting = [one for one in ids if not desk.overview.runs(one)]
    if desk.conversation is not None and desk.conversation.id in resting:
        await desk.begin()
    shelf = desk.services.engine.shelf
    changes = ConversationChanges(deleted=True) if delete else ConversationChanges(archived=True)
    refused = await shelf.change(resting, changes)
    moved = tuple(one for one in resting if one not in refused)
    for one in moved:
        await desk.services.engine.forget(one)
    if moved:
        back = ConversationChanges(deleted=False) if delete else ConversationChanges(archived=False)
        bench.undo.append(UndoStep(moved, back))
        del bench.undo[:-MOST_STEPS]
    await desk.overview.reload()
    what = "" if len(moved) == 1 else f" {len(moved)}"
    done = (f"Moved{what} to the trash" if delete else f"Archived{what}") if moved else ""
    _report(
        bench,
        f"{done} · {key('restore')} undoes." if done else "",
        len(ids) - len(resting),
        len(refused),
    )


def _report(bench: CommandContext, done: str, running: int, elsewhere: int) -> None:
    parts = [done]
    if running:
        parts.append("It is running: stop it first." if running == 1 else f"{running} are running: stop them first.")
    if elsewhere:
        parts.append(f"{elsewhere} open in another Phoenix: close {'it' if elsewhere == 1 else 'them'} there.")
    bench.tell(" ".join(part for part in parts if part), bad=not done)


async def bring_back(bench: CommandContext, _: tuple[str, ...] = ()) -> None:
    """Take back the last archive or delete, however many it was."""
    if not bench.undo:
        ways = hint(("archived", "shows the archive"), ("trash", "the trash"))
        bench.tell(f"There is nothing to bring back: {ways}.")
        return
    step = bench.undo.pop()
    await bench.desk.services.engine.shelf.change(step.ids, step.changes)
    await bench.desk.overview.reload()
    bench.tell("It is back." if len(step.ids) == 1 else f"{len(step.ids)} are back.")


async def pin(bench: CommandContext, ids: tuple[str, ...]) -> None:
    """Pin them to the top; where all of them are, unpin."""
    overview = bench.desk.overview
    pinned = all((row := overview.summary(one)) is not None and row.pinned_at for one in ids)
    refused = await bench.desk.services.engine.shelf.change(ids, ConversationChanges(pinned=not pinned))
    await overview.reload()
    if refused:
        _report(bench, "", 0, len(refused))


async def stop(bench: CommandContext, ids: tuple[str, ...]) -> None:
    """Stop what runs in them."""
    running = [one for one in bench.desk.services.engine.live() if one.id in ids and bench.desk.overview.runs(one.id)]
    for one in running:
        one.cancel()
    if not running:
        bench.tell("Nothing runs there.")
    elif len(ids) > 1:
        bench.tell(f"{len(running)} stopped.")


async def fork(bench: CommandContext, ids: tuple[str, ...]) -> None:
    """Continue in a copy."""
    await bench.desk.show(await bench.desk.services.engine.fork(ids[0]))
    await bench.desk.overview.reload()
    bench.tell("This is the copy.")


async def peek(bench: CommandContext, ids: tuple[str, ...]) -> None:
    """Look in without opening; the sheet answers and replies by itself, o opens."""
    row = bench.desk.overview.summary(ids[0])
    if row is None:
        return
    desk = bench.desk
    if await bench.sheets.show(PeekSheet(desk.services.engine, row, bench.tell, plain=desk.launch.plain)):
        await desk.open(row.id)


async def show_archived(bench: CommandContext, _: tuple[str, ...] | str = ()) -> None:
    """The conversations that were put away."""
    await _aside(bench, Group.ARCHIVED)


async def show_trash(bench: CommandContext, _: tuple[str, ...] | str = ()) -> None:
    """The conversations that were deleted."""
    await _aside(bench, Group.TRASH)


async def _aside(bench: CommandContext, group: Group) -> None:
    opened = await bench.sheets.show(ArchiveSheet(bench.desk.services.engine, group, plain=bench.desk.launch.plain))
    await bench.desk.overview.reload()
    if opened:
        await bench.desk.open(opened)


async def pin_this(bench: CommandContext, _: str) -> None:
    """Pin the open conversation, or unpin it."""
    if bench.desk.conversation is not None:
        await pin(bench, (bench.desk.conversation.id,))


async def beside(bench: CommandContext, ids: tuple[str, ...]) -> None:
    """Show them beside the one in view, each in its pane."""
    for one in ids[:MOST]:
        await split_with(bench, one)
    bench.dock.screen.set_focus(bench.dock.composer)


ACTS: Final[dict[str, Act]] = {
    "rename": rename_row,
    "archive": archive,
    "delete": delete,
    "restore": bring_back,
    "pin": pin,
    "stop": stop,
    "fork": fork,
    "peek": peek,
    "beside": beside,
    "archived": show_archived,
    "trash": show_trash,
}
NEED_NONE: Final = frozenset({"restore", "archived", "trash"})
RUNS: Final[dict[str, Run]] = {"pin": pin_this, "archived": show_archived, "trash": show_trash}
