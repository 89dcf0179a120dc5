"""Texts about sub-agents in lines: starts, ends and outcomes."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from engine.machine.messages import ToolUseBlock
from engine.machine.states import AgentStatus
from engine.records import ConversationRecord
from engine.records.totals import Totals
from engine.updates import AgentView
from phoenix_tui.text.labels import money
from tools import wording
from tools.clean import clean_line
from tools.contract import AgentEnd, JsonValue
from tools.wording import one_line

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
    """A task in one line, cut."""
    return one_line(clean_line(task), LONGEST)


def handed_in(call: ToolUseBlock) -> str:
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
    """True for a successful end."""
    return end.status == AgentStatus.SUCCESS.value


def succeeded(ends: Sequence[AgentEnd]) -> str:
    """Number of successful ends, in words."""
    good, count = sum(map(is_good, ends)), len(ends)
    if good == count:
        return f"{counted(good)} succeeded"
    return f"{good} of {counted(count)} succeeded"


def end_words(reason: str, text: str) -> str:
    """The first line of a result, or why there is none."""
    said = first_line(text)
    if not reason:
        return said or "done"
    return f"{first_line(reason)} (partial kept)" if said else first_line(reason)


def counted(number: int) -> str:
    """Number of sub-agents in words."""
    return wording.counted(number, "sub-agent")


def began_line(views: Sequence[AgentView]) -> str:
    """Tasks of the starting sub-agents, in one line."""
    return f"{counted(len(views))} started: {'; '.join(task_words(view.task) for view in views)}"


def ended_line(view: AgentView) -> str:
    """Outcome of one sub-agent."""
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
    together = record.agents_totals
    lines = [f"{_price(record.totals.cost_usd)} itself, {_price(together.cost_usd)} its sub-agents"]
    return lines + [f"{_price(view.cost_usd)} {task_words(view.task)} ({view.profile})" for view in views]


def _price(cost: float | None) -> str:
    return money(cost) or "$0.00"
