"""Texts about sub-agents that models read (SPEC T-AGG, T-CMP, STM-09). Byte-stable."""

from __future__ import annotations

from collections.abc import Sequence

from engine.machine.states import AgentOutcome, AgentStatus, AgentTask
from tools.contract import AgentEnd
from tools.wording import one_line

NUDGE = "Call submit_result with your findings."
ONLY_TOOL = "submit_result must be the only tool in response"
SUBMITTED = "Submitted."
GRACE = "[Your model calls are used up. Call submit_result now with what you have, or submit_error; nothing else runs.]"

CANCELLED = "cancelled"
INTERRUPTED = "interrupted"
TIMED_OUT = "timed out"
NO_SUBMISSION = "no result submitted"
TURN_LIMIT = "turn limit reached"
NO_CONTEXT = "context exhausted before result submission"
"""Reason of a sub-agent's failure, as its parent reads it."""

LONGEST_TASK = 200
LONGEST_RESULT = 32_768
"""Characters of a task in a heading, and of one result in an aggregate; its transcript keeps the whole."""
BEGINNING = 500
"""Characters of a result that are kept for its row."""


def bad_submission(tool: str, field: str) -> str:
    """The error result of a submission that says nothing."""
    return f'{tool} needs one argument: {{"{field}": "..."}} with a text that is not empty'


def aggregate(agents: Sequence[AgentTask], outcomes: Sequence[AgentOutcome], unfinished: str = "") -> str:
    """The result of a spawn call, in request order; `unfinished` is the reason given for agents without an outcome."""
    all_of_them = _order_outcomes(agents, outcomes, unfinished)
    succeeded = sum(outcome.status is AgentStatus.SUCCESS for outcome in all_of_them)
    parts = [f"Sub-agent results ({succeeded} of {len(agents)} succeeded):"]
    for number, (agent, outcome) in enumerate(zip(agents, all_of_them, strict=True), 1):
        ended = "success" if outcome.status is AgentStatus.SUCCESS else f"failed: {outcome.reason}"
        heading = f"## {number}. {heading_of(agent.task)} — {ended} [{agent.id}]"
        parts.append(f"{heading}\n{_limit_result(outcome.text)}" if outcome.text else heading)
    return "\n\n".join(parts)


def ends(agents: Sequence[AgentTask], outcomes: Sequence[AgentOutcome], unfinished: str = "") -> tuple[AgentEnd, ...]:
    """The same as values, for the screen."""
    return tuple(
        AgentEnd(
            agent.id,
            heading_of(agent.task),
            outcome.status.value,
            outcome.reason,
            outcome.text[:BEGINNING],
            outcome.turns,
            outcome.seconds,
        )
        for agent, outcome in zip(agents, _order_outcomes(agents, outcomes, unfinished), strict=True)
    )


def _order_outcomes(
    agents: Sequence[AgentTask], outcomes: Sequence[AgentOutcome], unfinished: str
) -> Sequence[AgentOutcome]:
    known = {outcome.agent_id: outcome for outcome in outcomes}
    missing = AgentStatus.FAILURE if unfinished == INTERRUPTED else AgentStatus.CANCELLED
    return [known.get(agent.id) or AgentOutcome(agent.id, missing, reason=unfinished) for agent in agents]


def completion(child_id: str, outcome: AgentOutcome, turns: int, tool_iterations: int) -> str:
    """The message a background sub-agent's parent gets at its end (SPEC T-CMP)."""
    succeeded = outcome.status is AgentStatus.SUCCESS
    ended = "has completed successfully" if succeeded else f"has failed: {outcome.reason}"
    lines = [
        f"[SYSTEM] Child task {child_id} {ended}.",
        f"Ran {turns} turns with {tool_iterations} tool iterations.",
        f"You can continue the conversation by calling spawn_task with task_id='{child_id}' and a new message.",
    ]
    if succeeded or outcome.text:
        lines += ["", "Final response from child:" if succeeded else "Partial output from child:"]
        lines.append(_limit_result(outcome.text))
    return "\n".join(lines)


def heading_of(task: str) -> str:
    """Shorten a task for a heading."""
    return one_line(task, LONGEST_TASK)


def _limit_result(text: str) -> str:
    if len(text) <= LONGEST_RESULT:
        return text
    return f"{text[:LONGEST_RESULT]}\n[cut here: {len(text):,} characters in all; the sub-agent's transcript has them]"
