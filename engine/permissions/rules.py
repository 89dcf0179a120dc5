"""Permission rules: `tool(pattern)`, what they match, and which one a call suggests.

A rule for a command matches one simple command that the shell passes on as written; a rule for a path matches
resolved paths, and a relative one only below the folder it starts from. Names of tools may be those of tools that are
not there now, of MCP servers, or of Claude Code: `Bash(git log:*)` is `bash(git log *)`.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from glob import escape
from pathlib import Path
from typing import Final, Protocol

from msgspec import Struct
from msgspec.structs import replace

from engine.permissions.command_rules import (
    BLANKS,
    STAR,
    command_effect,
    command_matches,
    command_pattern,
    plain_words,
    prefix_words,
    quote,
    why_no_match,
    why_no_pattern,
)
from engine.permissions.globs import LONGEST, WILDCARDS, glob_matches
from engine.permissions.hosts import (
    DOMAIN,
    NET,
    HostRules,
    domain_matches,
    host_name,
    hosts_effect,
    hosts_in,
    is_covered,
    is_domain,
    why_no_domain,
    why_no_hosts,
)
from engine.permissions.known_programs import skip_launchers, unknown_option
from tools.aliases import NATIVE, native_names
from tools.call_titles import SERVER_TOOL, tool_label
from tools.command_access import command_access, needs_any_host
from tools.contract import Access, ToolClass, ToolRequest, ToolSpec

ANY: Final = "__*"
"""End of a rule's name that stands for every tool of one MCP server."""
READING: Final = (
    *("ask_user", "exit_plan", "todo_write", "skill", "tool_search"),
    *("list_mcp_resources", "read_mcp_resource"),
)
"""Tools of class read that open no files."""
WEB: Final = ("web_fetch", "web_search")
"""Tools of class net."""
CLASSES: Final = {**dict.fromkeys(READING, ToolClass.READ), **dict.fromkeys((*WEB, NET), ToolClass.NET)}
_SERVER_TOOLS: Final = re.compile(r"mcp__[A-Za-z0-9-][\w-]*__\*", re.ASCII)


def is_server_tool(name: str) -> bool:
    """True for the tool of an MCP server."""
    return name.startswith(SERVER_TOOL)


def class_named(name: str) -> ToolClass | None:
    """Class of the tools that the name in a rule means, although none of them is there now; None if unknown."""
    if is_server_tool(name):
        return ToolClass.RUN
    return CLASSES.get(name)


def why_no_name(name: str) -> str:
    """Reason why the name in a rule can mean no tool, in one sentence; empty where it can."""
    if "*" not in name or _SERVER_TOOLS.fullmatch(name):
        return ""
    return f"A tool name has * only as in {SERVER_TOOL}SERVER{ANY}, for every tool of one server."


def covers(named: str, tool: str, *, widely: bool = False) -> bool:
    """True if a name in a rule means `tool`.

    `mcp__a__*` means the tools of the server `a`. As the tool x of a server `a__b` is called `mcp__a__b__x`, a tool
    with `__` in its own name must be named whole; `widely`, for a rule that denies, it is meant all the same.
    """
    if not named.endswith(ANY):
        return named == tool
    own = tool.removeprefix(named[:-1])
    return own != tool and bool(own) and not why_no_name(named) and (widely or "__" not in own)


_FOREIGN: Final = re.compile(r"(?P<kind>\s*(?:deny|ask)\s+)?(?P<name>[A-Z]\w*)(?:\((?P<pattern>.*)\))?\s*\Z", re.DOTALL)
_FILES: Final = frozenset({"Read", "Write", "Edit", "MultiEdit", "Glob", "Grep", "LS"})


def native_rules(text: str) -> tuple[str, ...]:
    """The rules that a text means, each as `tool(pattern)`; a text without a foreign name means itself.

    `Read(x)` means every tool that reads a file, in a rule that denies also the ones that search it.
    """
    found = _FOREIGN.match(text)
    if found is None or found["name"] not in NATIVE:
        return (text,)
    kind = f"{found['kind'].strip()} " if found["kind"] else ""
    if found["pattern"] is None and not kind:
        return (text,)
    pattern = _pattern(found["name"], "*" if found["pattern"] is None else found["pattern"])
    return tuple(f"{kind}{name}({pattern})" for name in native_names(found["name"], widely=bool(kind)))


def _pattern(name: str, pattern: str) -> str:
    if name == "Bash":
        return f"{pattern[:-2]} *" if pattern.endswith(":*") and pattern != ":*" else pattern
    if name not in _FILES or pattern == "*":
        return pattern
    if pattern.startswith("//"):
        pattern = pattern[1:]
    elif pattern.startswith("/"):
        pattern = pattern[1:]  # from the folder of the settings there, of the project here
    elif pattern.startswith("~/"):
        pattern = f"{Path.home()}{pattern[1:]}"
    return re.sub(r"\*\*+/?", "*", pattern.removeprefix("./"))


RULE: Final = re.compile(r"^(?P<tool>[\w.-]+\*?)\((?P<pattern>.*)\)\Z", re.DOTALL)
FILE_CLASSES: Final = frozenset({ToolClass.READ, ToolClass.EDIT})
"""Classes of tools whose rules are about paths."""
NO_PATH: Final = ("~", "./")
"""Beginnings that no path has when it is held against a rule."""


DEFINED: Final = "server:"
"""Beginning of a pattern that holds for one definition of an MCP server; `*` holds for any."""


class Rule(Struct, frozen=True):
    """One allowed pattern of one tool."""

    tool: str
    pattern: str
    folder: str = ""
    """Base of a relative path pattern; empty for the working directory of the call."""
    given: bool = False
    """Given on the command line for this process: counts in mode deny too, and `*` is every call of the tool."""

    def __str__(self) -> str:
        return f"{self.tool}({self.pattern})"


class KeptRule(Struct, frozen=True):
    """A stored rule as text, since when it is kept, and the project it belongs to."""

    text: str
    since: float = 0.0
    """Unix time; 0 if unknown."""
    project: str = ""
    """Absolute folder of the project; empty for a rule that holds everywhere."""
    source: str = ""
    """File of a rule that denies, or the flag of one that was given on the command line."""
    file: str = ""
    """File of another program in which it stands, and which alone changes it; empty for a rule of Phoenix."""
    entry: str = ""
    """The text as it stands in that file, behind `deny ` or `ask `."""


class RuleBook(Protocol):
    """The rules that outlive a conversation."""

    def rules(self, folder: Path | None = None) -> Sequence[KeptRule]:
        """All that can be read; a rule that cannot be read asks rather than allows.

        Those of the files of a project only where `folder` is in it.
        """
        ...

    def trouble(self) -> str:
        """Error of reading the rules, in one sentence; empty without one."""
        ...

    def unreadable(self, folder: Path | None = None) -> str:
        """The file if rules that deny may stand in it and cannot be read, else an empty text."""
        ...

    def add(self, rule: KeptRule) -> None:
        """Keep one more; one that is there already stays as it is.

        Raises:
            OSError: it cannot be written.
        """
        ...

    def remove(self, rule: KeptRule) -> None:
        """Keep a rule no longer, in its project or everywhere.

        Raises:
            OSError: it cannot be written.
        """
        ...


def parse_rule(text: str) -> Rule | None:
    """`bash(make test*)` as a rule; None for anything else."""
    found = RULE.match(text.strip())
    return Rule(found["tool"], found["pattern"]) if found else None


def rules_in_force(kept: Sequence[KeptRule], project: Path) -> list[Rule]:
    """Rules of `kept` that apply in `project`: its own, relative to its folder, and the global ones."""
    here = [(one, text) for one in kept if one.project in {"", str(project)} for text in native_rules(one.text)]
    return [
        replace(rule, folder=one.project, given=bool(one.source))
        for one, text in here
        if (rule := parse_rule(text)) is not None
    ]


class RuledCall(Struct, frozen=True):
    """A call that rules are checked against: a tool, its request, and the working directory."""

    tool: str
    tool_class: ToolClass
    request: ToolRequest
    working_dir: Path

    @property
    def runs_command(self) -> bool:
        """True where the pattern of a rule is one of shell commands."""
        return is_command(self.tool, self.tool_class)

    @property
    def command(self) -> str:
        """The exact text that would run."""
        return (self.request.command or self.request.summary).strip(BLANKS)


def is_command(tool: str, tool_class: ToolClass) -> bool:
    """True for a tool whose rules are about shell commands; an MCP tool has the same class, and none."""
    return tool_class is ToolClass.RUN and not is_server_tool(tool)


def matches(rule: Rule, spec: ToolSpec, request: ToolRequest, working_dir: Path) -> bool:
    """True if `rule` allows this call."""
    return allows(rule, RuledCall(spec.name, spec.tool_class, request, working_dir))


def allows(rule: Rule, call: RuledCall) -> bool:
    """True if `rule` allows this call."""
    if not covers(rule.tool, call.tool):
        return False
    if rule.given and rule.pattern == "*":
        return True
    if call.tool_class is ToolClass.NET and is_domain(rule.pattern):
        return domain_matches(rule.pattern, call.request.host)
    if call.runs_command:
        return command_matches(rule.pattern, call.command, call.working_dir)
    if is_server_tool(call.tool) and rule.pattern.startswith(DEFINED):
        return bool(call.request.server) and rule.pattern == f"{DEFINED}{call.request.server}"
    if not call.request.paths:
        return rule.pattern in {"*", call.request.summary}
    pattern = absolute_pattern(rule, call.working_dir)
    if why_no_path_pattern(pattern):
        return False
    return all(glob_matches(pattern, str(path)) for path in call.request.paths)


def rule_access(rule: Rule, command: str) -> Access:
    """Access that the words of a rule for commands are known to need: they show it to whoever reads the rule.

    Words that may follow a star are no part of that, and an option of theirs that is not known leaves no sandbox. A
    rule of the command line for every command means the network.
    """
    if rule.given and rule.pattern == "*":
        return Access.NETWORK
    first = prefix_words(rule.pattern)
    access = command_access(shlex.join(first) if first else rule.pattern.removesuffix(STAR))[0]
    words = plain_words(command)
    inner = skip_launchers(words)
    own = len(first) - len(words) + len(inner)
    return Access.NETWORK if access is Access.OUTSIDE and first and unknown_option(inner, own) else access


def rule_needs_any_host(rule: Rule) -> bool:
    """True where the words of a rule for commands show that what it allows cannot use a proxy."""
    words = prefix_words(rule.pattern)
    return needs_any_host(shlex.join(words) if words else rule.pattern.removesuffix(STAR))


def absolute_pattern(rule: Rule, working_dir: Path) -> str:
    """A path pattern from the root: a relative one, also one that begins with a star, stays below its folder."""
    if rule.pattern.startswith("/"):
        return rule.pattern
    folder = escape(rule.folder or str(working_dir)).rstrip("/")
    return f"{folder}/{rule.pattern}"


def bind(rule: Rule, call: RuledCall) -> Rule:
    """The rule as it is kept for this call: with an absolute pattern where it is one of paths."""
    if call.runs_command or not call.request.paths:
        return rule
    return Rule(rule.tool, absolute_pattern(rule, call.working_dir))


def suggest(spec: ToolSpec, request: ToolRequest, working_dir: Path) -> Rule | None:
    """The rule that is offered: this very call, or the first words of a program that only reads."""
    call = RuledCall(spec.name, spec.tool_class, request, working_dir)
    if call.runs_command:
        pattern = command_pattern(call.command, working_dir)
        return None if pattern is None else Rule(spec.name, pattern)
    if spec.tool_class is ToolClass.SPAWN:
        return Rule(spec.name, "*")  # no two tasks are equal; calls of sub-agents ask on their own
    if is_server_tool(spec.name):
        return Rule(spec.name, f"{DEFINED}{request.server}" if request.server else "*")
    if spec.tool_class is ToolClass.NET:
        host = host_name(request.host)
        if host:
            return Rule(spec.name, f"{DOMAIN}{host}")
        return Rule(spec.name, request.summary if request.url else "*")  # no two searches are equal
    if not request.paths:
        return Rule(spec.name, request.summary)
    first, *more = request.paths
    if more:
        return None  # one pattern for all of them would allow more than was asked
    rule = Rule(spec.name, escape(str(first)))
    return rule if allows(rule, call) else None


def refusal(text: str, call: RuledCall) -> str:
    """Reason why a rule written for this call is not kept, in one sentence; empty when it may be."""
    rule = parse_rule(text)
    if rule is None:
        return f"{quote(text)} is not a rule; write it as {call.tool}(pattern)."
    if rule.tool == NET and call.runs_command:
        return why_no_hosts(rule.pattern) or _why_not_reached(rule.pattern, call.request.hosts)
    if not covers(rule.tool, call.tool):
        return why_no_name(rule.tool) or f"This rule is for {quote(rule.tool)}, but {call.tool} asks."
    if allows(rule, call):
        return ""
    if call.runs_command:
        return why_no_match(rule.pattern, call.command, call.working_dir)
    if call.tool_class is ToolClass.NET and is_domain(rule.pattern):
        return why_no_domain(rule.pattern) or f"This rule does not match the host {quote(call.request.host)}."
    if not call.request.paths:
        return f"This rule does not match; write * or {quote(call.request.summary)}."
    if why := why_no_path_pattern(rule.pattern):
        return why
    pattern = absolute_pattern(rule, call.working_dir)
    missed = next((path for path in call.request.paths if not glob_matches(pattern, str(path))), call.working_dir)
    return f"This rule does not match {quote(str(missed))}; * matches any characters, ? matches one."


def _why_not_reached(pattern: str, hosts: Sequence[str]) -> str:
    """Reason why a rule about hosts does not cover those of a command; empty where it does, or none are known."""
    rules = HostRules(hosts_in(pattern))
    missed = next((one for one in hosts if not is_covered(one, rules)), "") if hosts else ""
    return "" if not missed or rules.allows_any else f"This rule does not name {missed}, which the command would reach."


def meaning(text: str, call: RuledCall) -> str:
    """Effect of a rule, in one sentence; empty for invalid text."""
    rule = parse_rule(text)
    return "" if rule is None else effect(rule, call.tool_class, has_paths=bool(call.request.paths))


def effect(rule: Rule, tool_class: ToolClass, *, has_paths: bool = True) -> str:
    """Effect of a rule, in one sentence."""
    pattern = rule.pattern
    if rule.tool == NET:
        return f"Lets every sandboxed command reach {hosts_effect(pattern)}."
    if is_command(rule.tool, tool_class):
        return command_effect(pattern)
    if tool_class is ToolClass.NET and is_domain(pattern):
        return f"Allows {rule.tool} of {_hosts(pattern)}."
    if is_server_tool(rule.tool) and pattern.startswith(DEFINED):
        return f"Allows every {tool_label(rule.tool)}, until its server is changed."
    if not has_paths or tool_class not in FILE_CLASSES:
        return f"Allows every {rule.tool}." if pattern == "*" else f"Allows {rule.tool} {quote(pattern)} only."
    if not names_many(rule):
        return f"Allows {rule.tool} on {quote(_literal(pattern))} only."
    where = "anywhere on this machine" if pattern.startswith("/*") else ""
    where = where or ("" if pattern.startswith("/") else "inside the project")
    return f"Allows {rule.tool} on every path like {quote(pattern)}{where and f' {where}'}."


def why_nothing_matches(rule: Rule, tool_class: ToolClass) -> str:
    """Reason why a rule can match no call at all, in one sentence; empty where it can."""
    pattern = rule.pattern
    if not pattern.strip():
        return f"{rule.tool}() matches nothing; write the allowed pattern between the parentheses."
    if rule.tool == NET:
        return why_no_hosts(pattern)
    if why := why_no_name(rule.tool):
        return why
    if not is_command(rule.tool, tool_class):
        if tool_class is ToolClass.NET and is_domain(pattern):
            return why_no_domain(pattern)
        return why_no_path_pattern(pattern) if tool_class in FILE_CLASSES else ""
    if pattern.strip() == "*":
        return f"{rule.tool}(*) matches nothing; start with a command, such as make test*. Mode auto never asks."
    if pattern[0] in BLANKS:
        return "A command cannot start with a space; leave it out."
    return why_no_pattern(pattern)


def why_no_path_pattern(pattern: str) -> str:
    """Reason why a pattern can match no path, in one sentence; empty where it can."""
    if ".." in pattern.split("/"):
        return "A path rule cannot contain ..; write the absolute path."
    if pattern.startswith(NO_PATH):
        return "Paths inside the working directory are relative, such as src/*; others are absolute."
    if pattern != "/" and pattern.endswith("/"):
        return f"A path cannot end with /; write {quote(f'{pattern}*')} for everything in it."
    if len(pattern) > LONGEST:
        return f"A path rule has at most {LONGEST:,} characters."
    return ""


def _hosts(pattern: str) -> str:
    named = pattern.removeprefix(DOMAIN)
    below = named.removeprefix("*.")
    return f"{quote(below)} only" if below == named else f"every host below {quote(below)}"


def names_many(rule: Rule) -> bool:
    """True when its pattern has wildcards: it may be for more than the path of one call."""
    return WILDCARDS.search(_unescape(rule.pattern)) is not None


def _unescape(pattern: str) -> str:
    """A pattern without its literal wildcards."""
    return re.sub(r"\[[*?\[]\]", "", pattern)


def _literal(pattern: str) -> str:
    return re.sub(r"\[([*?\[])\]", r"\1", pattern)
