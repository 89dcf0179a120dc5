"""What the keys and widgets of the workspace ask for, done with the services."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING

from phoenix_tui.commands import blocks, settings, shelving
from phoenix_tui.commands.catalogue import split_command
from phoenix_tui.commands.palette import palette
from phoenix_tui.commands.run import run_command
from phoenix_tui.features.sub_agents import asked_by
from phoenix_tui.terminal.clipboard import ClipboardImage, ClipboardText, ClipboardTrouble
from phoenix_tui.widgets.welcome_panel import GUIDE
from phoenix_tui.workspace.draft_actions import DraftActions
from phoenix_tui.workspace.external_editor import edit_outside

if TYPE_CHECKING:
    from engine.executor.requests import ApprovalAnswer
    from phoenix_tui.commands.command_context import CommandContext
    from phoenix_tui.modals.base import PhoenixScreen
    from phoenix_tui.widgets.transcript.signals import BlockWanted

OPENED_LINKS = ("http://", "https://", "mailto:")


class Actions:
    """One method for each thing that is asked for."""

    def __init__(self, screen: PhoenixScreen[None]) -> None:
        self._screen = screen
        self.writing = DraftActions()
        self.by_key: Mapping[str, Callable[[CommandContext], Awaitable[None]]] = {
            "palette": palette,
            "next_mode": settings.next_mode,
            "paste": self._paste,
            "editor": self._edit,
        }
        """What a key asks for that is no command, as `keymap.KEYS` names it."""

    async def command(self, ctx: CommandContext, text: str) -> None:
        """A slash command with its argument; an unknown one stays in the box."""
        name, argument = split_command(text)
        if not await run_command(ctx, name, argument):
            ctx.dock.composer.load(text)

    async def rows(self, ctx: CommandContext, action: str, ids: tuple[str, ...]) -> None:
        """Something done to rows of the list."""
        await shelving.act(ctx, action, ids)

    async def resume(self, ctx: CommandContext, *, interrupted: bool) -> None:
        """Enter on an empty line: open what is offered, else go on with what was interrupted."""
        if ctx.offered:
            offered = ctx.offered.pop()
            conversation = ctx.active.conversation
            if conversation is None or not conversation.record.message_count:
                await ctx.active.open(offered)
                return
        await ctx.sending.resume(interrupted=interrupted)

    async def answer(self, ctx: CommandContext, call_id: str, answer: ApprovalAnswer) -> None:
        """Answer the question in view: the conversation's own, or that of one of its sub-agents.

        A reason that came too late stands in the composer: it is no message before it is sent.
        """
        engine, composer = ctx.active.services.engine, ctx.dock.composer
        taken = await ctx.active.accepts(lambda one: asked_by(engine, one, call_id).answer(call_id, answer))
        if not taken and answer.reason:
            composer.load(f"{answer.reason}\n{composer.content}" if composer.content else answer.reason)

    async def keep_key(self, ctx: CommandContext, secret: str) -> None:
        """Keep an API key."""
        await settings.keep_key(ctx, secret)

    async def use_installed(self, ctx: CommandContext, reference: str) -> None:
        """Use a model that was just installed, but not in a conversation that has a real one."""
        conversation = ctx.active.conversation
        if conversation is None or conversation.record.model == GUIDE:
            await settings.use_model(ctx, reference)
            ctx.tell(f"{reference} is installed and in use.")
        else:
            ctx.active.prefer(model=reference)
            ctx.tell(f"{reference} is installed; /model chooses it here, new conversations use it.")

    async def copy(self, ctx: CommandContext, text: str) -> None:
        """Text to the clipboard."""
        ctx.tell(f"Copied {len(text):,} characters {await ctx.clipboard.copy(text)}.")
        self._screen.clear_selection()

    async def _paste(self, ctx: CommandContext) -> None:
        """An image or text from the clipboard."""
        match await ctx.clipboard.paste():
            case ClipboardImage(content=content):
                await ctx.sending.attach([content])
            case ClipboardText(text=text):
                await ctx.dock.composer.insert_pasted(text)
            case ClipboardTrouble(reason=reason):
                ctx.tell(reason, bad=True)

    async def _edit(self, ctx: CommandContext) -> None:
        """Write the draft in $EDITOR."""
        composer = ctx.dock.composer
        text = await edit_outside(self._screen.app, composer.content)
        if text is None:
            ctx.tell("The editor could not be used: set VISUAL or EDITOR.", bad=True)
        else:
            composer.load(text)

    async def block(self, ctx: CommandContext, wanted: BlockWanted) -> None:
        """Something with a block of a transcript."""
        await blocks.act(ctx, self._screen.app, wanted)

    async def open_link(self, ctx: CommandContext, target: str) -> None:
        """Show the real target and ask before it is opened."""
        if not target.startswith(OPENED_LINKS):
            ctx.tell(f"Only web and mail links are opened, not {target}", bad=True)
        elif await ctx.sheets.confirm(f"Open {target} ?", "open it", "stay here"):
            self._screen.app.open_url(target)
