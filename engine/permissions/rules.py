"""Permission rules: `tool(pattern)`, what they match, and which one a call suggests.

A rule for a shell command matches only a single plain command; anything the shell would expand, chain or
redirect is never matched by a wildcard (FAULTS 67).
"""

from __future__ import annotations

import re
import shlex
from fnmatch import fnmatchcase
from glob import escape
from pathlib import Path
from typing import Protocol

from msgspec import Struct

from tools.contract import ToolClass, ToolRequest, ToolSpec
from tools.wording import one_line

SHELL_SYNTAX = re.compile(r"[;&|<>`$(){}\n\r\\*?\[\]~!#]|^\s*\w+=")
EXACT_ONLY = frozenset(
    {"rm", "rmdir", "dd", "mkfs", "mv", "chmod", "chown", "kill", "pkill", "killall", "find", "ssh", "scp", "curl"}
    | {"sudo", "doas", "su", "env", "xargs", "nohup", "setsid", "timeout", "eval", "exec", "wget"}
    | {"sh", "bash", "zsh", "dash", "fish", "python", "python3", "node", "perl", "ruby"}
)
"""Programs whose next words decide what happens: only the very same command is suggested for them."""

RULE = re.compile(r"^(?P<tool>[\w.-]+)\((?P<pattern>.*)\)\Z", re.DOTALL)
GLOB = re.compile(r"[*?\[]")
ANYWHERE = ("*", "?", "[", "/")
"""What a path pattern begins with that may match outside the working directory."""
BLANKS = " \t\n"
"""What a shell drops at both ends of a command."""
SHORTEST_TO_CUT = 60
"""Letters of a pattern from which a sentence shows only its beginning."""
STAR = "[*]"
"""At the end of a command pattern: the command itself ends with a star."""


class Rule(Struct, frozen=True):
    """One allowed pattern of one tool."""

    tool: str
    pattern: str

    def __str__(self) -> str:
        return f"{self.tool}({self.pattern})"


class KeptRule(Struct, frozen=True):
    """A rule as text, and since when it is kept (Unix time, 0 where nobody knows)."""

    text: str
    since: float = 0.0


class RuleBook(Protocol):
    """The rules that outlive a conversation."""

    def rules(self) -> tuple[str, ...]:
        """All of them, as text; none where they cannot be read, which asks rather than allows."""
        ...

    def listed(self) -> tuple[KeptRule, ...]:
        """All of them.

        Raises:
            OSError: they cannot be read.
        """
        ...

    def add(self, rule: str, since: float = 0.0) -> None:
        """Keep one more.

        Raises:
            OSError: it cannot be written.
        """
        ...

    def remove(self, rule: str) -> None:
        """Keep one no longer.

        Raises:
            OSError: it cannot be written.
        """
        ...


def parse_rule(text: str) -> Rule | None:
    """`bash(make test*)` as a rule; None for anything else."""
    found = RULE.match(text.strip())
    return Rule(found["tool"], found["pattern"]) if found else None


class Call(Struct, frozen=True):
    """What a rule is held against: a tool, what it would do, and the working directory."""

    tool: str
    tool_class: ToolClass
    request: ToolRequest
    working_dir: Path

    @property
    def command(self) -> str:
        """What would run, to the letter."""
        return (self.request.command or self.request.summary).strip(BLANKS)


def matches(rule: Rule, spec: ToolSpec, request: ToolRequest, working_dir: Path) -> bool:
    """Whether `rule` allows this call."""
    return allows(rule, Call(spec.name, spec.tool_class, request, working_dir))


def allows(rule: Rule, call: Call) -> bool:
    """Whether `rule` allows this call."""
    if rule.tool != call.tool:
        return False
    if call.tool_class is ToolClass.RUN:
        return _command_matches(rule.pattern, call.command)
    if not call.request.paths:
        return rule.pattern in {"*", call.request.summary}
    return all(fnmatchcase(_path_text(path, call.working_dir), rule.pattern) for path in call.request.paths)


def suggest(spec: ToolSpec, request: ToolRequest, working_dir: Path) -> Rule | None:
    """The rule that "always" offers: wide enough to be of use, never wider than its first words say."""
    call = Call(spec.name, spec.tool_class, request, working_dir)
    if spec.tool_class is ToolClass.RUN:
        pattern = _command_pattern(call.command)
        return None if pattern is None else Rule(spec.name, pattern)
    if spec.tool_class is ToolClass.SPAWN:
        return Rule(spec.name, "*")  # no two tasks read alike; what sub-agents do asks for itself
    if not request.paths:
        return Rule(spec.name, request.summary)
    first, *more = request.paths
    if more:
        return None  # one pattern for all of them would let through more than was asked
    return Rule(spec.name, escape(_path_text(first, working_dir)))


def refusal(text: str, call: Call) -> str:
    """Why a rule that somebody wrote for this call is not kept, in one sentence; empty where it may be."""
    rule = parse_rule(text)
    if rule is None:
        return f"{shortened(text)} is no rule: write it as {call.tool}(pattern)."
    if rule.tool != call.tool:
        return f"This rule is for {rule.tool}, but {call.tool} asks."
    if allows(rule, call):
        return ""
    if call.tool_class is ToolClass.RUN:
        return _why_no_command(rule.pattern, call.command)
    if not call.request.paths:
        return f"This rule does not match: write * or {shortened(call.request.summary)}."
    missed = next(
        text for path in call.request.paths if not fnmatchcase(text := _path_text(path, call.working_dir), rule.pattern)
    )
    return f"This rule does not match {shortened(missed)}: * stands for any letters, ? for one."


def meaning(text: str, call: Call) -> str:
    """What a rule lets through, in one sentence; empty for what is no rule."""
    rule = parse_rule(text)
    return "" if rule is None else effect(rule, call.tool_class, has_paths=bool(call.request.paths))


def effect(rule: Rule, tool_class: ToolClass, *, has_paths: bool = True) -> str:
    """What a rule lets through, in one sentence."""
    pattern = rule.pattern
    if tool_class is ToolClass.RUN:
        first = pattern[:-1]
        if not pattern.endswith("*") or SHELL_SYNTAX.search(first):
            return "Allows this very command and no other."
        return f"Allows {shortened(first)} with any words behind it." if first.strip() else "Allows no command."
    if not has_paths:
        return f"Allows every {rule.tool}." if pattern == "*" else f"Allows {rule.tool} {shortened(pattern)} alone."
    if not GLOB.search(pattern):
        return f"Allows {rule.tool} on {shortened(pattern)} alone."
    where = ", also outside the working directory" if pattern.startswith(ANYWHERE) else ""
    return f"Allows {rule.tool} on every path like {shortened(pattern)}{where}."


def _why_no_command(pattern: str, command: str) -> str:
    if pattern.endswith("*") and SHELL_SYNTAX.search(command):
        return "A rule with * never matches a command with shell signs in it: write the whole command."
    return (
        "This rule does not match: begin with the words of the command, such as "
        f"{shortened(_command_pattern(command) or command)}."
    )


def shortened(text: str) -> str:
    """A text in quotes, as short as a sentence can bear."""
    return f"“{one_line(text, SHORTEST_TO_CUT)}”"


def _command_matches(pattern: str, command: str) -> bool:
    if command == (f"{pattern.removesuffix(STAR)}*" if pattern.endswith(STAR) else pattern):
        return True
    if SHELL_SYNTAX.search(command) or not pattern.endswith("*"):
        return False
    prefix = pattern[:-1]
    return command.startswith(prefix) and (prefix.endswith(" ") or command[len(prefix) : len(prefix) + 1] in {"", " "})


def _command_pattern(command: str) -> str | None:
    """None for a command that no pattern stands for: one that ends as if its star were meant literally."""
    if command.endswith(STAR):
        return None
    if command.endswith("*"):
        return f"{command[:-1]}{STAR}"
    if SHELL_SYNTAX.search(command):
        return command
    try:
        words = shlex.split(command)
    except ValueError:
        return command
    if not words or not words[0] or words[0] in EXACT_ONLY or "/" in words[0]:
        return command
    known = " ".join(words[:2])
    return f"{known}*" if command.startswith(known) else command


def _path_text(path: Path, working_dir: Path) -> str:
    return str(path.relative_to(working_dir)) if path.is_relative_to(working_dir) else str(path)
