"""/tasks and /track: the task board of the conversation in view, and tracking on, off or now."""

from __future__ import annotations

from typing import Final

from phoenix_tui.commands.command_context import CommandContext, CommandFunction
from phoenix_tui.commands.screen_front_end import ScreenFrontEnd, on_screen
from phoenix_tui.features.task_board import board_in_view
from phoenix_tui.features.tasks import NEWEST, NO_TASK, carry_out, task_order, track
from phoenix_tui.modals.board_list import NO_TASK as LOOSE
from phoenix_tui.modals.tasks_sheet import TasksSheet


async def tasks(ctx: CommandContext, argument: str) -> None:
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
        sheet.first = board.numbered(order.number)
    message = await ctx.sheets.show(sheet)
    if message and ctx.active.conversation is not None and ctx.active.conversation.id == board.id:
        ctx.active.parts.transcript.scroller.jump(int(message.removeprefix("#")))


RUNS: Final[dict[str, CommandFunction]] = {"tasks": tasks, "track": on_screen(track)}
