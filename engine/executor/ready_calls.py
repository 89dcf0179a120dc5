"""Calls before they run: their tool, arguments and request, and the decision about them."""

from __future__ import annotations

import asyncio

from msgspec import Struct

from engine.executor.approving import approved, denials_of, limits_of, place_of, rules_of
from engine.executor.call_arguments import parse_arguments, why_not_native
from engine.executor.call_hooks import CallOpinion, with_opinion
from engine.executor.equipment import tools_of
from engine.executor.known_urls import with_known_url
from engine.executor.loading import decide_lines, with_programs
from engine.executor.session import Session
from engine.machine.effects import ExecTool
from engine.machine.messages import ToolCall
from engine.machine.states import ToolExecuting, ToolOrigin
from engine.permissions.policy import Allow, Ask, Decision, Deny, Limits, decide, may_read
from engine.permissions.tool_names import is_server_tool
from engine.ports.profiles import SPAWN_TOOLS
from tools.contract import JsonObject, Tool, ToolInputError, ToolRequest
from tools.foreign_names import native_name
from tools.tool_search import NAME as TOOL_SEARCH


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
        why = why_not_native(call.name, call.input_json, session.record.cwd)
        raise ToolInputError(why or _why_missing(session, call.name))
    args = parse_arguments(call.input_json)
    request = await with_known_url(session, await tool.request(args, session.record.cwd))
    if request.command:
        limits = await limits_of(session)
        request = await asyncio.to_thread(with_programs, request, limits, session.record.cwd)
    return ReadyCall(tool, args, request)


def _why_missing(session: Session, name: str) -> str:
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
    if session.profile is not None and any(session.profile.protects(path) for path in ready.request.paths):
        return Deny(f"The profile {session.profile.name} is locked: its agent does not write its own file.")
    spec, request = ready.tool.spec, ready.request
    place, denials = place_of(session), denials_of(session)
    decision = decide(spec, request, limits, place, rules_of(session), typed=typed, denials=denials)
    if isinstance(decision, Allow):
        decision = decide_lines(session, request, limits, decision)
    decision = with_opinion(spec.name, decision, opinion, limits)
    if act.approved and isinstance(decision, Ask):
        decision = approved(session, act.call.id, spec, request, limits, decision)
    closed = limits.unreadable.rule_about(request.paths)
    told = (isinstance(decision, Allow) and not closed) or may_read(spec, request, limits, place, denials)
    if request.trouble and told and not isinstance(decision, Deny):
        return Deny(f"{spec.name}: {request.trouble}")
    return decision
