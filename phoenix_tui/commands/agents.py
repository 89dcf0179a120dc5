"""/agents: the sub-agents of the conversation in view, and the ways between them."""

from __future__ import annotations

from typing import Final

from phoenix_tui.commands.command_context import CommandContext, Run
from phoenix_tui.commands.panes import split_with
from phoenix_tui.features.sub_agents import at_work, family_of, parent_title, views_of
from phoenix_tui.modals.agents import BESIDE, AgentsSheet

NONE: Final = "This conversation has no sub-agents. The model starts them where a task falls into parts; ask it to."
USAGE: Final = "/agents takes next, previous, parent, stop, fold, or the id or the beginning of the task of one."


async def agents(bench: CommandContext, argument: str) -> None:
    """The list of all; or one by its id or task; or a way through them."""
    conversation = bench.desk.conversation
    if conversation is None:
        bench.tell(NONE)
        return
    word, _, which = argument.partition(" ")
    if word == "at":
        await _choose(bench, which)
        return
    match argument:
        case "":
            await _choose(bench)
        case "next":
            await _step(bench, 1)
        case "previous":
            await _step(bench, -1)
        case "parent":
            await _parent(bench)
        case "stop":
            _stop(bench)
        case "fold":
            _fold(bench)
        case _:
            await _named(bench, argument)


async def _choose(bench: CommandContext, current: str = "") -> None:
    desk = bench.desk
    conversation, engine = desk.conversation, desk.services.engine
    if conversation is None or engine.crew is None or not views_of(engine, family_of(conversation)):
        bench.tell(NONE)
        return
    sheet = AgentsSheet(
        engine, family_of(conversation), bench.tell, plain=desk.launch.plain, current=current or conversation.id
    )
    chosen = await bench.sheets.show(sheet)
    if chosen and chosen.startswith(BESIDE):
        await split_with(bench, chosen.removeprefix(BESIDE))
    elif chosen:
        await desk.open(chosen)


async def _step(bench: CommandContext, by: int) -> None:
    """To the next one; from their parent to the first, or the last, of those at work, else of all."""
    conversation = bench.desk.conversation
    assert conversation is not None, "asked for with a conversation in view"
    views = views_of(bench.desk.services.engine, family_of(conversation))
    if not views:
        bench.tell(NONE)
        return
    ids = [view.id for view in views]
    if conversation.id in ids:
        await bench.desk.open(ids[(ids.index(conversation.id) + by) % len(ids)])
    else:
        seen = [view.id for view in at_work(views)] or ids  # those that have a row; earlier ones are behind them
        await bench.desk.open(seen[0 if by > 0 else -1])


async def _parent(bench: CommandContext) -> None:
    conversation = bench.desk.conversation
    if conversation is None or conversation.record.agent is None:
        bench.tell("This is no sub-agent: it has no parent.")
        return
    await bench.desk.open(conversation.record.agent.parent_id)


def _stop(bench: CommandContext) -> None:
    """Stop all of them; their parent goes on with what they found."""
    conversation, engine = bench.desk.conversation, bench.desk.services.engine
    working = at_work(views_of(engine, family_of(conversation))) if conversation is not None else []
    if engine.crew is None or not working:
        bench.tell("No sub-agent is at work here.")
        return
    engine.crew.stop([view.id for view in working])
    bench.tell(f"{len(working)} stopped; what they found is kept.")


def _fold(bench: CommandContext) -> None:
    if bench.dock.agents is not None and bench.dock.agents.display:
        bench.dock.agents.fold()
    else:
        bench.tell("No sub-agent is at work here.")


async def _named(bench: CommandContext, words: str) -> None:
    conversation = bench.desk.conversation
    assert conversation is not None, "asked for with a conversation in view"
    engine = bench.desk.services.engine
    wanted = words.lower()
    found = [
        view
        for view in views_of(engine, family_of(conversation))
        if view.id.startswith(words) or view.task.lower().startswith(wanted)
    ]
    if len(found) == 1:
        await bench.desk.open(found[0].id)
    elif not found:
        bench.tell(f"No sub-agent of {_whose(bench)} is called {words}. {USAGE}", bad=True)
    else:
        bench.tell(f"{len(found)} sub-agents begin so: /agents lists them.", bad=True)


def _whose(bench: CommandContext) -> str:
    conversation, engine = bench.desk.conversation, bench.desk.services.engine
    if conversation is None or conversation.record.agent is None:
        return "this conversation"
    return parent_title(conversation.record, engine)


RUNS: Final[dict[str, Run]] = {"agents": agents}
