"""Permission rules: `tool(pattern)`, what they match, and which one a call suggests.

A rule for a shell command matches only a single plain command; anything the shell would expand, chain or
redirect is never matched by a wildcard (FAULTS 67).
"""

from __future__ import annotations

import re
import shlex
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Protocol

from msgspec import Struct

from tools.contract import ToolClass, ToolRequest, ToolSpec

SHELL_SYNTAX = re.compile(r"[;&|<>`$(){}\n\r\\*?\[\]~!#]|^\s*\w+=")
EXACT_ONLY = frozenset(
    {"rm", "rmdir", "dd", "mkfs", "mv", "chmod", "chown", "kill", "pkill", "killall", "find", "ssh", "scp", "curl"}
    | {"sudo", "doas", "su", "env", "xargs", "nohup", "setsid", "timeout", "eval", "exec", "wget"}
    | {"sh", "bash", "zsh", "dash", "fish", "python", "python3", "node", "perl", "ruby"}
)
"""Programs whose next words decide what happens: only the very same command is suggested for them."""

RULE = re.compile(r"^(?P<tool>[a-z_]+)\((?P<pattern>.*)\)$", re.DOTALL)


class Rule(Struct, frozen=True):
    """One allowed pattern of one tool."""

    tool: str
    pattern: str

    def __str__(self) -> str:
        return f"{self.tool}({self.pattern})"


class RuleBook(Protocol):
    """The rules that outlive a conversation."""

    def rules(self) -> tuple[str, ...]:
        """All of them, as text."""
        ...

    def add(self, rule: str) -> None:
        """Keep one more.

        Raises:
            OSError: it cannot be written.
        """
        ...


def parse_rule(text: str) -> Rule | None:
    """`bash(make test*)` as a rule; None for anything else."""
    found = RULE.match(text.strip())
    return Rule(found["tool"], found["pattern"]) if found else None


def matches(rule: Rule, spec: ToolSpec, request: ToolRequest, working_dir: Path) -> bool:
    """Whether `rule` allows this call."""
    if rule.tool != spec.name:
        return False
    if spec.tool_class is ToolClass.RUN:
        return _command_matches(rule.pattern, request.summary)
    if not request.paths:
        return rule.pattern in {"*", request.summary}
    return all(fnmatchcase(_path_text(path, working_dir), rule.pattern) for path in request.paths)


def suggest(spec: ToolSpec, request: ToolRequest, working_dir: Path) -> Rule:
    """The rule that "always" offers: wide enough to be of use, never wider than its first words say."""
    if spec.tool_class is ToolClass.RUN:
        return Rule(spec.name, _command_pattern(request.summary))
    if len(request.paths) != 1:
        return Rule(spec.name, request.summary)
    return Rule(spec.name, _path_text(request.paths[0], working_dir))


def _command_matches(pattern: str, command: str) -> bool:
    if pattern == command:
        return True
    if SHELL_SYNTAX.search(command) or not pattern.endswith("*"):
        return False
    prefix = pattern[:-1]
    return command.startswith(prefix) and (prefix.endswith(" ") or command[len(prefix) : len(prefix) + 1] in {"", " "})


def _command_pattern(command: str) -> str:
    if SHELL_SYNTAX.search(command):
        return command
    try:
        words = shlex.split(command)
    except ValueError:
        return command
    if not words or words[0] in EXACT_ONLY or "/" in words[0]:
        return command
    known = " ".join(words[:2])
    return f"{known}*" if command.startswith(known) else command


def _path_text(path: Path, working_dir: Path) -> str:
    return str(path.relative_to(working_dir)) if path.is_relative_to(working_dir) else str(path)
