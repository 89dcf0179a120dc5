"""Run a slash command by name; its module is loaded with the first use."""

from __future__ import annotations

from typing import Final

from engine.api.errors import ENGINE_ERRORS
from phoenix_tui.commands.command_context import CommandContext, CommandFunction
from phoenix_tui.features.catalogue import closest, split_command
from phoenix_tui.features.custom_commands import is_custom
from phoenix_tui.keys.active_keys import key
from phoenix_tui.keys.key_order import keys_wait, let_keys_in
from phoenix_tui.lifecycle.loading import load

MODULES: Final[dict[str, tuple[str, ...]]] = {
    "conversations": ("archive", "delete", "fork", "new", "rename", "resume", "retry", "stop", "stopall"),
    "export": ("export",),
    "settings": ("config", "doctor", "effort", "key", "model", "mouse", "permissions", "sandbox", "theme", "vim"),
    "profiles": ("profile",),
    "route": ("route",),
    "reading": ("btw", "copy", "cost", "help", "quit"),
    "jobs": ("background", "jobs"),
    "archive": ("archived", "pin", "trash"),
    "search": ("find", "search"),
    "context": ("compact", "context", "init", "prompt"),
    "blocks": ("turns",),
    "changes": ("diff",),
    "panes": ("close", "pane", "split"),
    "worktree": ("worktree",),
    "agents": ("agents",),
    "approvals": ("approvals",),
    "rules": ("rules",),
    "memory": ("memory",),
    "trust": ("trust",),
    "hooks": ("hooks",),
    "skills": ("commands", "skills"),
    "mcp": ("mcp",),
    "language_servers": ("lsp",),
    "statistics": ("stats",),
    "plan": ("plan", "todo"),
    "stash": ("stash",),
    "tasks": ("tasks", "track"),
    "traces": ("trace",),
    "diagnostics": ("debug",),
    "rewind": ("branches", "rewind", "undo"),
    "history": ("history",),
    "images": ("image", "images"),
}
"""The modules of this folder and the commands in their `RUNS`: with their screens they would cost every start 30 ms."""
NOT_IN_SUB_AGENTS: Final = frozenset({
    "archive",
    "branches",
    "compact",
    "delete",
    "init",
    "pin",
    "rename",
    "retry",
    "rewind",
    "route",
    "undo",
})
"""Commands that would change a transcript that belongs to a parent's call."""
AT_ONCE: Final = frozenset({
    *("close", "new", "pane", "resume", "split"),  # they wait in their own way
    *("background", "stop", "stopall", "quit", "help", "history", "stash"),
})
"""Commands that do not wait for the conversation that is coming into view: most others act on that one."""
WORKING: Final = frozenset({"compact", "init", "retry"})
"""Commands that begin long work: what is typed behind them is for the composer."""
PROMPTS: Final = "mcp__"
"""Beginning of the names of servers' prompts."""
_MODULE_OF: Final = {name: module for module, names in MODULES.items() for name in names}


async def run_line(ctx: CommandContext, line: str) -> bool:
    """Run a typed line: a command of Phoenix, else a skill, a command file or a prompt of a server; False when there is
    no such command.
    """
    name, argument = split_command(line)
    active = ctx.active
    is_prompt = name.startswith(PROMPTS)
    if name not in _MODULE_OF and (is_prompt or await is_custom(active.services.invocables, active.folder, line)):
        let_keys_in()
        await ctx.sending.send(line)
        return True
    return await run_command(ctx, name, argument)


async def run_command(ctx: CommandContext, name: str, argument: str) -> bool:
    """Do it; an unknown name is answered with the nearest one. False when there is no such command."""
    if name not in AT_ONCE and ctx.active.is_changing:
        with keys_wait():
            await ctx.active.settle()
    run = await _run_of(name)
    if name in WORKING:
        let_keys_in()
    if run is None:
        near = closest(name)
        ctx.tell(f"There is no /{name}.{f' Did you mean /{near}?' if near else ' /help lists all.'}", bad=True)
        return False
    conversation = ctx.active.conversation
    if conversation is not None and conversation.record.agent is not None and name in NOT_IN_SUB_AGENTS:
        ctx.tell(
            f"/{name} does not work in a sub-agent's transcript, which is read-only. "
            f"{key('agent_parent')} returns to its parent, /fork makes a copy."
        )
        return True
    try:
        await run(ctx, argument)
    except ENGINE_ERRORS as error:
        ctx.tell(str(error), bad=True)
    return True


async def _run_of(name: str) -> CommandFunction | None:
    if name not in _MODULE_OF:
        return None
    module = await load(f"phoenix_tui.commands.{_MODULE_OF[name]}")
    runs: dict[str, CommandFunction] = module.RUNS
    return runs[name]
