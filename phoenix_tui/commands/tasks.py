"""Commands about the todo list, the plan and the task board."""

from __future__ import annotations

from phoenix_tui.commands.run import CommandContext
from phoenix_tui.commands.screen_front_end import ScreenFrontEnd
from phoenix_tui.features.tasks import (
    NEWEST,
    NO_LIST,
    NO_PLAN_WAITS,
    NO_TASK,
    board_in_view,
    carry_out,
    plan,
    task_order,
)
from phoenix_tui.modals.tasks_sheet import NO_TASK as LOOSE
from phoenix_tui.modals.tasks_sheet import TasksSheet
from phoenix_tui.modals.text_sheet import EditSheet
from tools.planning import why_no_plan


async def run_tasks(ctx: CommandContext, argument: str) -> None:
    """The board, one task of it, or a change of one; Enter on a message goes there."""
    front, order = ScreenFrontEnd(ctx), task_order(argument)
    board = await board_in_view(front)
    if order.changes:
        if said := await carry_out(front, board, order):
            ctx.tell(said)
        return
    if order.action == NEWEST:
        await board.first_page()
    query = LOOSE if order.action == NO_TASK else ""
    plain = ctx.active.launch.plain
    sheet = TasksSheet(front, board, plain=plain, query=query, newest=order.action == NEWEST)
    if order.number:
        sheet.first = board.find_number(order.number)
    message = await ctx.sheets.show(sheet)
    if message and ctx.active.conversation is not None and ctx.active.conversation.id == board.id:
        ctx.active.parts.transcript.scroller.jump(int(message.removeprefix("#")))


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


async def run_plan(ctx: CommandContext, word: str) -> None:
    """Show the approved plan, begin or end plan mode, or change the plan that waits."""
    if word == "edit":
        await edit_plan(ctx)
    else:
        await plan(ScreenFrontEnd(ctx), word)
