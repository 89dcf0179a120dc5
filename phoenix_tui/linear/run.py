"""Run a slash command of the lines by name; its module is loaded with the first use."""

from __future__ import annotations

from phoenix_tui.features.catalogue import LINE_COMMANDS
from phoenix_tui.lifecycle.threads import load
from phoenix_tui.linear.line_context import LinearContext, LineCommand
from tools.comparing import near_names


async def run_linear(ctx: LinearContext, name: str, argument: str) -> None:
    """Do it; an unknown name is answered with the nearest one. Raises EngineError."""
    command = LINE_COMMANDS.get(name)
    if command is None:
        near = near_names(name, LINE_COMMANDS, 1, 0.5)
        ctx.say(f"There is no /{name}.{f' Did you mean /{near[0]}?' if near else ' /help lists all.'}")
        return
    module, function = command.locate("linear")
    run: LineCommand = getattr(await load(module), function)
    await run(ctx, argument)
