"""Keeps the facts of an approval, the limits and facts of a call, until it runs (docs/security.md, principle 2)."""

from __future__ import annotations

import asyncio
from typing import Final

from msgspec.structs import replace

from engine.executor.equipment import extension_folders
from engine.executor.requests import ApprovalAnswer, ApprovalChoice
from engine.executor.session import Session
from engine.executor.session_parts import differences
from engine.machine.states import is_busy
from engine.machine.texts import ALLOWED_EVERYWHERE, ALLOWED_HERE, ALLOWED_IN_PROJECT, ALLOWED_ONCE
from engine.permissions.denials import Denials, denials_in
from engine.permissions.hosts import NET, hosts_in
from engine.permissions.place import PathPlace, project_of
from engine.permissions.policy import Ask, Decision, Deny, Limits
from engine.permissions.rules import KeptRule, Rule, RuledCall, bind, parse_rule, refusal, rules_in_force
from engine.ports.profiles import narrower_mode, narrower_sandbox
from engine.updates import Question
from tools.call_titles import call_title, tool_label
from tools.contract import Access, Enforcement, SandboxMode, ToolClass, ToolRequest, ToolSpec
from tools.files.location import spills_of
from tools.wording import both_ends, one_line

MOST_TIMES: Final = 3
"""Questions about one call; a call that changes once more is refused."""
EDITORS: Final = ("patch", "write_file")
"""Tools that edit a file: an answer for the conversation is about all of them."""
LONGEST_SUMMARY: Final = 60
"""Characters of a call in the row about its approval."""
KEPT_CHANGING: Final = "{name} was not run: what it would do changed after each approval."


async def limits_of(session: Session) -> Limits:
    """Mode and sandbox of a conversation as they are now; a sub-agent's sandbox is never wider than its parent's."""
    record = session.record
    mode, sandbox, required = record.permission_mode, record.sandbox, record.sandbox_required
    if session.equipment.above is not None:
        parent = await limits_of(session.equipment.above)
        sandbox, required = narrower_sandbox(sandbox, parent.sandbox), required or parent.required
        if session.equipment.profile is None or session.equipment.profile.permission_mode is None:
            mode = narrower_mode(mode, parent.mode)
    enforcement = Enforcement.NONE if sandbox is SandboxMode.OFF else await session.ports.probe.enforcement()
    unreadable = await asyncio.to_thread(session.grants.denied_files.look, denials_of(session), record.cwd)
    settings = session.settings
    return Limits(mode, sandbox, required, settings.sandbox_network, enforcement, unreadable, settings.network)


def place_of(session: Session) -> PathPlace:
    """Folders inside for a conversation's calls, and paths that none of them opens."""
    settings = session.settings
    readable = tuple(spills_of(folder, session.record.cwd) for folder in settings.spills)
    readable += extension_folders(session)
    return PathPlace(session.record.cwd, readable, settings.own, settings.home)


def rules_of(session: Session) -> dict[Rule, Access]:
    """Rules that hold for a conversation, each with the access that it was given for here."""
    kept = rules_in_force(session.ports.rules.rules(session.record.cwd), project_of(session.record.cwd))
    of_run = (*session.run.rules, *session.run.caps.rules) if is_busy(session.state) else ()
    found = (*session.grants.rules, *of_run, *kept)
    return {rule: session.grants.rule_access.get(Rule(rule.tool, rule.pattern), Access.CONFINED) for rule in found}


def denials_of(session: Session) -> Denials:
    """Rules that deny calls of a conversation."""
    return denials_in(session.ports.rules, session.record.cwd)


def decide_approved(
    session: Session, call_id: str, spec: ToolSpec, request: ToolRequest, limits: Limits, decision: Ask
) -> Decision:
    """Return the consequence of a yes: the grant for the shown call, else another question, and at last a refusal."""
    asked = session.questions.asked
    if asked is None or asked.call_id != call_id:
        # The card of a supervisor's decision is the question about the sub-agents it starts.
        return decision.grant if spec.tool_class is ToolClass.SPAWN and decision.lasting else decision
    changed = differences(asked, request, limits)
    if not changed:
        return decision.grant
    if asked.times >= MOST_TIMES:
        return Deny(KEPT_CHANGING.format(name=spec.name))
    return Ask(f"changed after your approval: {changed}. {decision.reason}", decision.grant, decision.lasting)


def answer_note(question: Question, answer: ApprovalAnswer) -> str:
    """The row of the audit trail about a grant; empty for a denial, which the result of the call contains."""
    rule = answer.rule or question.rule
    match answer.choice:
        case ApprovalChoice.ONCE:
            return f"{name_call(question)}: {ALLOWED_ONCE}"
        case ApprovalChoice.CONVERSATION:
            return f"{name_call(question, rule)}: {ALLOWED_HERE}: {rule}"
        case ApprovalChoice.ALWAYS:
            return f"{name_call(question, rule)}: {ALLOWED_IN_PROJECT}: {rule}"
        case ApprovalChoice.EVERYWHERE:
            return f"{name_call(question, rule)}: {ALLOWED_EVERYWHERE}: {rule}"
        case ApprovalChoice.DENY:
            return ""


def keep_rule(session: Session, choice: ApprovalChoice, text: str, question: Question) -> str:
    """Keep a rule for this conversation, its project or everywhere; returns the reason where it cannot."""
    call = RuledCall(question.call.name, question.tool_class, question.request, session.record.cwd)
    rule = parse_rule(text)
    if (why := refusal(text, call)) or rule is None:
        return why
    now = session.ports.clock.now()
    kept = [Rule(NET, host) for host in hosts_in(rule.pattern)] if rule.tool == NET else [bind(rule, call)]
    if choice is ApprovalChoice.CONVERSATION and text == question.rule and rule.tool in EDITORS:
        kept = [bind(replace(rule, tool=editor), call) for editor in EDITORS]  # "every edit of" the file
    project = "" if choice is ApprovalChoice.EVERYWHERE else str(project_of(session.record.cwd))
    for one in kept:
        if choice is ApprovalChoice.CONVERSATION:
            session.grants.rules[one] = now
        else:
            try:
                session.ports.rules.add(KeptRule(str(one), now, project))
            except OSError as error:
                return f"The rule could not be saved: {error.strerror or error}."
        if not one.pattern.endswith("*") and one.tool != NET:  # a rule for this very command covers the access shown
            session.grants.rule_access[one] = question.request.access
    return ""


def name_call(question: Question, rule: str = "") -> str:
    """The tool and the beginning of its call, which a `rule` for that very call names already."""
    name, summary = question.call.name, question.request.summary
    told = rule == f"{name}({summary})" or summary in {"", name}
    label = tool_label(name)
    if told:
        return label
    if question.request.paths:
        return call_title(name, "", both_ends(one_line(summary), LONGEST_SUMMARY))
    return one_line(call_title(name, question.call.input_json, summary), len(label) + 1 + LONGEST_SUMMARY)
