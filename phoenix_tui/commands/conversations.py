"""Commands on conversations: open, name, copy, put away, stop."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final

from engine.records import ConversationQuery, ConversationSummary
from phoenix_tui.commands.command_context import CommandContext, Run
from phoenix_tui.commands.shelving import put_aside, rename_one
from phoenix_tui.features.run_limits import caps_for
from phoenix_tui.modals.picker import PickerRow, PickerSheet
from phoenix_tui.text.labels import age
from phoenix_tui.widgets.question_text import short_path
from tools.wording import counted

MOST: Final = 5_000
"""Conversations to choose from; /search finds the words of all."""


async def new(bench: CommandContext, _: str) -> None:
    """An empty conversation."""
    await bench.desk.begin()


async def resume(bench: CommandContext, reference: str) -> None:
    """Open one by title, slug or id, else choose."""
    engine = bench.desk.services.engine
    found: Sequence[ConversationSummary] = ()
    if reference:
        found = await engine.find(reference, partly=True)
        if len(found) == 1:
            await bench.desk.open(found[0].id)
            return
        bench.tell(
            f"No conversation is called {reference}." if not found else f"{len(found)} conversations match.", bad=True
        )
    rows = found or await engine.list(ConversationQuery(limit=MOST))
    if not rows:
        bench.tell("There is no conversation to resume yet.")
        return
    now = time.time()
    choices = [PickerRow(row.id, row.title or "New conversation", _remark(row, now)) for row in rows]
    if chosen := await bench.sheets.show(PickerSheet("Resume a conversation", choices)):
        await bench.desk.open(chosen)


def _remark(row: ConversationSummary, now: float) -> str:
    words = f"{short_path(row.cwd)} · {counted(row.message_count, 'message')} · {age(now - row.updated_at)}"
    return f"by a script · {words}" if row.scripted else words


async def rename(bench: CommandContext, title: str) -> None:
    """Give the open conversation a title."""
    conversation = bench.desk.conversation
    if conversation is not None:
        await rename_one(bench, conversation.id, conversation.record.title, title)


async def fork(bench: CommandContext, _: str) -> None:
    """Continue in a copy."""
    conversation = bench.desk.conversation
    if conversation is None:
        bench.tell("There is nothing to copy yet.", bad=True)
        return
    await bench.desk.show(await bench.desk.services.engine.fork(conversation.id))
    await bench.desk.overview.reload()
    bench.tell("This is the copy.")


async def retry(bench: CommandContext, _: str) -> None:
    """Resume an interrupted turn, or try again."""
    desk = bench.desk
    await desk.attempt(lambda one: one.retry(caps_for(desk, one)))


async def stop(bench: CommandContext, _: str) -> None:
    """Stop the run in view."""
    if not bench.sending.stop():
        bench.tell("Nothing runs here.")


async def stopall(bench: CommandContext, _: str) -> None:
    """Stop every run."""
    count = bench.desk.overview.busy
    await bench.desk.services.engine.stop_all()
    bench.tell(f"{count} stopped." if count else "Nothing runs.")


async def archive(bench: CommandContext, _: str) -> None:
    """Put the open conversation away."""
    if bench.desk.conversation is not None:
        await put_aside(bench, [bench.desk.conversation.id], delete=False)


async def delete(bench: CommandContext, _: str) -> None:
    """Move the open conversation to the trash."""
    if bench.desk.conversation is not None:
        await put_aside(bench, [bench.desk.conversation.id], delete=True)


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
