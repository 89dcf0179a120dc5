"""`/name arguments` at the beginning of a message: the skill or command of that name, as a text beside the words.

The message keeps what was typed, so lists, history and rewind show it; the model gets the rendered body behind it.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import shlex
from collections.abc import Coroutine, Mapping, Sequence
from typing import Any, Final, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from engine.executor.approving import limits_of
from engine.executor.asking import choose_model
from engine.executor.attaching import build_blocks
from engine.executor.ready_calls import decide_each_line, explain_rules, sandbox_of
from engine.executor.requests import NeedsYes, Refused, RunCaps
from engine.executor.session import Session
from engine.extensions.skills import CALL, body_of, read_asked_rules, why_not_called, with_outputs, wrap_body
from engine.machine.messages import Block, TextBlock
from engine.machine.states import is_busy
from engine.machine.texts import BUSY
from engine.permissions.policy import Ask, Deny
from engine.permissions.rules import Rule
from engine.ports.extensions import Invocable, Invocables
from engine.ports.mcp import PromptField, ServerPrompt, ServerTextError, ServerTexts
from engine.updates import Noticed
from tools.clean import clean_line
from tools.contract import Sandbox, ToolInputError, ToolOutput
from tools.wording import one_line

Result = TypeVar("Result")

STOPPED: Final = "Stopped before it was sent."


async def run_until_stopped(session: Session, work: Coroutine[Any, Any, Result]) -> Result | Refused:
    """The result of the work, or a refusal where the user stopped it; an error of the work is raised.

    A caller that is cancelled itself cancels the work and waits for its end.
    """
    running: asyncio.Future[Result] = asyncio.ensure_future(work)
    session.background.expansion = running
    try:
        await asyncio.wait((running,))
        return running.result()
    except asyncio.CancelledError:
        if running.done():
            return Refused(STOPPED)
        running.cancel()
        await asyncio.wait((running,))
        raise
    finally:
        session.background.expansion = None


def stop_expanding(session: Session) -> None:
    """Stop the work that a message waits for; the message is not sent."""
    if session.background.expansion is not None:
        session.background.expansion.cancel()


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


async def expand_call(session: Session, text: str, caps: RunCaps) -> Expansion | Refused | None:
    """The expansion of a message; None for one that calls nothing."""
    invocables = session.ports.invocables
    call = CALL.fullmatch(text) if text.startswith("/") and invocables is not None and caps.expands else None
    if call is None or invocables is None or session.record.agent is not None:
        return None
    catalogue, name = await invocables.refresh(session.record), call["name"]
    one = catalogue.find(name)
    if one is None:
        if invocables.attended:
            why = why_not_called(catalogue, name)
            return Refused(why) if why else None
        if not PLAIN_NAME.fullmatch(name):
            return None
        names = [f"/{known}" for known in sorted(catalogue.by_call) if not known.startswith(("project:", "user:"))]
        listed = ", ".join(names[:MOST_NAMED]) or "none"
        note = UNKNOWN.format(name=name, names=listed)
        return Expansion((TextBlock(note, f"no command /{name}"),), "", caps)
    if is_busy(session.state):  # it would be refused behind its shell lines
        return Refused(BUSY)
    try:
        return await _Call(session, invocables, one, (call["arguments"] or "").strip()).expand(caps)
    except ToolInputError as error:
        return Refused(f"Not sent: {error}")


def calls_invocable(session: Session, text: str) -> bool:
    """True for a text that calls a skill or command, as far as its files are known now."""
    call = CALL.fullmatch(text) if text.startswith("/") else None
    invocables = session.ports.invocables
    if call is None or invocables is None:
        return False
    return invocables.catalogue(session.record.cwd).find(call["name"]) is not None


class _Call:
    """One call by the user."""

    def __init__(self, session: Session, invocables: Invocables, one: Invocable, arguments: str) -> None:
        self._session = session
        self._invocables = invocables
        self._one = one
        self._body = body_of(one, arguments, session.record.id)

    async def expand(self, caps: RunCaps) -> Expansion | Refused:
        """Decide about its lines and rules, run the lines, and render it."""
        if self._one.forks and self._one.for_models:
            # A request to load it: the tool passes the policy of sub-agents.
            call: dict[str, str] = {"skill": self._one.name, **({"args": a} if (a := self._body.arguments) else {})}
            words = FORKS.format(call=json.dumps(call, ensure_ascii=False))
            return Expansion((TextBlock(words, self._one.label),), "", caps)
        rules = read_asked_rules(self._one).rules if self._invocables.attended else ()
        sandboxes = await self._decide(rules, caps.agreed)
        if isinstance(sandboxes, Refused):
            return sandboxes
        text = await self._run_lines(sandboxes)
        if isinstance(text, Refused):
            return text
        one, session = self._one, self._session
        self._invocables.note_use(one)
        model, unknown = choose_model(session, one.model, one.label)
        if unknown:
            session.publisher.publish(Noticed(unknown))
        block = TextBlock(wrap_body(self._body, text), one.label)
        return Expansion((block,), text, replace(caps, rules=rules, model=model, effort=one.effort))

    async def _decide(self, rules: tuple[Rule, ...], agreed: str) -> tuple[Sandbox, ...] | Refused:
        """Limits of each line; the question, unless the user has agreed to these very lines and rules."""
        session, one, reasons = self._session, self._one, list[str]()
        limits, sandboxes = await limits_of(session), list[Sandbox]()
        for line, decision in decide_each_line(session, self._body.lines, limits):
            if isinstance(decision, Deny):
                short = one_line(line, SHOWN_OF_LINE)
                return Refused(REFUSED.format(line=short, label=one.label, reason=decision.text))
            if isinstance(decision, Ask) and decision.reason not in reasons:
                reasons.append(decision.reason)
            sandboxes.append(sandbox_of(decision))
        texts = tuple(map(str, rules))
        if why := explain_rules(session, one.label, texts, limits):
            reasons.append(why)
        body = self._body
        parts = "\0".join((body.invocable.digest, *body.lines, "", *texts))
        key = hashlib.sha256(parts.encode("utf-8", "replace")).hexdigest()
        if agreed == key:
            session.questions.preapproved |= {(key,), (one.label, *texts)}
        elif reasons and (key,) not in session.questions.preapproved:
            reason = "; ".join(reasons)
            return NeedsYes(
                NEEDS_YES.format(label=one.label, reason=reason), key=key, lines=self._body.lines, rules=texts
            )
        return tuple(sandboxes)

    async def _run_lines(self, sandboxes: tuple[Sandbox, ...]) -> str | Refused:
        """The body with its lines run; Esc ends them."""
        session, runner = self._session, self._invocables.runner
        try:
            return await run_until_stopped(session, with_outputs(self._body, runner, session.record.cwd, sandboxes))
        except OSError as error:
            return Refused(NOT_STARTED.format(label=self._one.label, reason=error.strerror or error))


PROMPT_CALL: Final = re.compile(r"/(?P<name>mcp__[A-Za-z0-9_-]{1,59})(?:\s+(?P<arguments>.*))?", re.DOTALL)
MOST_CHARACTERS: Final = 100_000
"""Characters of a prompt's text in a message."""
LONGEST_VALUE: Final = 20_000
"""Characters of one argument."""
UNKNOWN_PROMPT: Final = "Not sent: no MCP server here has the prompt /{name}; /mcp lists the servers. {way_out}"
WAY_OUT: Final = "A blank in front of the slash sends it as text."
MISSING: Final = "Not sent: /{name} needs {fields}; type it as {usage}."
LONG: Final = "Not sent: {field} of /{name} has more than {most:,} characters; shorten it."
FAILED: Final = "Not sent: {why}"


def calls_something(session: Session, text: str) -> bool:
    """True for a text that calls a skill, a command, or a prompt of a server."""
    return _call(session, text) is not None or calls_invocable(session, text)


async def fetch_server_prompt(session: Session, text: str, caps: RunCaps) -> Expansion | Refused | None:
    """The expansion of a message that calls a prompt; None for any other."""
    call, servers = _call(session, text), session.ports.server_texts
    if call is None or servers is None:
        return None
    if is_busy(session.state):
        return Refused(BUSY)
    fetching = _fetch_prompt(session, servers, call["name"], (call["arguments"] or "").strip())
    try:
        found = await run_until_stopped(session, fetching)
    except ServerTextError as error:
        return Refused(FAILED.format(why=error))
    if isinstance(found, Refused):
        return found
    prompt, output = found
    server, name = clean_line(prompt.server), one_line(clean_line(prompt.prompt))
    words = f"The user calls the prompt {name} of the MCP server {server}. The server wrote it"
    blocks = await build_blocks(session, output, words, prompt.command, MOST_CHARACTERS)
    return Expansion(blocks, "", caps)


def _call(session: Session, text: str) -> re.Match[str] | None:
    if session.ports.server_texts is None or session.record.agent is not None:
        return None
    return PROMPT_CALL.fullmatch(text) if text.startswith("/mcp__") else None


async def _fetch_prompt(
    session: Session, servers: ServerTexts, name: str, arguments: str
) -> tuple[ServerPrompt, ToolOutput] | Refused:
    prompt = await servers.prompt(session.record, name)
    if prompt is None:
        return Refused(UNKNOWN_PROMPT.format(name=name, way_out=WAY_OUT))
    values = parse_values(prompt.fields, arguments)
    missing = [one.name for one in prompt.fields if one.required and not values.get(one.name)]
    if missing:
        usage = f"/{name} {prompt.hint}"
        return Refused(MISSING.format(name=name, fields=" and ".join(missing), usage=usage))
    for field, value in values.items():
        if len(value) > LONGEST_VALUE:
            return Refused(LONG.format(field=field, name=name, most=LONGEST_VALUE))
    return prompt, await servers.render(session.record, prompt, values)


def parse_values(fields: Sequence[PromptField], arguments: str) -> Mapping[str, str]:
    """Values by argument: words in order, the last argument takes the rest; `NAME=VALUE` names its argument."""
    named: dict[str, str] = {}
    words: list[str] = []
    known = {one.name for one in fields}
    for word in _split(arguments):
        name, sign, value = word.partition("=")
        if sign and name in known:
            named[name] = value
        else:
            words.append(word)
    open_ones = [one.name for one in fields if one.name not in named]
    found = dict(zip(open_ones, words, strict=False))
    if open_ones and len(words) > len(open_ones):
        found[open_ones[-1]] = " ".join(words[len(open_ones) - 1 :])
    return {**found, **named}


def _split(arguments: str) -> list[str]:
    """Words as a shell splits them; at spaces where the quotation marks do not match."""
    lexer = shlex.shlex(arguments, posix=True)
    lexer.whitespace_split, lexer.commenters = True, ""
    try:
        return list(lexer)
    except ValueError:
        return arguments.split()
