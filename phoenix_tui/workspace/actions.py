"""Actions of the workspace's keys and widgets that need the services, sheets or commands; loaded with first use."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from engine.executor.requests import Refused
from engine.records import Delivery
from phoenix_tui.commands import conversations, messages, settings, work
from phoenix_tui.commands.palette import palette
from phoenix_tui.commands.run import run_line
from phoenix_tui.features.composing import remember
from phoenix_tui.features.run_limits import caps_for
from phoenix_tui.keys.active_keys import hint
from phoenix_tui.keys.key_order import keys_wait
from phoenix_tui.modals.text_sheet import EditSheet
from phoenix_tui.terminal.clipboard import ClipboardImage, ClipboardText, ClipboardTrouble
from phoenix_tui.terminal.lending import edit_outside, hand_over, with_changes
from phoenix_tui.text.agent_text import leaving_question, running
from phoenix_tui.widgets.transcript.view import FOCUS_VIEW
from phoenix_tui.widgets.welcome_panel import GUIDE
from phoenix_tui.workspace.sending import fit_running_line, give_back
from tools.files.location import spills_of
from tools.files.own_files import write_file

if TYPE_CHECKING:
    from engine.executor.tool_call import UserTerminal
    from phoenix_tui.commands.run import CommandContext
    from phoenix_tui.widgets.queue_panel import QueuePanel
    from phoenix_tui.widgets.transcript.signals import BlockWanted

OPENED_LINKS: Final = ("http://", "https://", "mailto:")
CANNOT_LEND: Final = "This program needs a whole terminal, which a browser cannot give it. Esc stops it."
PASTE_AGAIN: Final = "Another conversation was opened before the clipboard was read; paste again."
LOST_DRAFT: Final = "The draft cannot be saved. Quit and lose it?"


class Actions:
    """Actions of the workspace, one method each."""

    def __init__(self, ctx: CommandContext) -> None:
        self._ctx = ctx
        self.by_key: Mapping[str, Callable[[], Awaitable[None]]] = {
            "palette": lambda: palette(ctx),
            "next_mode": lambda: settings.next_mode(ctx),
            "todos": lambda: work.toggle_todos(ctx),
            "paste": self._paste,
            "editor": self._edit,
            "focus_view": self._focus_view,
        }
        """Actions of keys that are no slash command, as `keymap.KEYS` names them."""

    async def command(self, text: str) -> None:
        """Run a slash command with its argument; an unknown one stays in the box."""
        if not await run_line(self._ctx, text):
            self._ctx.dock.composer.give_back(text)  # before what was typed meanwhile

    async def rows(self, action: str, ids: tuple[str, ...]) -> None:
        await conversations.act(self._ctx, action, ids)

    async def resume(self, *, interrupted: bool) -> None:
        """Open the offered conversation, else resume the interrupted turn: Enter on an empty line."""
        ctx = self._ctx
        if ctx.offered:
            offered = ctx.offered.pop()
            conversation = ctx.active.conversation
            if conversation is None or not conversation.record.message_count:
                await ctx.active.open(offered)
                return
        await ctx.sending.resume(interrupted=interrupted)

    async def always_queue(self) -> None:
        """Queue the refused message, and let Enter do that from now on."""
        settings.keep_setting(self._ctx, "busy_enter", "queue")
        await self._ctx.sending.send(self._ctx.dock.composer.take(), queue=True)
        self._ctx.tell("Enter queues while the agent works; /config busy_enter changes it.")

    async def _focus_view(self) -> None:
        """Switch the focus view, and keep the choice."""
        wanted = not self._ctx.screen.app.has_class(FOCUS_VIEW)
        settings.keep_setting(self._ctx, "focus_view", "true" if wanted else "false")
        now = "Prompts, answers and diffs are shown; tools share one line" if wanted else "Tools are shown in full"
        self._ctx.tell(f"{now} · {hint(('focus_view', 'switches'))}.")

    async def keep_key(self, secret: str) -> None:
        await settings.keep_key(self._ctx, secret)

    async def use_installed(self, reference: str) -> None:
        """Use a model that was just installed, but not in a conversation that has a real one."""
        ctx, conversation = self._ctx, self._ctx.active.conversation
        if conversation is None or conversation.record.model == GUIDE:
            await settings.use_model(ctx, reference)
            ctx.tell(f"{reference} is installed and now in use.")
        else:
            ctx.active.prefer(model=reference)
            ctx.tell(f"{reference} is installed. New conversations use it; /model selects it here.")

    async def copy(self, text: str) -> None:
        self._ctx.tell(f"Copied {len(text):,} characters {await self._ctx.clipboard.copy(text)}.")
        self._ctx.screen.clear_selection()

    async def copy_selection(self) -> None:
        """Copy what was just selected with the mouse, where that is wanted; it stays selected."""
        text = self._ctx.screen.get_selected_text() if self._ctx.environment.copies_selection else ""
        if text:
            self._ctx.tell(f"Copied {len(text):,} characters {await self._ctx.clipboard.copy(text)}.")

    async def block(self, wanted: BlockWanted) -> None:
        await messages.act(self._ctx, wanted)

    async def open_link(self, target: str) -> None:
        """Show the real target and ask before it is opened."""
        if not target.startswith(OPENED_LINKS):
            self._ctx.tell(f"Only web and mail links are opened, not {target}", bad=True)
        elif await self._ctx.sheets.confirm(f"Open {target} ?", "open", "cancel"):
            self._ctx.screen.app.open_url(target)

    async def change_queue(self, wanted: QueuePanel.Wanted) -> None:
        ctx, message = self._ctx, wanted.message
        conversation = ctx.active.conversation
        if conversation is None:
            return
        queue = conversation.queue
        match wanted.action:
            case "edit":
                text = await ctx.sheets.show(EditSheet("Queued message", message.text))
                if text is None or text == message.text:
                    return
                conversation = ctx.active.conversation
                if not await ctx.active.accepts(lambda one: one.queue.edit(message.id, text)):
                    await give_back(ctx.active, conversation, text)  # it was sent meanwhile
            case "deliver":
                other = Delivery.IDLE if message.delivery is Delivery.TOOL else Delivery.TOOL
                await ctx.active.attempt(lambda one: one.queue.deliver(message.id, other))
            case "move":
                place = [one.id for one in queue.waiting].index(message.id)
                await ctx.active.attempt(lambda one: one.queue.move(message.id, place + wanted.by))
            case "remove":
                receipt = await queue.remove(message.id)
                if isinstance(receipt, Refused):
                    ctx.tell(receipt.reason, bad=True)
                else:
                    if trouble := remember(ctx.dock.composer.draft.prompts, message.text):
                        ctx.tell(trouble, bad=True)
                    ctx.tell(f"Removed from the queue; {hint(('older', 'restores it'))}.")
            case _:
                await ctx.active.attempt(lambda one: one.queue.send_now(message.id, caps_for(ctx.active, one)))

    async def open_paste(self, mark: str) -> None:
        """View and change a long paste; it may become a file that the message names."""
        ctx, composer = self._ctx, self._ctx.dock.composer
        sheet = EditSheet(mark.strip("[]"), composer.bulk.text_of(mark), may_be_file=True)
        text = await ctx.sheets.show(sheet)
        if text is None:
            return
        if sheet.wants_file:
            try:
                folder = spills_of(ctx.active.launch.state_folder / "outputs", ctx.active.folder)
                path = await asyncio.to_thread(spill_paste, folder, text)
            except OSError as error:
                ctx.tell(f"The paste cannot be written to a file: {error.strerror}.", bad=True)
                return
            ctx.tell(f"The paste is saved in {path}, where the agent can read it.")
            text = f'@"{path}"' if " " in str(path) else f"@{path}"
        composer.marks.change(mark, text)

    async def may_leave(self) -> bool:
        """True when nothing runs and the draft is stored, or the user wants to quit all the same."""
        active = self._ctx.active
        stored = await active.drafts.keep() and not active.drafts.are_unstored
        if not stored and not await self._confirm_quit(LOST_DRAFT):
            return False
        jobs = sum(running(one.jobs.all()) for one in active.services.engine.live())
        question = leaving_question(active.index.busy, jobs)
        return not question or await self._confirm_quit(question)

    async def lend_terminal(self, terminal: UserTerminal) -> None:
        """Lend the terminal to the running shell line; afterwards its rows have the size of the transcript again."""
        if not await hand_over(self._ctx.screen.app, terminal):
            self._ctx.tell(CANNOT_LEND, bad=True)
        fit_running_line(self._ctx.active, self._ctx.active.parts.transcript)

    async def _confirm_quit(self, question: str) -> bool:
        return await self._ctx.sheets.confirm(question, "quit", "stay")

    async def _paste(self) -> None:
        """An image or text from the clipboard."""
        departures = self._ctx.active.drafts.departures
        before = departures.count
        pasted = await self._ctx.clipboard.paste()
        if departures.count != before:
            self._ctx.tell(PASTE_AGAIN, bad=True)
            return
        match pasted:
            case ClipboardImage(content=content):
                await self._ctx.sending.attaching.attach([content])
            case ClipboardText(text=text):
                await self._ctx.dock.composer.insert_pasted(text)
            case ClipboardTrouble(reason=reason):
                self._ctx.tell(reason, bad=True)

    async def _edit(self) -> None:
        """Write the draft in $EDITOR."""
        active, composer = self._ctx.active, self._ctx.dock.composer
        with keys_wait():
            await active.settle()
        conversation, before = active.conversation, composer.content
        text = await edit_outside(self._ctx.screen.app, before)
        if text is None:
            self._ctx.tell("The editor cannot be started; set VISUAL or EDITOR.", bad=True)
        elif conversation is not None and conversation is not active.conversation:
            await give_back(active, conversation, text)
        else:
            composer.load(with_changes(before, composer.content, text))


def spill_paste(folder: Path, text: str) -> Path:
    """Write a paste to a file that only the user can read, named by its hash, among the outputs tools may read."""
    content = text.encode("utf-8", "replace")
    path = folder / f"pasted-{hashlib.sha256(content).hexdigest()[:12]}.txt"
    write_file(path, content)
    return path
