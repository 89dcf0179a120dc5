"""/agents: the sub-agents of the conversation in view, and the ways between them."""

from __future__ import annotations

from typing import Final

from phoenix_tui.commands.command_context import CommandContext, Run
from phoenix_tui.commands.panes import split_with
from phoenix_tui.features.sub_agents import at_work, family_of, parent_title, views_of
from phoenix_tui.modals.agents_sheet import BESIDE, AgentsSheet

NONE: Final = "This conversation has no sub-agents. The model starts them where a task falls into parts; ask it to."
USAGE: Final = "/agents takes next, previous, parent, stop, fold, or the id or the beginning of the task of one."


async def agents(ctx: CommandContext, argument: str) -> None:
    """The list of all; or one by its id or task; or a way through them."""
    conversation = ctx.active.conversation
    if conversation is None:
        ctx.tell(NONE)
        return
    word, _, which = argument.partition(" ")
    if word == "at":
        await _choose(ctx, which)
        return
    match argument:
        case "":
            await _choose(ctx)
        case "next":
            await _step(ctx, 1)
        case "previous":
            await _step(ctx, -1)
        case "parent":
            await _parent(ctx)
        case "stop":
            _stop(ctx)
        case "fold":
            _fold(ctx)
        case _:
            await _named(ctx, argument)


async def _choose(ctx: CommandContext, current: str = "") -> None:
    active = ctx.active
    conversation, engine = active.conversation, active.services.engine
    if conversation is None or engine.sub_agents is None or not views_of(engine, family_of(conversation)):
        ctx.tell(NONE)
        return
    sheet = AgentsSheet(
        engine, family_of(conversation), ctx.tell, plain=active.launch.plain, current=current or conversation.id
    )
    chosen = await ctx.sheets.show(sheet)
    if chosen and chosen.startswith(BESIDE):
        await split_with(ctx, chosen.removeprefix(BESIDE))
    elif chosen:
        await active.open(chosen)


async def _step(ctx: CommandContext, by: int) -> None:
    """To the next one; from their parent to the first, or the last, of those at work, else of all."""
    conversation = ctx.active.conversation
    assert conversation is not None, "asked for with a conversation in view"
    views = views_of(ctx.active.services.engine, family_of(conversation))
    if not views:
        ctx.tell(NONE)
        return
    ids = [view.id for view in views]
    if conversation.id in ids:
        await ctx.active.open(ids[(ids.index(conversation.id) + by) % len(ids)])
    else:
        seen = [view.id for view in at_work(views)] or ids  # those that have a row; earlier ones are behind them
        await ctx.active.open(seen[0 if by > 0 else -1])


async def _parent(ctx: CommandContext) -> None:
    conversation = ctx.active.conversation
    if conversation is None or conversation.record.agent is None:
        ctx.tell("This is no sub-agent: it has no parent.")
        return
    await ctx.active.open(conversation.record.agent.parent_id)


def _stop(ctx: CommandContext) -> None:
    """Stop all of them; their parent goes on with what they found."""
    conversation, engine = ctx.active.conversation, ctx.active.services.engine
    working = at_work(views_of(engine, family_of(conversation))) if conversation is not None else []
    if engine.sub_agents is None or not working:
        ctx.tell("No sub-agent is at work here.")
        return
    engine.sub_agents.stop([view.id for view in working])
    ctx.tell(f"{len(working)} stopped; what they found is kept.")


def _fold(ctx: CommandContext) -> None:
    if ctx.dock.agents is not None and ctx.dock.agents.display:
        ctx.dock.agents.fold()
    else:
        ctx.tell("No sub-agent is at work here.")


async def _named(ctx: CommandContext, words: str) -> None:
    conversation = ctx.active.conversation
    assert conversation is not None, "asked for with a conversation in view"
    engine = ctx.active.services.engine
    wanted = words.lower()
    found = [
        view
        for view in views_of(engine, family_of(conversation))
        if view.id.startswith(words) or view.task.lower().startswith(wanted)
    ]
    if len(found) == 1:
        await ctx.active.open(found[0].id)
    elif not found:
        ctx.tell(f"No sub-agent of {_whose(ctx)} is called {words}. {USAGE}", bad=True)
    else:
        ctx.tell(f"{len(found)} sub-agents begin so: /agents lists them.", bad=True)


def _whose(ctx: CommandContext) -> str:
    conversation, engine = ctx.active.conversation, ctx.active.services.engine
    if conversation is None or conversation.record.agent is None:
        return "this conversation"
    return parent_title(conversation.record, engine)


RUNS: Final[dict[str, Run]] = {"agents": agents}
