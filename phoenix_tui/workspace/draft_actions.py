"""What is asked for around the composer, done with the services."""

from __future__ import annotations

import asyncio
import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

from engine.executor.requests import Refused
from engine.records import QueuedMessage
from phoenix_tui.features.prompt_history import remember
from phoenix_tui.features.run_limits import caps_for
from phoenix_tui.keys.active_keys import hint
from phoenix_tui.modals.edit_sheet import EditSheet
from tools.files.own_files import write_file
from tools.files.spills import spills_of

if TYPE_CHECKING:
    from phoenix_tui.commands.command_context import CommandContext


class DraftActions:
    """Queue, pasted texts and images of the next message."""

    async def queued(self, ctx: CommandContext, action: str, message: QueuedMessage, by: int) -> None:
        """Edit, move, remove or send a queued message."""
        conversation = ctx.active.conversation
        if conversation is None:
            return
        queue = conversation.queue
        match action:
            case "edit":
                await self._edit_queued(ctx, message)
            case "move":
                place = [one.id for one in queue.waiting].index(message.id)
                await ctx.active.attempt(lambda one: one.queue.move(message.id, place + by))
            case "remove":
                receipt = await queue.remove(message.id)
                if isinstance(receipt, Refused):
                    ctx.tell(receipt.reason, bad=True)
                else:
                    if trouble := remember(ctx.dock.composer.keys.prompts, message.text):
                        ctx.tell(trouble, bad=True)
                    ctx.tell(f"Removed from the queue; {hint(('older', 'brings it back'))}.")
            case _:
                active = ctx.active
                await active.attempt(lambda one: one.queue.send_now(message.id, caps_for(active, one)))

    async def paste(self, ctx: CommandContext, mark: str) -> None:
        """View and change a long paste; it may become a file that the message names."""
        composer = ctx.dock.composer
        sheet = EditSheet(mark.strip("[]"), composer.bulk.text_of(mark), may_be_file=True)
        text = await ctx.sheets.show(sheet)
        if text is None:
            return
        if sheet.wants_file:
            try:
                conversation = ctx.active.conversation
                cwd = ctx.active.launch.cwd if conversation is None else conversation.record.cwd
                folder = spills_of(ctx.active.launch.state_folder / "outputs", cwd)
                path = await asyncio.to_thread(spill_paste, folder, text)
            except OSError as error:
                ctx.tell(f"The paste cannot be written to a file: {error.strerror}.", bad=True)
                return
            ctx.tell(f"The paste is in {path}; the agent may read it.")
            text = f'@"{path}"' if " " in str(path) else f"@{path}"
        composer.marks.change(mark, text)

    async def _edit_queued(self, ctx: CommandContext, message: QueuedMessage) -> None:
        text = await ctx.sheets.show(EditSheet("Queued message", message.text))
        if text is not None and text != message.text:
            await ctx.active.attempt(lambda one: one.queue.edit(message.id, text))


def spill_paste(folder: Path, text: str) -> Path:
    """A file that only the user can read, named by what is in it, among the outputs that tools may read."""
    content = text.encode("utf-8", "replace")
    path = folder / f"pasted-{hashlib.sha256(content).hexdigest()[:12]}.txt"
    write_file(path, content)
    return path
