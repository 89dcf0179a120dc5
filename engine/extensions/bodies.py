"""Body of a skill or command for one use: rules that it asks for, its text for the model, its shell lines run."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

from engine.extensions.template import Part, ShellLine, Values, rendered
from engine.permissions.command_rules import prefix_words, why_no_pattern
from engine.permissions.foreign_rules import native_rules
from engine.permissions.rules import Rule, parse_rule
from engine.permissions.tool_names import ANY
from engine.ports.extensions import Invocable, InvocableKind, InvocableOrigin
from tools.clean import clean
from tools.command_access import command_access
from tools.contract import Command, HostGate, ProcessRunner, Sandbox, ToolInputError, ToolRequest
from tools.foreign_names import native_name
from tools.process.programs import find_program
from tools.shell_output import outcome_lines, readable
from tools.wording import counted, one_line

LINE_SECONDS: Final = 10.0
"""Seconds that one shell line may take."""
LINE_BYTES: Final = 16 * 1024
"""Bytes of its output that are kept, half of them from either end."""
MOST_LISTED: Final = 50
"""Bundled files that the text for the model names."""
MOST_CHARACTERS: Final = 1_000_000
"""Characters of a body with its arguments."""
MOST_RULES: Final = 50
BASH: Final = "bash"
_SHORT: Final = 12


class Body(Struct, frozen=True):
    """One use of a skill or command: its parts with every variable filled."""

    invocable: Invocable
    arguments: str
    parts: tuple[Part, ...]

    @property
    def lines(self) -> tuple[str, ...]:
        """Shell lines, in order."""
        return tuple(part.command for part in self.parts if isinstance(part, ShellLine))

    @property
    def opening(self) -> str:
        """First line of the text for a model; the same for the same content and arguments."""
        one = self.invocable
        key = hashlib.sha256(f"{one.digest}\0{self.arguments}".encode("utf-8", "replace")).hexdigest()[:_SHORT]
        return f'<{one.kind.value} name="{one.name}" id="{key}">'


def body_of(invocable: Invocable, arguments: str, conversation_id: str) -> Body:
    """The body of one use.

    Raises:
        ToolInputError: with these arguments it would be too long.
    """
    if len(invocable.body) + invocable.body.count("$") * len(arguments) > MOST_CHARACTERS:
        raise ToolInputError(f"{invocable.label} repeats its arguments too often for so long ones; shorten them.")
    names = {"SESSION_ID": conversation_id}
    if invocable.kind is InvocableKind.SKILL:
        names["SKILL_DIR"] = str(invocable.folder)
    return Body(invocable, arguments, rendered(invocable.body, Values(arguments, names, invocable.argument_names)))


def wrapped(body: Body, text: str) -> str:
    """The text for a model; a skill with its folder and the names of its files, not their contents."""
    one, head = body.invocable, [body.opening]
    if one.kind is InvocableKind.SKILL:
        head.append(f"Base directory of this skill: {one.folder}")
        if one.files:
            more = len(one.files) - MOST_LISTED
            names = [*one.files[:MOST_LISTED], *([f"and {counted(more, 'more file')}"] if more > 0 else [])]
            head.append(f"Its files, to read when the text names them: {', '.join(names)}")
        head.append("")
    return "\n".join((*head, text.strip("\n"), f"</{one.kind.value}>"))


def request_of(line: str) -> ToolRequest:
    """A shell line as a call of bash, for the policy."""
    access, reason = command_access(line)
    return ToolRequest(line, command=line, access=access, access_reason=reason, known_access=access)


async def with_outputs(
    body: Body, runner: ProcessRunner, working_dir: Path, sandboxes: Sequence[Sandbox], gate: HostGate | None = None
) -> str:
    """The text of a body with each shell line run in its sandbox, one after the other; cancelling kills its tree.

    Raises:
        OSError: a line cannot be started.
    """
    texts: list[str] = []
    left = list(sandboxes)
    for part in body.parts:
        texts.append(
            part if isinstance(part, str) else await _output(part.command, runner, working_dir, left.pop(0), gate)
        )
    return "".join(texts)


async def _output(line: str, runner: ProcessRunner, working_dir: Path, sandbox: Sandbox, gate: HostGate | None) -> str:
    command = Command(
        argv=(find_program(BASH, working_dir) or "/bin/sh", "-c", line),
        working_dir=working_dir,
        timeout=LINE_SECONDS,
        keep_head=LINE_BYTES // 2,
        keep_tail=LINE_BYTES // 2,
        sandbox=sandbox,
        gate=gate,
    )
    finished = await runner.run(command)
    output = clean(readable(finished.captured)).rstrip("\n")
    if finished.timed_out or finished.exit_code != 0:
        output = "\n".join((*([output] if output else []), *outcome_lines(finished, LINE_SECONDS)))
    return output


class AskedRules(Struct, frozen=True):
    """Rules of `allowed-tools` that may count for a run, and the entries that never do, each with its reason."""

    rules: tuple[Rule, ...] = ()
    refused: tuple[str, ...] = ()


def asked_rules(invocable: Invocable) -> AskedRules:
    """Rules that a file asks to run without a question; those of a project never cover every command or server tool."""
    rules, refused = list[Rule](), list[str]()
    for entry in invocable.allowed_tools[:MOST_RULES]:
        for text in native_rules(entry):
            rule = parse_rule(text) or parse_rule(f"{native_name(text)}(*)")
            why = "it is no rule" if rule is None else _why_not(rule, invocable.origin)
            if why or rule is None:
                refused.append(f"{one_line(entry, 80)}: {why}")
            else:
                rules.append(rule)
    return AskedRules(tuple(dict.fromkeys(rules)), tuple(dict.fromkeys(refused)))


def _why_not(rule: Rule, origin: InvocableOrigin) -> str:
    if rule.tool == BASH and not prefix_words(rule.pattern) and (rule.pattern == "*" or not rule.pattern.strip()):
        return "no rule covers every command"
    if rule.tool == BASH and (why := why_no_pattern(rule.pattern)):
        return why
    if rule.tool.endswith(ANY) and origin is InvocableOrigin.PROJECT:
        return "a project cannot allow every tool of a server"
    return ""
