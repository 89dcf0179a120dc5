"""`/mcp__SERVER__PROMPT arguments` at the beginning of a message: the text that a server has under that name.

The message keeps what was typed; the server's text goes with it, marked as the server's.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Final

from engine.executor.expanding import Expansion, calls
from engine.executor.requests import Refused, RunCaps
from engine.executor.server_blocks import blocks_of
from engine.executor.session import Session
from engine.executor.stoppable import until_stopped
from engine.machine.states import is_busy
from engine.machine.texts import BUSY
from engine.ports.server_texts import PromptField, ServerPrompt, ServerTextError, ServerTexts
from tools.clean import clean_line
from tools.contract import ToolOutput
from tools.wording import one_line

CALL: Final = re.compile(r"/(?P<name>mcp__[A-Za-z0-9_-]{1,59})(?:\s+(?P<arguments>.*))?", re.DOTALL)
MOST_CHARACTERS: Final = 100_000
"""Characters of a prompt's text in a message."""
LONGEST_VALUE: Final = 20_000
"""Characters of one argument."""
UNKNOWN: Final = "Not sent: no MCP server here has the prompt /{name}; /mcp lists the servers. {way_out}"
WAY_OUT: Final = "A blank in front of the slash sends it as text."
MISSING: Final = "Not sent: /{name} needs {fields}; type it as {usage}."
LONG: Final = "Not sent: {field} of /{name} has more than {most:,} characters; shorten it."
FAILED: Final = "Not sent: {why}"


def calls_something(session: Session, text: str) -> bool:
    """True for a text that calls a skill, a command, or a prompt of a server."""
    return _call(session, text) is not None or calls(session, text)


async def prompted(session: Session, text: str, caps: RunCaps) -> Expansion | Refused | None:
    """The expansion of a message that calls a prompt; None for any other."""
    call, servers = _call(session, text), session.ports.server_texts
    if call is None or servers is None:
        return None
    if is_busy(session.state):
        return Refused(BUSY)
    fetching = _fetched(session, servers, call["name"], (call["arguments"] or "").strip())
    try:
        found = await until_stopped(session, fetching)
    except ServerTextError as error:
        return Refused(FAILED.format(why=error))
    if isinstance(found, Refused):
        return found
    prompt, output = found
    blocks = await blocks_of(session, output, _words(prompt), prompt.command, MOST_CHARACTERS)
    return Expansion(blocks, "", caps)


def _call(session: Session, text: str) -> re.Match[str] | None:
    if session.ports.server_texts is None or session.record.agent is not None:
        return None
    return CALL.fullmatch(text) if text.startswith("/mcp__") else None


async def _fetched(
    session: Session, servers: ServerTexts, name: str, arguments: str
) -> tuple[ServerPrompt, ToolOutput] | Refused:
    prompt = await servers.prompt(session.record, name)
    if prompt is None:
        return Refused(UNKNOWN.format(name=name, way_out=WAY_OUT))
    values = values_of(prompt.fields, arguments)
    missing = [one.name for one in prompt.fields if one.required and not values.get(one.name)]
    if missing:
        usage = f"/{name} {prompt.hint}"
        return Refused(MISSING.format(name=name, fields=" and ".join(missing), usage=usage))
    for field, value in values.items():
        if len(value) > LONGEST_VALUE:
            return Refused(LONG.format(field=field, name=name, most=LONGEST_VALUE))
    return prompt, await servers.render(session.record, prompt, values)


def _words(prompt: ServerPrompt) -> str:
    server, name = clean_line(prompt.server), one_line(clean_line(prompt.prompt))
    return f"The user calls the prompt {name} of the MCP server {server}. The server wrote it"


def values_of(fields: Sequence[PromptField], arguments: str) -> Mapping[str, str]:
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
