"""Hooks around a tool call: before the policy decides, in place of a question, and after the tool (docs/decisions/
hooks.md).

A hook can forbid a call, have it asked about, or change it. Its yes counts as much as a rule that allows this very
call: rules that deny, protected paths and the modes plan and deny stand, and a hook of the project opens no sandbox.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from engine.executor.event_hooks import REFUSED_BY_HOOK, ask_hooks, wants_hooks
from engine.executor.session import Session
from engine.extensions.hooks.output import JoinedVerdict, tool_response
from engine.machine.messages import ToolCall
from engine.machine.states import ToolExecuting
from engine.permissions.denials import DENY, Denials, DenyRule, parse_denial, verdict_on
from engine.permissions.policy import Ask, Decision, Deny, Limits
from engine.permissions.rules import Rule, RuledCall
from engine.ports.extensions import HookEvent, HookPermission
from tools.aliases import FOREIGN, NATIVE, TranslatedCall, from_foreign, native_names, to_foreign
from tools.contract import JsonObject, SandboxMode, ToolInputError, ToolOutput, ToolRequest, ToolSpec

BLOCKED: Final = f"{REFUSED_BY_HOOK}{{name}}: {{reason}}"
STOPPED: Final = "A hook stopped the run{why}"
NO_OPINION: Final = "the hook {names} gave no opinion"
ASKS: Final = "a hook wants you to decide"
CHANGED: Final = "hook {name} changed the input: {text}"
LONGEST_SHOWN: Final = 2_000


class CallOpinion(Struct, frozen=True):
    """Opinion of hooks about a call before it runs; kept until it has run, so that they are asked once."""

    call: ToolCall
    """The call as it is to run."""
    verdict: JoinedVerdict
    rows: tuple[str, ...] = ()


class CallSubject(Struct, frozen=True):
    """A call as hooks know it."""

    spec: ToolSpec
    request: ToolRequest
    foreign: TranslatedCall
    working_dir: Path

    @property
    def names(self) -> tuple[str, ...]:
        """Names that a matcher may mean: every one of this tool elsewhere, so that no form of a call passes a guard."""
        means = {self.spec.name, NATIVE.get(self.foreign.name)}
        others = (name for name, native in NATIVE.items() if native in means)
        return tuple(dict.fromkeys((self.foreign.name, self.spec.name, *others)))

    def matches(self, rule: str) -> bool:
        """True if a permission rule may be about this call: in doubt a hook runs. Its name may be foreign."""
        found = parse_denial(f"{DENY}{rule}")
        if found is None:
            return True
        pattern = f"{found.pattern[:-2]}*" if found.pattern.endswith(":*") else found.pattern
        rules = tuple(DenyRule(Rule(name, pattern)) for name in native_names(found.tool, widely=True))
        ruled = RuledCall(self.spec.name, self.spec.tool_class, self.request, self.working_dir)
        return verdict_on(Denials(rules), ruled) is not None

    def fields(self, call_id: str) -> JsonObject:
        """Fields of the input of a hook."""
        return {"tool_name": self.foreign.name, "tool_input": self.foreign.input, "tool_use_id": call_id}


def subject_of(session: Session, spec: ToolSpec, args: JsonObject, request: ToolRequest) -> CallSubject:
    """A call under its foreign name and fields."""
    cwd = session.record.cwd
    try:
        foreign = to_foreign(spec.name, args, cwd)
    except ToolInputError:
        foreign = TranslatedCall(FOREIGN.get(spec.name, spec.name), args)
    return CallSubject(spec, request, foreign, cwd)


async def ask_before_call(session: Session, call: ToolCall, subject: CallSubject) -> CallOpinion:
    """Ask the hooks before a tool.

    Raises:
        ToolInputError: a hook changed the input into one without a native form.
    """
    asked = await ask_hooks(
        session,
        HookEvent.PRE_TOOL_USE,
        subject.names,
        subject.fields(call.id),
        call_id=call.id,
        rules=subject,
    )
    verdict = asked.verdict
    rows = list(asked.rows)
    if verdict.updated_input is not None and not _is_forbidden(verdict):
        call, row = _change_input(session, call, subject, verdict)
        rows.append(row)
    return CallOpinion(call, verdict, tuple(rows))


async def ask_on_question(session: Session, call: ToolCall, subject: CallSubject) -> CallOpinion | None:
    """Ask the hooks that answer questions in place of the user; None where none answers.

    Raises:
        ToolInputError: as above.
    """
    if not wants_hooks(session, HookEvent.PERMISSION_REQUEST):
        return None
    fields = subject.fields(call.id) | {"permission_suggestions": []}
    asked = await ask_hooks(
        session, HookEvent.PERMISSION_REQUEST, subject.names, fields, call_id=call.id, rules=subject
    )
    verdict = asked.verdict
    if verdict.permission is None and not verdict.blocks and not verdict.stops:
        return None
    rows = list(asked.rows)
    if verdict.updated_input is not None and verdict.permission is HookPermission.ALLOW:
        call, row = _change_input(session, call, subject, verdict)
        rows.append(row)
    return CallOpinion(call, verdict, tuple(rows))


def apply_opinion(name: str, decision: Decision, opinion: CallOpinion | None, limits: Limits) -> Decision:
    """The decision of the policy together with the opinion of hooks."""
    if opinion is None or isinstance(decision, Deny):
        return decision
    verdict = opinion.verdict
    if _is_forbidden(verdict):
        return Deny(BLOCKED.format(name=name, reason=verdict.reason or describe_stop(verdict)))
    if isinstance(decision, Ask):
        return decision.grant if _may_allow(verdict, decision, limits) else decision
    if verdict.undecided:
        reason = NO_OPINION.format(names=", ".join(verdict.undecided))
        return Ask(reason, decision, lasting=False, by_hook=True)
    if verdict.permission in {HookPermission.ASK, HookPermission.DEFER}:
        return Ask(verdict.reason or ASKS, decision, lasting=False, by_hook=True)
    return decision


async def ask_after_call(
    session: Session,
    call: ToolCall,
    subject: CallSubject,
    output: ToolOutput,
    seconds: float,
    original: str | None = None,
) -> tuple[ToolOutput, JoinedVerdict, tuple[str, ...]]:
    """The result of a tool with what hooks add to it, their verdict, and rows about them; `original` is the text of an
    edited file before.
    """
    event = HookEvent.POST_TOOL_USE_FAILURE if output.is_error else HookEvent.POST_TOOL_USE
    if not wants_hooks(session, event):
        return output, JoinedVerdict(), ()
    fields = subject.fields(call.id) | {"duration_ms": int(seconds * 1000)}
    if output.is_error:
        fields |= {"error": output.text, "is_interrupt": False}
    else:
        fields["tool_response"] = tool_response(subject.foreign.name, subject.foreign.input, output, original)
    asked = await ask_hooks(session, event, subject.names, fields, call_id=call.id, rules=subject)
    verdict, text = asked.verdict, output.text
    if (updated := verdict.updated_output) is not None:
        text = updated if isinstance(updated, str) else json.dumps(updated, ensure_ascii=False)
    parts = [text, f"[A hook objects: {verdict.reason}]" if verdict.blocks else ""]
    parts += [f"[From a hook: {context}]" for context in verdict.context]
    return replace(output, text="\n\n".join(filter(None, parts))), verdict, asked.rows


def describe_stop(verdict: JoinedVerdict) -> str:
    """Sentence for the user about a run that a hook stops; empty where none does."""
    why = verdict.stop_reason.strip().rstrip(".")
    return STOPPED.format(why=f": {why}" if why else "") if verdict.stops else ""


def context_of(opinion: CallOpinion | None) -> str:
    """Text that hooks add to the result of a call, from before it ran."""
    contexts = opinion.verdict.context if opinion is not None else ()
    return "".join(f"\n\n[From a hook: {context}]" for context in contexts)


def _is_forbidden(verdict: JoinedVerdict) -> bool:
    return verdict.blocks or verdict.stops or verdict.permission is HookPermission.DENY


def _may_allow(verdict: JoinedVerdict, asks: Ask, limits: Limits) -> bool:
    """True where a yes of hooks takes the place of the question, as a rule would."""
    if verdict.permission is not HookPermission.ALLOW or verdict.undecided or not asks.lasting or limits.unattended:
        return False
    grant = asks.grant
    leaves = grant.outside or (limits.sandbox is not SandboxMode.OFF and grant.sandbox.mode is SandboxMode.OFF)
    return not verdict.is_confined or not leaves


def _change_input(
    session: Session, call: ToolCall, subject: CallSubject, verdict: JoinedVerdict
) -> tuple[ToolCall, str]:
    """The call with the input of a hook, and the row that shows it."""
    found = from_foreign(subject.foreign.name, verdict.updated_input or {}, session.record.cwd)
    if found.name != subject.spec.name:
        raise ToolInputError(f"the hook {verdict.changed_by} changed its input into one for {found.name}")
    text = json.dumps(found.input)
    shown = text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}…"
    return replace(call, input_json=text), CHANGED.format(name=verdict.changed_by, text=shown)


CODE: Final = "tool_deferred"
"""Error code of a run that ended so."""
ENDED: Final = "A hook put off the call of {name}{why}"
RESULT: Final = (
    "{name} has not run: a hook put this call off{why}. The run ends here. When the user goes on, make the same call "
    "again."
)


def is_deferred(session: Session, opinion: CallOpinion | None) -> bool:
    """True where hooks put a call off: in a program without a screen, and where its reply has no other call."""
    state = session.state
    if opinion is None or not session.settings.may_defer or session.record.agent is not None:
        return False
    verdict = opinion.verdict
    is_alone = isinstance(state, ToolExecuting) and not state.round.queue and not state.round.results
    return is_alone and verdict.permission is HookPermission.DEFER and not verdict.blocks and not verdict.stops


def defer_call(name: str, opinion: CallOpinion) -> tuple[Decision, str]:
    """The refusal of a call that is put off, and the sentence for the user."""
    reason = opinion.verdict.reason.strip().rstrip(".")
    why = f": {reason}" if reason else ""
    return Deny(RESULT.format(name=name, why=why)), ENDED.format(name=name, why=why)
