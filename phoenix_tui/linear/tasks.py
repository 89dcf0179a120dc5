"""The todo list, the plan and the task board in lines."""

from __future__ import annotations

import time
from typing import Final

from engine.updates import Question
from phoenix_tui.features.approvals import pending
from phoenix_tui.features.tasks import (
    NEWEST,
    NO_PLAN_WAITS,
    NO_TASK,
    BoardModel,
    board_in_view,
    carry_out,
    plan,
    task_order,
)
from phoenix_tui.linear.line_context import LinearContext
from phoenix_tui.linear.question_lines import question_lines, wants_edit
from phoenix_tui.text.task_text import board_lines, task_lines, todo_lines
from tools.clean import clean, clean_line
from tools.planning import why_no_plan
from tools.wording import number_within, pluralize

MOST_WORDS: Final = 40
"""Messages of a list that are printed: the newest."""
EVERY_MESSAGE: Final = "Every message belongs to a task."


async def run_tasks(ctx: LinearContext, argument: str) -> None:
    order = task_order(argument)
    board = await board_in_view(ctx)
    if order.changes:
        if said := await carry_out(ctx, board, order):
            ctx.say(clean_line(said))
    elif order.action == NO_TASK:
        lines = await _messages(board, board.untasked)
        ctx.say(*(["Messages without a task:", *lines] if lines else [EVERY_MESSAGE]))
    elif order.number:
        task = board.find_number(order.number)
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
    before = [f"({pluralize(left, 'earlier message')} not shown)"] if left else []
    return [*before, *(f"#{seq} {board.words(seq)}" for seq in newest)]


ALL: Final = "all"
END: Final = "/end"
"""Line that ends a plan written anew; nothing else does, so no empty line and no letter is taken for an answer."""
HOW: Final = (
    "Type the number of a line to change it, or all to write the whole plan anew. Enter alone ends with the "
    "changes, Esc without them."
)
HOW_ALL: Final = f"Type the plan line by line; a line with {END} alone ends it. Esc keeps the plan as it was."
HOW_LINE: Final = "An empty line removes it; Ctrl+J makes two lines of one; Esc leaves it."
UNCHANGED: Final = "The plan is unchanged."
CHANGED: Final = "You changed the plan; your answer counts for this text."
GONE: Final = "The plan no longer waits for an answer."


async def edit_wanted(ctx: LinearContext, question: Question, text: str) -> bool:
    """Change the plan where `text` asks for that; False where it is something else."""
    if not wants_edit(question, text):
        return False
    await edit_plan(ctx, question)
    return True


async def edit_plan(ctx: LinearContext, question: Question) -> None:
    """Ask for changes until the user is done, then read out the question again, for the text as it is now."""
    before = ctx.active.plans.of(question).request.plan
    plan = await _ask_changes(ctx, before)
    if all(question.call.id != one.question.call.id for one in pending(ctx.services.engine)):
        ctx.say(GONE)
    elif plan is None or plan == before:
        ctx.say(UNCHANGED)
    else:
        ctx.active.plans.put(question, plan)
        ctx.say(CHANGED, *question_lines(ctx.active.plans.of(question)))


async def _ask_changes(ctx: LinearContext, plan: str) -> str | None:
    """The plan as the user leaves it; None for Esc."""
    lines = plan.split("\n")
    _read_out(ctx, lines)
    ctx.say(HOW)
    while (typed := await ctx.ask_typed(f"Line 1 to {len(lines) + 1}, {ALL}, or Enter when done: ")) is not None:
        word = typed.strip().lower()
        number = number_within(word, len(lines) + 1)
        if not word:
            plan = "\n".join(lines)
            if why := why_no_plan(plan):
                ctx.say(why)
            else:
                return plan
        elif word == ALL:
            lines = await _ask_whole(ctx) or lines
            ctx.say(f"The plan has {pluralize(len(lines), 'line')}.")
        elif number is not None:
            await _change(ctx, lines, number - 1)
        else:
            ctx.say(HOW)
    return None


async def _ask_whole(ctx: LinearContext) -> list[str]:
    """The lines of a whole plan; none for Esc."""
    ctx.say(HOW_ALL)
    lines: list[str] = []
    while (typed := await ctx.ask_typed("Plan line: ")) is not None:
        if typed.strip() == END:
            return lines
        lines += clean(typed).split("\n")
    return []


async def _change(ctx: LinearContext, lines: list[str], place: int) -> None:
    """Ask for the line at a place; the place behind the last adds one."""
    before = lines[place] if place < len(lines) else ""
    ctx.say(HOW_LINE)
    typed = await ctx.ask_typed(f"Line {place + 1}: ", before)
    if typed is None or typed == clean(before):
        return
    after = clean(typed).split("\n") if typed else []
    lines[place : place + 1] = after
    if len(after) == 1:
        ctx.say(f"Line {place + 1} is changed.")
    else:
        _read_out(ctx, lines)


def _read_out(ctx: LinearContext, lines: list[str]) -> None:
    """Say each line with its number, as it is written: here signs of Markdown stay."""
    ctx.say(f"The plan in {pluralize(len(lines), 'line')}:")
    ctx.say(*(f"{number}. {line or '(empty)'}" for number, line in enumerate(lines, 1)))


async def run_plan(ctx: LinearContext, word: str) -> None:
    question = ctx.active.question
    if word != "edit":
        await plan(ctx, word)
    elif question is None or not question.request.plan:
        ctx.say(NO_PLAN_WAITS)
    else:
        await edit_plan(ctx, question)
