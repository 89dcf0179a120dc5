"""Commands about the todo list and the plan."""

from __future__ import annotations

from typing import Final

from phoenix_tui.commands.command_context import CommandContext, CommandFunction
from phoenix_tui.commands.screen_front_end import ScreenFrontEnd, on_screen
from phoenix_tui.features.plan import NO_PLAN_WAITS, plan
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
        ctx.tell(NO_PLAN_WAITS)
        return
    text = await ctx.sheets.show(EditSheet("Plan", panel.request.plan))
    if text is None or text == panel.request.plan:
        return
    if why := why_no_plan(text):
        ctx.tell(why, bad=True)
    else:
        panel.change_plan(question.call.id, text)


async def show_plan(ctx: CommandContext, word: str) -> None:
    """Show the approved plan, begin or end plan mode, or change the plan that waits."""
    if word == "edit":
        await edit_plan(ctx)
    else:
        await plan(ScreenFrontEnd(ctx), word)


RUNS: Final[dict[str, CommandFunction]] = {"plan": show_plan, "todo": on_screen(todo)}
