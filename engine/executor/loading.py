"""Calls that load a skill: its shell lines pass the policy, its rules are asked about, and it is loaded once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from engine.executor.approving import denials_of, limits_of, place_of, rules_of
from engine.executor.session import Session
from engine.extensions.bodies import BASH, request_of
from engine.machine.messages import ToolResultBlock, text_in
from engine.permissions.policy import Allow, Ask, Decision, Deny, Limits, decide, leaves_sandbox
from engine.permissions.rules import parse_rule
from engine.permissions.shell_programs import programs_in
from engine.records import StoredMessage
from tools.contract import JsonObject, PathOrder, Sandbox, ToolContext, ToolInputError, ToolOutput, ToolRequest
from tools.process.programs import program_facts
from tools.wording import one_line

LOADED: Final = "It is already loaded, with the same text; follow it as it stands above."
RULES: Final = "it asks that these run without a question until the run ends: {rules}"
REFUSED: Final = "Not loaded: its shell line `{line}` was refused. {reason}"
SPAWN: Final = "spawn_agents"
NO_AGENT: Final = "Not loaded: a sub-agent would work on it. {reason}"
NO_SPAWN: Final = "There are no sub-agents here."
NOT_STARTED: Final = "skill: its sub-agent could not be started."
NO_BASH: Final = "Not loaded: it has shell lines, and there is no bash here."
SHOWN_OF_LINE: Final = 200


def decide_lines(session: Session, request: ToolRequest, limits: Limits, allowed: Allow) -> Decision:
    """Decide about the shell lines and rules of a load that is `allowed` otherwise: one refusal refuses it whole."""
    if not request.lines and not request.preapproves and not request.forks:
        return allowed
    reasons: list[str] = []
    for line, decision in line_decisions(session, request.lines, limits):
        if isinstance(decision, Deny):
            return Deny(REFUSED.format(line=one_line(line, SHOWN_OF_LINE), reason=decision.text))
        if isinstance(decision, Ask) and decision.reason not in reasons:
            reasons.append(decision.reason)
    if request.forks:
        spawning = _spawning(session, request, limits)
        if isinstance(spawning, Deny):
            return Deny(NO_AGENT.format(reason=spawning.text))
        reasons += [spawning.reason] if isinstance(spawning, Ask) else []
    if why := why_asks_rules(session, request.summary, request.preapproves, limits):
        reasons.append(why)
    return Ask("; ".join(reasons), allowed, lasting=False) if reasons else allowed


def line_decisions(session: Session, lines: Sequence[str], limits: Limits) -> Iterator[tuple[str, Decision]]:
    """The decision of the policy about each line, as if the model called bash with it."""
    if not lines:
        return
    bash = session.ports.tools.get(BASH)
    if bash is None or (session.profile is not None and not session.profile.allows(BASH)):
        yield lines[0], Deny(NO_BASH)
        return
    place, rules, denials = place_of(session), rules_of(session), denials_of(session)
    for line in lines:
        request = with_programs(request_of(line), limits, session.record.cwd)
        yield line, decide(bash.spec, request, limits, place, rules, denials=denials)


def with_programs(request: ToolRequest, limits: Limits, folder: Path) -> ToolRequest:
    """A request with the programs that its command names, where they would run outside of a sandbox."""
    if limits.unattended or not leaves_sandbox(request, limits):
        return request
    order = PathOrder.LAST if limits.confines else PathOrder.AS_GIVEN
    names = (words[0].text for words in programs_in(request.command).commands if words[0].is_known)
    return replace(request, programs=program_facts(names, folder, order))


def why_asks_rules(session: Session, name: str, rules: Sequence[str], limits: Limits) -> str:
    """Reason to ask about rules that a file would have; empty where the user agreed before, or no rule would count."""
    if not rules or limits.unattended or (name, *rules) in session.preapproved:
        return ""
    return RULES.format(rules=", ".join(rules))


def _spawning(session: Session, request: ToolRequest, limits: Limits) -> Decision:
    """The decision about the sub-agent that works on a skill."""
    tool = session.tools.get(SPAWN)
    if tool is None:
        return Deny(NO_SPAWN)
    asked = ToolRequest(request.summary)
    return decide(tool.spec, asked, limits, place_of(session), rules_of(session), denials=denials_of(session))


async def with_agent(session: Session, output: ToolOutput, context: ToolContext) -> ToolOutput:
    """The output, where it is a task with the sub-agent that was started for it.

    A profile that is not there is left out: skills of other programs name theirs.
    """
    tool = session.tools.get(SPAWN)
    if output.task is None or tool is None:
        return output
    plain: JsonObject = {key: value for key, value in output.task.items() if key != "profile"}
    for task in (output.task, plain):
        args: JsonObject = {"tasks": [task]}
        try:
            await tool.request(args, context.working_dir)
        except ToolInputError:
            continue
        return await tool.run(args, context)
    return ToolOutput(NOT_STARTED, is_error=True)


async def begin_load(session: Session, request: ToolRequest) -> tuple[Sandbox, ...]:
    """Let the rules of an allowed load count until the run ends; the sandbox of each of its lines."""
    limits = await limits_of(session)
    sandboxes = tuple(sandbox_of(decision) for _, decision in line_decisions(session, request.lines, limits))
    if request.preapproves and not limits.unattended:
        session.preapproved.add((request.summary, *request.preapproves))
        found = (parse_rule(text) for text in request.preapproves)
        session.run.rules = tuple(dict.fromkeys((*session.run.rules, *(rule for rule in found if rule is not None))))
    return sandboxes


def sandbox_of(decision: Decision) -> Sandbox:
    """Limits of a line that the user, a rule or the mode allowed.

    Raises:
        ToolInputError: by now it would be refused.
    """
    match decision:
        case Allow(sandbox=sandbox):
            return sandbox
        case Ask(grant=grant):
            return grant.sandbox
        case Deny(text):
            raise ToolInputError(text)


async def already_loaded(session: Session, request: ToolRequest) -> ToolOutput | None:
    """The answer to a load of a text that the model still has; None where it has it not.

    The rules of the skill count again; shell lines may say something else by now.
    """
    if not request.loads or request.lines or request.forks:
        return None
    rows = await session.rows()
    if request.loads in session.record.summary or any(_has(row, request.loads) for row in rows):
        await begin_load(session, request)
        return ToolOutput(LOADED)
    return None


def _has(row: StoredMessage, opening: str) -> bool:
    return any(
        isinstance(block, ToolResultBlock) and text_in(block.content).startswith(opening) for block in row.blocks
    )
