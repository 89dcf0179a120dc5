"""Commands about the todo list and the plan."""

from __future__ import annotations

from typing import Final

from phoenix_tui.commands.command_context import CommandContext, CommandFunction
from phoenix_tui.commands.screen_front_end import on_screen
from phoenix_tui.features.plan import plan
from phoenix_tui.features.todo import NO_LIST, todo
from phoenix_tui.modals.edit_sheet import EditSheet
from tools.exit_plan import why_no_plan


async def toggle_todos(ctx: CommandContext) -> None:
    """Show all items of the list in the dock, or its one row again."""
    panel = ctx.dock.todos
    if panel is None or not panel.display:
        ctx.tell(NO_LIST)
    else:
        panel.toggle()


async def edit_plan(ctx: CommandContext) -> None:
    """Change the plan that waits for an answer, here or in $EDITOR."""
    conversation, panel = ctx.active.conversation, ctx.dock.question
    question = conversation.question if conversation is not None else None
    if question is None or not question.request.plan:
        return
    text = await ctx.sheets.show(EditSheet("Plan", panel.request.plan))
    if text is None or text == panel.request.plan:
        return
    if why := why_no_plan(text):
        ctx.tell(why, bad=True)
    else:
        panel.change_plan(question.call.id, text)


RUNS: Final[dict[str, CommandFunction]] = {"plan": on_screen(plan), "todo": on_screen(todo)}
