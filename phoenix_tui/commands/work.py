"""Commands on work in progress: sub-agents, their questions, background commands, the todo list, the plan, the task
board.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from engine.updates import AgentView
from phoenix_tui.commands.conversations import split_with
from phoenix_tui.commands.run import CommandContext
from phoenix_tui.commands.screen_front_end import ScreenFrontEnd
from phoenix_tui.features.agents import (
    NONE_AT_WORK,
    NOTHING_WAITS,
    agent_named,
    at_work,
    family_of,
    jobs_in_view,
    list_asked_elsewhere,
    pending,
    stop_agents,
    views_in_view,
)
from phoenix_tui.features.tasks import (
    NEWEST_FIRST,
    NO_LIST,
    NO_PLAN_WAITS,
    NO_TASK,
    board_in_view,
    carry_out,
    plan,
    task_order,
)
from phoenix_tui.modals.agents_sheet import BESIDE, AgentsSheet, ApprovalsSheet
from phoenix_tui.modals.jobs_sheet import JobsSheet
from phoenix_tui.modals.tasks_sheet import NO_TASK as LOOSE
from phoenix_tui.modals.tasks_sheet import TasksSheet
from phoenix_tui.modals.text_sheet import EditSheet
from tools.planning import why_no_plan

USAGE: Final = "Give next, previous, parent, stop, fold, or an id or the start of a task."


async def run_agents(ctx: CommandContext, argument: str) -> None:
    """The list of all; or one by its id or task; or a way through them."""
    front = ScreenFrontEnd(ctx)
    if argument == "parent":
        conversation = ctx.active.conversation
        if conversation is None or conversation.record.agent is None:
            ctx.tell("This conversation is not a sub-agent; it has no parent.")
        else:
            await ctx.active.open(conversation.record.agent.parent_id)
        return
    views = views_in_view(front)
    if not views:
        return
    word, _, current = argument.partition(" ")
    match argument:
        case _ if word in {"", "at"}:
            await _choose(ctx, current)
        case "next":
            await _step(ctx, views, 1)
        case "previous":
            await _step(ctx, views, -1)
        case "stop":
            stop_agents(front, views)
        case "fold":
            if ctx.dock.agents is not None and ctx.dock.agents.display:
                ctx.dock.agents.fold()
            else:
                ctx.tell(NONE_AT_WORK)
        case _:
            await ctx.active.open(agent_named(front, views, argument, USAGE).id)


async def _choose(ctx: CommandContext, current: str) -> None:
    active = ctx.active
    conversation = active.conversation
    assert conversation is not None, "asked for with a conversation in view"
    sheet = AgentsSheet(
        active.services.engine,
        family_of(conversation),
        ctx.toasts,
        plain=active.launch.plain,
        current=current or conversation.id,
    )
    chosen = await ctx.sheets.show(sheet)
    if chosen and chosen.startswith(BESIDE):
        await split_with(ctx, chosen.removeprefix(BESIDE))
    elif chosen:
        await active.open(chosen)


async def _step(ctx: CommandContext, views: Sequence[AgentView], by: int) -> None:
    """Go to the next sub-agent; from their parent to the first, or the last, of those at work, else of all."""
    conversation = ctx.active.conversation
    assert conversation is not None, "asked for with a conversation in view"
    ids = [view.id for view in views]
    if conversation.id in ids:
        await ctx.active.open(ids[(ids.index(conversation.id) + by) % len(ids)])
    else:
        seen = [view.id for view in at_work(views)] or ids  # those with a row; earlier ones are behind them
        await ctx.active.open(seen[0 if by > 0 else -1])


async def run_approvals(ctx: CommandContext, _: str) -> None:
    """All of them, oldest first, to answer without going there."""
    engine = ctx.active.services.engine
    elsewhere = await list_asked_elsewhere(engine)
    if not pending(engine):
        ctx.tell("\n".join([NOTHING_WAITS, *elsewhere]))
        return
    sheet = ApprovalsSheet(engine, ctx.toasts, plain=ctx.active.launch.plain, elsewhere=elsewhere)
    if chosen := await ctx.sheets.show(sheet):
        await ctx.active.open(chosen)


async def run_jobs(ctx: CommandContext, _: str) -> None:
    """Background commands: read one, end one."""
    front = ScreenFrontEnd(ctx)
    found = jobs_in_view(front)
    if found is not None:
        await ctx.sheets.show(JobsSheet(found, front))


async def run_tasks(ctx: CommandContext, argument: str) -> None:
    """The board, one task of it, or a change of one; Enter on a message goes there."""
    front, order = ScreenFrontEnd(ctx), task_order(argument)
    board = await board_in_view(front)
    if order.changes:
        if said := await carry_out(front, board, order):
            ctx.tell(said)
        return
    if order.action == NEWEST_FIRST:
        await board.first_page()
    query = LOOSE if order.action == NO_TASK else ""
    plain = ctx.active.launch.plain
    sheet = TasksSheet(front, board, plain=plain, query=query, newest=order.action == NEWEST_FIRST)
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
