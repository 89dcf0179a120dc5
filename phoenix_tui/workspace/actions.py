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

    async def command(self, bench: CommandContext, text: str) -> None:
        """A slash command with its argument; an unknown one stays in the box."""
        name, argument = split_command(text)
        if not await run_command(bench, name, argument):
            bench.dock.composer.load(text)

    async def rows(self, bench: CommandContext, action: str, ids: tuple[str, ...]) -> None:
        """Something done to rows of the list."""
        await shelving.act(bench, action, ids)

    async def resume(self, bench: CommandContext, *, interrupted: bool) -> None:
        """Enter on an empty line: open what is offered, else go on with what was interrupted."""
        if bench.offered:
            offered = bench.offered.pop()
            conversation = bench.desk.conversation
            if conversation is None or not conversation.record.message_count:
                await bench.desk.open(offered)
                return
        await bench.sending.resume(interrupted=interrupted)

    async def answer(self, bench: CommandContext, call_id: str, answer: ApprovalAnswer) -> None:
        """Answer the question in view: the conversation's own, or that of one of its sub-agents.

        A reason that came too late stands in the composer: it is no message before it is sent.
        """
        engine, composer = bench.desk.services.engine, bench.dock.composer
        taken = await bench.desk.accepts(lambda one: asked_by(engine, one, call_id).answer(call_id, answer))
        if not taken and answer.reason:
            composer.load(f"{answer.reason}\n{composer.content}" if composer.content else answer.reason)

    async def keep_key(self, bench: CommandContext, secret: str) -> None:
        """Keep an API key."""
        await settings.keep_key(bench, secret)

    async def use_installed(self, bench: CommandContext, reference: str) -> None:
        """Use a model that was just installed, but not in a conversation that has a real one."""
        conversation = bench.desk.conversation
        if conversation is None or conversation.record.model == GUIDE:
            await settings.use_model(bench, reference)
            bench.tell(f"{reference} is installed and in use.")
        else:
            bench.desk.prefer(model=reference)
            bench.tell(f"{reference} is installed; /model chooses it here, new conversations use it.")

    async def copy(self, bench: CommandContext, text: str) -> None:
        """Text to the clipboard."""
        bench.tell(f"Copied {len(text):,} characters {await bench.clipboard.copy(text)}.")
        self._screen.clear_selection()

    async def _paste(self, bench: CommandContext) -> None:
        """An image or text from the clipboard."""
        match await bench.clipboard.paste():
            case ClipboardImage(content=content):
                await bench.sending.attach([content])
            case ClipboardText(text=text):
                await bench.dock.composer.insert_pasted(text)
            case ClipboardTrouble(reason=reason):
                bench.tell(reason, bad=True)

    async def _edit(self, bench: CommandContext) -> None:
        """Write the draft in $EDITOR."""
        composer = bench.dock.composer
        text = await edit_outside(self._screen.app, composer.content)
        if text is None:
            bench.tell("The editor could not be used: set VISUAL or EDITOR.", bad=True)
        else:
            composer.load(text)

    async def block(self, bench: CommandContext, wanted: BlockWanted) -> None:
        """Something with a block of a transcript."""
        await blocks.act(bench, self._screen.app, wanted)

    async def open_link(self, bench: CommandContext, target: str) -> None:
        """Show the real target and ask before it is opened."""
        if not target.startswith(OPENED_LINKS):
            bench.tell(f"Only web and mail links are opened, not {target}", bad=True)
        elif await bench.sheets.confirm(f"Open {target} ?", "open it", "stay here"):
            self._screen.app.open_url(target)
