"""Texts about sub-agents, supervisors, background commands and messages, in lines."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import Final

from msgspec import Struct

from engine.context.assemble import MOST, words_length
from engine.machine.effects import Strategy
from engine.machine.messages import Origin, ToolUseBlock
from engine.machine.states import AgentStatus
from engine.records import ConversationRecord, RunPriority, StoredMessage
from engine.records.runs import Totals
from engine.updates import AgentView, Route, RouteCard
from phoenix_tui.text.labels import clock, money
from tools import wording
from tools.clean import clean_line
from tools.contract import AgentEnd, JobInfo, JsonObject, JsonValue
from tools.wording import one_line, pluralize

SUBMISSIONS: Final = {"submit_result": "result", "submit_error": "error"}
"""The calls that end a sub-agent, and the argument with its result."""
LONGEST: Final = 80
"""Characters of a task in a line."""
ENDS: Final = {
    AgentStatus.SUCCESS: "done",
    AgentStatus.FAILURE: "failed",
    AgentStatus.CANCELLED: "stopped",
    AgentStatus.TIMEOUT: "timed out",
}


MARKS: Final = r"^\s*(?:#{1,6}\s+|>\s*|[-*+]\s+)+|`{3,}.*|`|\*\*(?=\S)|(?<=\S)\*\*"
"""Markup that Markdown puts before a line and round words, and a line that begins code; compiled with the first of
them.
"""


class AgentNews(Struct, frozen=True):
    """Changes among the sub-agents of a conversation."""

    began: tuple[AgentView, ...] = ()
    ended: tuple[AgentView, ...] = ()


def news(before: Sequence[AgentView], after: Sequence[AgentView]) -> AgentNews:
    """Sub-agents that started or resumed, and those that ended since `before`."""
    known = {view.id: view for view in before}
    began = tuple(
        view for view in after if view.outcome is None and (view.id not in known or known[view.id].outcome is not None)
    )
    ended = tuple(
        view for view in after if view.outcome is not None and view.id in known and known[view.id].outcome is None
    )
    return AgentNews(began, ended)


def task_words(task: str) -> str:
    return one_line(clean_line(task), LONGEST)


def read_submission(call: ToolUseBlock) -> str:
    """Text that a sub-agent submits with this call, usually Markdown; empty for every other call."""
    field = SUBMISSIONS.get(call.name)
    if field is None:
        return ""
    try:
        arguments: JsonValue = json.loads(call.input_json or "{}")
    except (ValueError, RecursionError):
        return ""
    said = arguments.get(field) if isinstance(arguments, dict) else None
    return said.strip() if isinstance(said, str) else ""


def first_line(text: str) -> str:
    """The first line that says something, cleaned and without the marks of Markdown."""
    lines = (re.sub(MARKS, "", line).strip() for line in text.splitlines())
    return clean_line(next((line for line in lines if line), ""))


def is_good(end: AgentEnd) -> bool:
    return end.status == AgentStatus.SUCCESS.value


def count_successes(ends: Sequence[AgentEnd]) -> str:
    good, count = sum(map(is_good, ends)), len(ends)
    if good == count:
        return f"{count_agents(good)} succeeded"
    return f"{good} of {count_agents(count)} succeeded"


def end_words(reason: str, text: str) -> str:
    """The first line of a result, or why there is none."""
    said = first_line(text)
    if not reason:
        return said or "done"
    return f"{first_line(reason)} (partial kept)" if said else first_line(reason)


def count_agents(number: int) -> str:
    return wording.pluralize(number, "sub-agent")


def began_line(views: Sequence[AgentView]) -> str:
    return f"{count_agents(len(views))} started: {'; '.join(task_words(view.task) for view in views)}"


def describe_end(view: AgentView) -> str:
    outcome = view.outcome
    if outcome is None:
        return ""
    ended = ENDS[outcome.status]
    why = f": {clean_line(outcome.reason)}" if outcome.status is AgentStatus.FAILURE and outcome.reason else ""
    return f"Sub-agent {ended}: {task_words(view.task)}{why}"


def cost_lines(record: ConversationRecord, views: Sequence[AgentView]) -> list[str]:
    """Cost of a conversation itself and of each of its sub-agents; empty without any."""
    if not views and record.agents_totals == Totals():
        return []
    own, together = (money(one.cost_usd) or "$0.00" for one in (record.totals, record.agents_totals))
    lines = [f"{own} itself, {together} its sub-agents"]
    return lines + [f"{money(one.cost_usd) or '$0.00'} {task_words(one.task)} ({one.profile})" for one in views]


NOTHING_RUNS: Final = "Nothing is running."
RUNS_ON: Final = "It continues in the background; /jobs lists it."


def how_it_stands(job: JobInfo) -> str:
    """State of a job: running and for how long, or its end."""
    return f"running {clock(job.elapsed)}" if job.running else f"{describe_exit(job)} after {clock(job.elapsed)}"


def describe_exit(job: JobInfo) -> str:
    """Exit code of a job; a killed one has none."""
    return "killed" if job.exit_code is None else f"exit {job.exit_code}"


def running(jobs: Iterable[JobInfo]) -> int:
    return sum(job.running for job in jobs)


def find_ended(before: Iterable[JobInfo], now: Sequence[JobInfo]) -> list[JobInfo]:
    ran = {job.id for job in before if job.running}
    return [job for job in now if job.id in ran and not job.running]


def leaving_question(runs: int, jobs: int) -> str:
    """Question to a user who quits during runs or jobs; empty without any."""
    if not runs and not jobs:
        return ""
    active = [pluralize(runs, "run")] if runs else []
    active += [pluralize(jobs, "background command")] if jobs else []
    one = runs + jobs == 1
    which = "all" if runs and jobs else "it" if one else "them"
    return f"{' and '.join(active)} {'is' if one else 'are'} still active. Quit and stop {which}?"


def end_line(job: JobInfo) -> str:
    return f"Background command ended, {describe_exit(job)}: {clean_line(job.command)}"


def marks(message: StoredMessage) -> list[str]:
    """Remarks for the chips of a message; none for most."""
    if message.origin is not Origin.HUMAN:
        return []
    found: list[str] = []
    if message.suspected:
        found.append(f"looks like an injection: {clean_line(', '.join(message.suspected))}")
    if (length := words_length(message.blocks)) > MOST:
        found.append(f"cut to {MOST:,} of {length:,} characters for the model")
    return found


INIT_ORDERS: Final = tuple(
    f"{verb} AGENTS.md in the working directory: instructions for agents that work on this project."
    for verb in ("Write", "Improve the existing")
)
"""Beginnings of the request of `/init`: for a new file, and for one that exists."""


def is_init_request(text: str) -> bool:
    """True for the words of `/init`, which are not the user's own."""
    return text.startswith(INIT_ORDERS)


STRATEGIES: Final = {
    Strategy.SINGLE: "the main model alone",
    Strategy.PARALLEL: "agents in parallel",
    Strategy.SEQUENTIAL: "agents in sequence",
    Strategy.DELEGATE: "one agent",
}


def strategy_words(strategy: Strategy, count: int) -> str:
    return f"{count} {STRATEGIES[strategy]}" if count > 1 else STRATEGIES[strategy]


def route_line(route: Route) -> str:
    agents = "; ".join(f"{clean_line(agent.profile)}: {clean_line(agent.task)}" for agent in route.agents)
    return f"{strategy_words(route.strategy, len(route.agents))} ({route.confidence:.0%} sure): {agents}"


def route_object(route: Route) -> JsonObject:
    """A decision for scripts (SPEC SDK-09)."""
    agents: list[JsonValue] = [
        {"profile": one.profile, "task": one.task, "priority": one.priority.value} for one in route.agents
    ]
    return {
        "strategy": route.strategy.value,
        "agents": agents,
        "reasoning": route.reasoning,
        "confidence": route.confidence,
    }


def card_lines(card: RouteCard, now: float) -> list[str]:
    """A decision to be read line by line."""
    route = card.route
    words = strategy_words(route.strategy, len(route.agents))
    lines = [f"The supervisor proposes {words}, {route.confidence:.0%} sure."]
    for place, agent in enumerate(route.agents, 1):
        urgent = "" if agent.priority is RunPriority.NORMAL else f", {agent.priority.value} priority"
        lines.append(f"Agent {place}, {clean_line(agent.profile)}{urgent}: {clean_line(agent.task)}")
    if route.reasoning:
        lines.append(f"Because: {clean_line(route.reasoning)}")
    left = max(int(card.starts_at - now) + 1, 0)
    when = f"They start in {left} s." if card.starts_at else "They wait for your decision."
    return [*lines, f"{when} /route start starts them now, /route alone answers without them."]
