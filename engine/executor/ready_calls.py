"""Calls before they run: tool, arguments, request, and the decision about them; loads of skills included."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, cast

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from engine.executor.approving import decide_approved, denials_of, limits_of, place_of, rules_of
from engine.executor.call_hooks import CallOpinion, apply_opinion
from engine.executor.equipment import tools_of
from engine.executor.session import Session
from engine.extensions.skills import BASH, request_of
from engine.machine.effects import ExecTool
from engine.machine.messages import Block, Origin, TextBlock, ToolCall, ToolResultBlock, ToolUseBlock, text_in
from engine.machine.states import ToolExecuting, ToolOrigin
from engine.permissions.policy import Allow, Ask, Decision, Deny, Limits, decide, leaves_sandbox, may_read
from engine.permissions.rules import WEB, is_server_tool, parse_rule
from engine.permissions.shell_programs import programs_in
from engine.ports.profiles import SPAWN_TOOLS
from engine.records import StoredMessage
from tools.aliases import NATIVE, WITHOUT, from_foreign, native_name
from tools.contract import JsonObject, PathOrder, Sandbox, Tool, ToolContext, ToolInputError, ToolOutput, ToolRequest
from tools.process.programs import program_facts
from tools.tool_search import NAME as TOOL_SEARCH
from tools.web.contract import extract_known_text
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
    for line, decision in decide_each_line(session, request.lines, limits):
        if isinstance(decision, Deny):
            return Deny(REFUSED.format(line=one_line(line, SHOWN_OF_LINE), reason=decision.text))
        if isinstance(decision, Ask) and decision.reason not in reasons:
            reasons.append(decision.reason)
    if request.forks:
        spawning = _decide_spawn(session, request, limits)
        if isinstance(spawning, Deny):
            return Deny(NO_AGENT.format(reason=spawning.text))
        reasons += [spawning.reason] if isinstance(spawning, Ask) else []
    if why := explain_rules(session, request.summary, request.preapproves, limits):
        reasons.append(why)
    return Ask("; ".join(reasons), allowed, lasting=False) if reasons else allowed


def decide_each_line(session: Session, lines: Sequence[str], limits: Limits) -> Iterator[tuple[str, Decision]]:
    """The decision of the policy about each line, as if the model called bash with it."""
    if not lines:
        return
    bash = session.ports.tools.get(BASH)
    if bash is None or (session.equipment.profile is not None and not session.equipment.profile.allows(BASH)):
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


def explain_rules(session: Session, name: str, rules: Sequence[str], limits: Limits) -> str:
    """Reason to ask about rules that a file would have; empty where the user agreed before, or no rule would count."""
    if not rules or limits.unattended or (name, *rules) in session.questions.preapproved:
        return ""
    return RULES.format(rules=", ".join(rules))


def _decide_spawn(session: Session, request: ToolRequest, limits: Limits) -> Decision:
    """The decision about the sub-agent that works on a skill."""
    tool = session.equipment.tools.get(SPAWN)
    if tool is None:
        return Deny(NO_SPAWN)
    asked = ToolRequest(request.summary)
    return decide(tool.spec, asked, limits, place_of(session), rules_of(session), denials=denials_of(session))


async def start_agent(session: Session, output: ToolOutput, context: ToolContext) -> ToolOutput:
    """The output, where it is a task with the sub-agent that was started for it.

    A profile that is not there is left out: skills of other programs name theirs.
    """
    tool = session.equipment.tools.get(SPAWN)
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
    sandboxes = tuple(sandbox_of(decision) for _, decision in decide_each_line(session, request.lines, limits))
    if request.preapproves and not limits.unattended:
        session.questions.preapproved.add((request.summary, *request.preapproves))
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


async def answer_repeated_load(session: Session, request: ToolRequest) -> ToolOutput | None:
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


async def with_known_url(session: Session, request: ToolRequest) -> ToolRequest:
    """The request, marked where it asks a URL that nothing before has named."""
    if not request.url or is_known(request.url, await session.rows()):
        return request
    return replace(request, is_new_url=True)


def is_known(url: str, rows: Sequence[StoredMessage]) -> bool:
    """True where a URL stands in a message of the user or a result of a web tool, with or without its scheme."""
    wanted = url.partition("://")[2].rstrip("/")
    return any(wanted in text for text in _read_seen_texts(rows))


def _read_seen_texts(rows: Sequence[StoredMessage]) -> Iterator[str]:
    calls = (block for row in rows for block in row.blocks if isinstance(block, ToolUseBlock))
    web = {block.id: block.name for block in calls if block.name in WEB}
    for row in rows:
        for block in row.blocks:
            if isinstance(block, ToolResultBlock) and block.tool_use_id in web:
                yield extract_known_text(web[block.tool_use_id], text_in(block.content))
            elif isinstance(block, TextBlock) and row.origin is Origin.HUMAN:
                yield block.text


def parse_arguments(text: str) -> JsonObject:
    """The arguments of a call as a JSON object.

    Raises:
        ToolInputError: they are not one; the text says why.
    """
    raw = text.encode("utf-8", "replace") if text.strip() else b"{}"
    try:
        return cast("JsonObject", msgspec.json.decode(raw, type=dict[str, Any]))
    except (msgspec.DecodeError, RecursionError) as error:
        reason = "nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise ToolInputError(f"the arguments are not one JSON object ({reason}).") from error


def translate_calls(blocks: tuple[Block, ...], tools: Collection[str], cwd: Path) -> tuple[Block, ...]:
    """The reply with its calls under the native names and fields of `tools`, as they are stored, shown and run.

    A call without a native form keeps its name; `why_not_native` has the sentence for its result.
    """
    return tuple(_translate(block, tools, cwd) if isinstance(block, ToolUseBlock) else block for block in blocks)


def find_offered_name(name: str, tools: Collection[str]) -> str:
    """The name of the tool that a call under `name` is for."""
    native = native_name(name)
    return native if name not in tools and native in tools else name


def explain_not_native(name: str, input_json: str, cwd: Path) -> str:
    """Reason why a call under a foreign name has no native form; empty where it has one, and for other names."""
    if name not in NATIVE and name not in WITHOUT:
        return ""
    try:
        from_foreign(name, parse_arguments(input_json), cwd)
    except ToolInputError as error:
        return str(error)
    return ""


def _translate(block: ToolUseBlock, tools: Collection[str], cwd: Path) -> ToolUseBlock:
    name = find_offered_name(block.name, tools)
    if name not in tools or name in NATIVE:  # a tool on offer may have a foreign name
        return block
    try:
        args = parse_arguments(block.input_json)
    except ToolInputError:
        return replace(block, name=name)  # the tool says what is wrong with them
    try:
        call = from_foreign(block.name, args, cwd)
    except ToolInputError:
        return block
    if call.name not in tools or (call.name == block.name and call.input == args):
        return block
    return ToolUseBlock(block.id, call.name, msgspec.json.encode(call.input).decode())


class ReadyCall(Struct, frozen=True):
    """A call whose arguments make sense."""

    tool: Tool
    args: JsonObject
    request: ToolRequest


def is_typed(session: Session) -> bool:
    """True for a command line of the user's own."""
    state = session.state
    return isinstance(state, ToolExecuting) and state.round.origin is ToolOrigin.USER


async def prepare(session: Session, call: ToolCall) -> ReadyCall:
    """The tool of a call, its arguments, and its request.

    Raises:
        ToolInputError: there is no such tool, or its arguments are invalid.
    """
    tool = tools_of(session).get(call.name)
    if tool is None:
        why = explain_not_native(call.name, call.input_json, session.record.cwd)
        raise ToolInputError(why or _explain_missing(session, call.name))
    args = parse_arguments(call.input_json)
    request = await with_known_url(session, await tool.request(args, session.record.cwd))
    if request.command:
        limits = await limits_of(session)
        request = await asyncio.to_thread(with_programs, request, limits, session.record.cwd)
    return ReadyCall(tool, args, request)


def _explain_missing(session: Session, name: str) -> str:
    """Reason why its model has no such tool."""
    there = f"There are: {', '.join(tools_of(session))}"
    name = native_name(name)
    if is_server_tool(name) and TOOL_SEARCH in tools_of(session):
        return f"this tool is not loaded; call {TOOL_SEARCH} with the query 'select:{name}' first, if it is listed."
    if name in SPAWN_TOOLS and session.record.agent is not None:
        return f"a sub-agent starts no sub-agents: do the task yourself. {there}"
    if name in SPAWN_TOOLS and not session.settings.agent_depth:
        return f"sub-agents are switched off here (agent_depth = 0). {there}"
    return f"no such tool. {there}"


def decide_call(
    session: Session, act: ExecTool, ready: ReadyCall, limits: Limits, opinion: CallOpinion | None = None
) -> Decision:
    """Return the policy's decision about a call, with the opinion of hooks, and the consequence of a yes."""
    typed = is_typed(session)
    if session.equipment.profile is not None and any(
        session.equipment.profile.protects(path) for path in ready.request.paths
    ):
        return Deny(f"The profile {session.equipment.profile.name} is locked: its agent does not write its own file.")
    spec, request = ready.tool.spec, ready.request
    place, denials = place_of(session), denials_of(session)
    decision = decide(spec, request, limits, place, rules_of(session), typed=typed, denials=denials)
    if isinstance(decision, Allow):
        decision = decide_lines(session, request, limits, decision)
    decision = apply_opinion(spec.name, decision, opinion, limits)
    if act.approved and isinstance(decision, Ask):
        decision = decide_approved(session, act.call.id, spec, request, limits, decision)
    closed = limits.unreadable.rule_about(request.paths)
    told = (isinstance(decision, Allow) and not closed) or may_read(spec, request, limits, place, denials)
    if request.trouble and told and not isinstance(decision, Deny):
        return Deny(f"{spec.name}: {request.trouble}")
    return decision


def apply_rewrite(session: Session, call: ToolCall) -> ToolCall:
    """The call with its changed input, if it has one."""
    changed = session.questions.rewritten.get(call.id)
    return call if changed is None else replace(call, input_json=changed)


def rewrite(session: Session, call: ToolCall, args: JsonObject) -> None:
    """Let a call run with another input from now on."""
    session.questions.rewritten[call.id] = json.dumps(args)
