"""The task board in lines: printed, one task read or changed, tracking switched."""

from __future__ import annotations

import time
from typing import Final

from phoenix_tui.features.task_board import BoardModel, board_in_view
from phoenix_tui.features.tasks import NEWEST, NO_TASK, carry_out, task_order, track
from phoenix_tui.linear.context import LinearContext, LineCommand
from phoenix_tui.text.task_text import board_lines, task_lines, todo_lines
from tools.clean import clean_line
from tools.wording import counted

MOST_WORDS: Final = 40
"""Messages of a list that are printed: the newest."""
EVERY_MESSAGE: Final = "Every message belongs to a task."


async def _tasks(ctx: LinearContext, argument: str) -> None:
    order = task_order(argument)
    board = await board_in_view(ctx)
    if order.changes:
        if said := await carry_out(ctx, board, order):
            ctx.say(clean_line(said))
    elif order.action == NO_TASK:
        lines = await _messages(board, board.untasked)
        ctx.say(*(["Messages without a task:", *lines] if lines else [EVERY_MESSAGE]))
    elif order.number:
        task = board.numbered(order.number)
        ctx.say(*task_lines(task, await _messages(board, task.message_seqs), time.time()))
    else:
        await _say_board(ctx, board, newest=order.action == NEWEST)


async def _say_board(ctx: LinearContext, board: BoardModel, *, newest: bool) -> None:
    """Print the agent's todo list, then all tasks in order, or by pages, the newest first."""
    if newest:
        await board.first_page()
        while board.has_more:
            await board.more()
    lines = board_lines(board.view, time.time(), tasks=board.newest if newest else None)
    ctx.say(*todo_lines(board.conversation.todos.now), *lines)


async def _messages(board: BoardModel, seqs: tuple[int, ...]) -> list[str]:
    """The newest of these messages in one line each, below the number of those left out."""
    newest = seqs[-MOST_WORDS:]
    while any(board.words(seq) is None for seq in newest):
        await board.load_words(newest)
    left = len(seqs) - len(newest)
    before = [f"({counted(left, 'earlier message')} not shown)"] if left else []
    return [*before, *(f"#{seq} {board.words(seq)}" for seq in newest)]


RUNS: Final[dict[str, LineCommand]] = {"tasks": _tasks, "track": track}
