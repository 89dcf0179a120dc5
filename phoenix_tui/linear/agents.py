"""The sub-agents of the conversation: their work, results and actions."""

from __future__ import annotations

import time
from typing import Final

from engine.api.engine import NEWEST
from engine.machine.states import AwaitingApproval, Cancelling
from engine.updates import AgentView
from phoenix_tui.features.agents import agent_named, send_hint, stop_agents, views_in_view
from phoenix_tui.features.route import route
from phoenix_tui.linear.context import LinearContext, LineCommand
from phoenix_tui.linear.message_lines import message_lines, message_text, speaker
from phoenix_tui.text.agent_text import ENDS, count_agents, task_words
from phoenix_tui.text.labels import clock, money, tokens
from tools.clean import clean_line

MESSAGES: Final = 200
"""Messages of a sub-agent's transcript that are printed."""
SILENT_FROM: Final = 20.0
"""Seconds without output from which the silence is shown."""
USAGE: Final = "Give stop, or an id or the start of a task."
READ, HINT, STOP = "Read what it did", "Send it a hint", "Stop it"


async def _agents(ctx: LinearContext, argument: str) -> None:
    views = views_in_view(ctx)
    if not views:
        return
    if argument == "stop":
        stop_agents(ctx, views)
    elif argument:
        await _one(ctx, agent_named(ctx, views, argument, USAGE))
    else:
        now = time.time()
        chosen = await ctx.choose(f"{count_agents(len(views))}:", [row(view, now) for view in views])
        if chosen is not None:
            await _one(ctx, views[chosen])


async def _one(ctx: LinearContext, view: AgentView) -> None:
    actions = [READ, HINT, *([STOP] if view.outcome is None else [])]
    action = await ctx.choose(f"{task_words(view.task)}:", actions)
    match actions[action] if action is not None else "":
        case "Read what it did":
            await _read(ctx, view)
        case "Send it a hint":
            await send_hint(ctx, view)
        case "Stop it":
            stop_agents(ctx, [view])
        case _:
            pass  # none was wanted


async def _read(ctx: LinearContext, view: AgentView) -> None:
    conversation = await ctx.services.engine.open(view.id)
    found = await conversation.history(NEWEST, MESSAGES)
    for message in found.messages:
        text = message_text(message)
        ctx.say(*(message_lines(speaker(message), text) if text.strip() else ()))
    if view.outcome is not None:
        ctx.say(f"Ended: {ENDS[view.outcome.status]}.", *view.outcome.text.splitlines())


def row(view: AgentView, now: float) -> str:
    """One sub-agent in words: its task, its state, and its usage; `now` is wall clock."""
    parts = [task_words(view.task), view.profile, _stands(view)]
    parts += [f"turn {view.turn} of {view.max_turns}"] if view.turn else []
    limit = f" of {clock(view.timeout).removesuffix(' 0 s')}" if view.timeout and view.outcome is None else ""
    end = view.asked or view.ended or now
    parts += [f"{clock(max(end - view.started, 0.0))}{limit}"] if view.started else []
    parts += [f"{tokens(view.tokens)} tokens"] if view.tokens else []
    parts += [money(view.cost_usd)] if money(view.cost_usd) else []
    parts.append(f"model {view.model}")
    silent = now - view.last_output if view.last_output and _is_heard(view) else 0.0
    parts += [f"silent for {clock(silent)}"] if silent >= SILENT_FROM else []
    return ", ".join(clean_line(part) for part in parts)


def _is_heard(view: AgentView) -> bool:
    """True when output is expected: it works, and does not wait for the user."""
    return view.outcome is None and not view.waits and not isinstance(view.state, AwaitingApproval)


def _stands(view: AgentView) -> str:
    if view.outcome is not None:
        return ENDS[view.outcome.status]
    if isinstance(view.state, AwaitingApproval):
        return "needs your answer"
    if isinstance(view.state, Cancelling):
        return "stops"
    if view.waits:
        return "waiting to start"
    return f"runs {view.activity}" if view.activity else "thinks"


RUNS: Final[dict[str, LineCommand]] = {"agents": _agents, "route": route}
