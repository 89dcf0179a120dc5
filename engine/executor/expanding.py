"""`/name arguments` at the beginning of a message: the skill or command of that name, as a text beside the words.

The message keeps what was typed, so lists, history and rewind show it; the model gets the rendered body behind it.
"""

from __future__ import annotations

import hashlib
import json
import re
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from engine.executor.approving import limits_of
from engine.executor.loading import line_decisions, sandbox_of, why_asks_rules
from engine.executor.requests import NeedsYes, Refused, RunCaps
from engine.executor.run_model import chosen_model
from engine.executor.session import Session
from engine.executor.stoppable import until_stopped
from engine.extensions.bodies import Body, asked_rules, body_of, with_outputs, wrapped
from engine.extensions.calls import CALL, why_not_called
from engine.machine.messages import Block, TextBlock
from engine.machine.states import is_busy
from engine.machine.texts import BUSY
from engine.permissions.policy import Ask, Deny
from engine.permissions.rules import Rule
from engine.ports.invocables import Catalogue, Invocable, Invocables
from engine.updates import Noticed
from tools.contract import Sandbox, ToolInputError
from tools.wording import one_line

PLAIN_NAME: Final = re.compile(r"[A-Za-z][A-Za-z:-]*")
MOST_NAMED: Final = 100
"""Names that a note about an unknown one lists."""
SHOWN_OF_LINE: Final = 200
REFUSED: Final = "Not sent: the shell line `{line}` of {label} was refused. {reason}"
NEEDS_YES: Final = "Not sent: {label} needs your yes: {reason}."
NOT_STARTED: Final = "Not sent: a shell line of {label} cannot be started: {reason}."
FORKS: Final = "[Phoenix: the user calls this skill; a sub-agent works on it. Call the tool skill with {call}.]"
UNKNOWN: Final = "[Phoenix: there is no command /{name} here, so the message above is plain text. There are: {names}.]"


class Expansion(Struct, frozen=True):
    """Blocks behind the words of a message, the text whose `@` files count, and what holds for its run."""

    blocks: tuple[Block, ...]
    text: str
    caps: RunCaps


async def expanded(session: Session, text: str, caps: RunCaps) -> Expansion | Refused | None:
    """The expansion of a message; None for one that calls nothing."""
    invocables = session.ports.invocables
    call = CALL.fullmatch(text) if text.startswith("/") and invocables is not None and caps.expands else None
    if call is None or invocables is None or session.record.agent is not None:
        return None
    catalogue, name = await invocables.refresh(session.record), call["name"]
    one = catalogue.called(name)
    if one is None:
        return _unknown(catalogue, name, caps, attended=invocables.attended)
    if is_busy(session.state):  # it would be refused behind its shell lines
        return Refused(BUSY)
    try:
        return await _Call(session, invocables, one, (call["arguments"] or "").strip()).expanded(caps)
    except ToolInputError as error:
        return Refused(f"Not sent: {error}")


def calls(session: Session, text: str) -> bool:
    """True for a text that calls a skill or command, as far as its files are known now."""
    call = CALL.fullmatch(text) if text.startswith("/") else None
    invocables = session.ports.invocables
    if call is None or invocables is None:
        return False
    return invocables.catalogue(session.record.cwd).called(call["name"]) is not None


def _unknown(catalogue: Catalogue, name: str, caps: RunCaps, *, attended: bool) -> Expansion | Refused | None:
    """Handle a name that means nothing: refuse it for a person, send it with a note for a script."""
    if attended:
        why = why_not_called(catalogue, name)
        return Refused(why) if why else None
    if not PLAIN_NAME.fullmatch(name):
        return None
    names = [f"/{known}" for known in sorted(catalogue.by_call) if not known.startswith(("project:", "user:"))]
    listed = ", ".join(names[:MOST_NAMED]) or "none"
    note = UNKNOWN.format(name=name, names=listed)
    return Expansion((TextBlock(note, f"no command /{name}"),), "", caps)


class _Call:
    """One call by the user."""

    def __init__(self, session: Session, invocables: Invocables, one: Invocable, arguments: str) -> None:
        self._session = session
        self._invocables = invocables
        self._one = one
        self._body = body_of(one, arguments, session.record.id)

    async def expanded(self, caps: RunCaps) -> Expansion | Refused:
        """Decide about its lines and rules, run the lines, and render it."""
        if self._one.forks and self._one.for_models:
            return Expansion((TextBlock(self._fork_words(), self._one.label),), "", caps)
        rules = asked_rules(self._one).rules if self._invocables.attended else ()
        sandboxes = await self._decided(rules, caps.agreed)
        if isinstance(sandboxes, Refused):
            return sandboxes
        text = await self._text(sandboxes)
        if isinstance(text, Refused):
            return text
        one, session = self._one, self._session
        self._invocables.note_use(one)
        model, unknown = chosen_model(session, one.model, one.label)
        if unknown:
            session.publisher.publish(Noticed(unknown))
        block = TextBlock(wrapped(self._body, text), one.label)
        return Expansion((block,), text, replace(caps, rules=rules, model=model, effort=one.effort))

    def _fork_words(self) -> str:
        """Request to load a skill that a sub-agent works on: the tool passes the policy of sub-agents."""
        call: dict[str, str] = {"skill": self._one.name, **({"args": a} if (a := self._body.arguments) else {})}
        return FORKS.format(call=json.dumps(call, ensure_ascii=False))

    async def _decided(self, rules: tuple[Rule, ...], agreed: str) -> tuple[Sandbox, ...] | Refused:
        """Limits of each line; the question, unless the user has agreed to these very lines and rules."""
        session, one, reasons = self._session, self._one, list[str]()
        limits, sandboxes = await limits_of(session), list[Sandbox]()
        for line, decision in line_decisions(session, self._body.lines, limits):
            if isinstance(decision, Deny):
                short = one_line(line, SHOWN_OF_LINE)
                return Refused(REFUSED.format(line=short, label=one.label, reason=decision.text))
            if isinstance(decision, Ask) and decision.reason not in reasons:
                reasons.append(decision.reason)
            sandboxes.append(sandbox_of(decision))
        texts = tuple(map(str, rules))
        if why := why_asks_rules(session, one.label, texts, limits):
            reasons.append(why)
        key = _key(self._body, texts)
        if agreed == key:
            session.preapproved |= {(key,), (one.label, *texts)}
        elif reasons and (key,) not in session.preapproved:
            reason = "; ".join(reasons)
            return NeedsYes(
                NEEDS_YES.format(label=one.label, reason=reason), key=key, lines=self._body.lines, rules=texts
            )
        return tuple(sandboxes)

    async def _text(self, sandboxes: tuple[Sandbox, ...]) -> str | Refused:
        """The body with its lines run; Esc ends them."""
        session, runner = self._session, self._invocables.runner
        try:
            return await until_stopped(session, with_outputs(self._body, runner, session.record.cwd, sandboxes))
        except OSError as error:
            return Refused(NOT_STARTED.format(label=self._one.label, reason=error.strerror or error))


def _key(body: Body, rules: tuple[str, ...]) -> str:
    """Identity of what a question shows: the file, its lines and rules."""
    parts = "\0".join((body.invocable.digest, *body.lines, "", *rules))
    return hashlib.sha256(parts.encode("utf-8", "replace")).hexdigest()
