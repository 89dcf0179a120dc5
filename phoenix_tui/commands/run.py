"""Run a slash command by name; its module is loaded with the first use."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec
from msgspec import Struct

from engine.executor.requests import ENGINE_ERRORS
from engine.ports import ConversationChanges
from phoenix_tui.features.catalogue import BY_NAME, SlashCommand, closest, split_command
from phoenix_tui.features.custom_commands import is_custom
from phoenix_tui.features.tabs import find_tab
from phoenix_tui.features.use_log import UseLog, command_key
from phoenix_tui.keys.active_keys import key
from phoenix_tui.keys.key_order import keys_wait, let_keys_in
from phoenix_tui.lifecycle.threads import load
from phoenix_tui.terminal.clipboard import Clipboard
from phoenix_tui.widgets.dock import Dock
from phoenix_tui.widgets.notices import Notifier
from phoenix_tui.workspace.active_conversation import ActiveConversation
from phoenix_tui.workspace.sending import Sending

if TYPE_CHECKING:
    from phoenix_tui.modals.base import PhoenixScreen
    from phoenix_tui.modals.opening import Sheets
    from phoenix_tui.workspace.environment import Environment


class UndoStep(Struct, frozen=True):
    """One archive or delete of one or many, and its undo."""

    ids: tuple[str, ...]
    changes: ConversationChanges


class CommandContext(Struct, frozen=True):
    """Objects that a command may use."""

    screen: PhoenixScreen[None]
    active: ActiveConversation
    sending: Sending
    dock: Dock
    sheets: Sheets
    toasts: Notifier
    clipboard: Clipboard
    keymap: Mapping[str, str]
    environment: Environment
    used: UseLog
    """Choices made before."""
    offered: list[str] = msgspec.field(default_factory=list[str])
    """Conversation that Enter on an empty line opens: it was open when Phoenix ended unexpectedly."""
    undo: list[UndoStep] = msgspec.field(default_factory=list[UndoStep])
    """Steps that u in the list undoes, the newest last."""

    def tell(self, text: str, *, bad: bool = False) -> None:
        """Show a toast; the text may come from outside."""
        self.toasts.tell(text, bad=bad)


CommandFunction: TypeAlias = Callable[[CommandContext, str], Awaitable[None]]


PROMPTS: Final = "mcp__"
"""Beginning of the names of servers' prompts."""


async def run_line(ctx: CommandContext, line: str) -> bool:
    """Run a typed line: a command of Phoenix, else a skill, a command file or a prompt of a server; False when there is
    no such command.
    """
    name, argument = split_command(line)
    active = ctx.active
    is_prompt = name.startswith(PROMPTS)
    if name not in BY_NAME and (is_prompt or await is_custom(active.services.invocables, active.folder, line)):
        let_keys_in()
        await ctx.sending.send(line)
        return True
    used = command_key(name) if line.startswith("/") else ""  # a key gives the name alone
    noting = asyncio.create_task(asyncio.to_thread(ctx.used.add, used)) if used else None
    try:
        return await run_command(ctx, name, argument)
    finally:
        if noting is not None:
            await noting


async def run_command(ctx: CommandContext, name: str, argument: str) -> bool:
    """Do it; an unknown name is answered with the nearest one. False when there is no such command."""
    command = BY_NAME.get(name)
    if (command is None or not command.at_once) and ctx.active.is_changing:
        with keys_wait():
            await ctx.active.settle()
    if command is None:
        near = closest(name)
        ctx.tell(f"There is no /{name}.{f' Did you mean /{near}?' if near else ' /help lists all.'}", bad=True)
        return False
    found = find_tab(name, argument)
    run = await load_function(command)
    if command.is_long:
        let_keys_in()
    conversation = ctx.active.conversation
    if conversation is not None and conversation.record.agent is not None and not command.in_agents:
        ctx.tell(
            f"/{name} does not work in a sub-agent's transcript, which is read-only. "
            f"{key('agent_parent')} returns to its parent, /fork makes a copy."
        )
        return True
    try:
        if found is not None:
            show_tabs = (await load("phoenix_tui.commands.tabs")).show_tabs
            await show_tabs(ctx, *found)
        elif argument or command.shown_in:
            await run(ctx, argument)
        else:
            run_bare = (await load("phoenix_tui.commands.bare")).run_bare
            await run_bare(ctx, command, run)
    except ENGINE_ERRORS as error:
        ctx.tell(str(error), bad=True)
    return True


async def load_function(command: SlashCommand) -> CommandFunction:
    """Import the module of a command, which takes up to 30 ms with its sheets, and return its function."""
    name, function = command.locate("commands")
    found = getattr(await load(name), function)
    if not command.run:
        own: CommandFunction = found
        return own
    front_end = await load("phoenix_tui.commands.screen_front_end")
    shared: CommandFunction = front_end.on_screen(found)
    return shared
