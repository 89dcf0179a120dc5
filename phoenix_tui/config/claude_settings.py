"""Settings files of Claude Code: the part that Phoenix has, read the same from `--settings` and from `.claude`.

Each key counts, or is named. A malformed value costs its own key alone.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from glob import escape
from pathlib import Path
from typing import Final, cast

from msgspec import Struct

from engine.extensions.hooks.located_json import LocatedError, located
from engine.permissions.denials import ASK, DENY, parse_denial, why_denies_nothing
from engine.permissions.foreign_rules import native_rules
from engine.permissions.rules import FILE_CLASSES, Rule, parse_rule, why_nothing_matches
from engine.permissions.tool_names import class_named, why_no_name
from engine.ports.profiles import KNOWN_TOOLS
from tools.contract import ToolClass
from tools.foreign_names import WITHOUT

MOST_BYTES: Final = 256 * 1024
MOST_RULES: Final = 2_000
RULES: Final = ("allow", "ask", "deny")
INSTEAD: Final = {
    "model": "/model chooses it",
    "effortLevel": "/effort chooses it",
    "outputStyle": "/profile has such texts",
    "statusLine": "[status_line] of config.toml is yours",
    "sandbox": "/sandbox chooses it",
    "theme": "/config chooses it",
    "enableAllProjectMcpServers": "/trust and /mcp decide",
    "enabledMcpjsonServers": "/trust and /mcp decide",
    "disabledMcpjsonServers": "/mcp switches servers off",
}
"""Settings without an effect here, and the place where Phoenix has their like."""
_SERVER: Final = re.compile(r"mcp__(?:(?!__).)+")
_WITHOUT_PATTERN: Final = re.compile(r"[^()]*")
_CLASSES: Final = {
    **dict.fromkeys(KNOWN_TOOLS, ToolClass.READ),
    **dict.fromkeys(("write_file", "patch"), ToolClass.EDIT),
    **dict.fromkeys(("spawn_agents", "spawn_task"), ToolClass.SPAWN),
    **dict.fromkeys(("web_fetch", "web_search"), ToolClass.NET),
    "bash": ToolClass.RUN,
}
_LISTED: Final = 8
"""Keys and rules that one sentence names."""


class ClaudeSettings(Struct, frozen=True):
    """Content of one file."""

    values: Mapping[str, object] = {}
    permissions: Mapping[str, object] = {}
    allow: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()
    """Clauses about values that have not the form they must have."""
    is_unreadable: bool = False
    """True where nothing of it is known."""

    def unused(self, used: frozenset[str]) -> list[str]:
        """Keys without an effect, those of permissions as `permissions.KEY`."""
        own = {f"permissions.{key}" for key in self.permissions} | (self.values.keys() - {"permissions"})
        return sorted(own - used)


def parse_settings(content: bytes) -> ClaudeSettings:
    """Read a settings file."""
    try:
        document = located(content)
    except LocatedError as error:
        return ClaudeSettings(faults=(f"line {error.line}: {error.why}",), is_unreadable=True)
    if not isinstance(document, dict):
        return ClaudeSettings(faults=("it must be one JSON object",), is_unreadable=True)
    values = cast("dict[str, object]", document)
    found = values.get("permissions", {})
    faults = [] if isinstance(found, dict) else ["permissions must be an object"]
    permissions = cast("dict[str, object]", found) if isinstance(found, dict) else {}
    rules = {name: tuple(_texts(permissions, name, faults)) for name in RULES}
    return ClaudeSettings(values, permissions, rules["allow"], rules["ask"], rules["deny"], tuple(faults))


def _texts(table: Mapping[str, object], name: str, faults: list[str]) -> Iterator[str]:
    value = table.get(name, [])
    if not isinstance(value, list):
        faults.append(f"permissions.{name} must be a list of rules")
        return
    entries = cast("list[object]", value)
    if len(entries) > MOST_RULES:
        faults.append(f"permissions.{name} has more than {MOST_RULES:,} rules; the others are left out")
    for entry in entries[:MOST_RULES]:
        if isinstance(entry, str) and entry.strip():
            yield entry.strip()
        else:
            faults.append(f"permissions.{name} has an entry that is no rule")


def whole_rule(text: str) -> str:
    """A rule with a pattern: a tool alone means all its calls, a server alone all its tools."""
    name = text.strip()
    if not _WITHOUT_PATTERN.fullmatch(name):
        return name.removesuffix("()") + "(*)" if name.endswith("()") else name
    return f"{name}__*(*)" if _SERVER.fullmatch(name) else f"{name}(*)"


def placed_rules(text: str, kind: str, folder: Path) -> tuple[list[str], str]:
    """Native rules that an entry of a file in `folder` means, and the reason where it means none.

    `kind` is empty for a rule that allows, else `DENY` or `ASK`. Patterns of paths become absolute.
    """
    if text.partition("(")[0].strip() in WITHOUT:
        return [], ""  # a tool that is not there can do nothing
    kept: list[str] = []
    for native in native_rules(f"{kind}{whole_rule(text)}"):
        rule = parse_denial(native) if kind else parse_rule(native)
        if rule is None:
            return [], "it is neither a tool nor tool(pattern)"
        tool_class = _CLASSES.get(rule.tool) or class_named(rule.tool)
        if (why := why_no_name(rule.tool)) or tool_class is None:
            return [], why.rstrip(".") or "there is no such tool"
        rule = _placed(rule, tool_class, folder)
        why = why_denies_nothing(rule, tool_class) if kind else why_nothing_matches(rule, tool_class)
        if why:
            return [], why.rstrip(".")
        kept.append(f"{kind}{rule}")
    return kept, ""


def _placed(rule: Rule, tool_class: ToolClass, folder: Path) -> Rule:
    """The rule with an absolute pattern, where it is one of paths."""
    pattern = rule.pattern
    if tool_class not in FILE_CLASSES or pattern.strip() == "*":
        return rule
    if not pattern.startswith(("/", "~/")):
        pattern = f"{escape(str(folder)).rstrip('/')}/{pattern.removeprefix('./')}"
    climbs = ".." in pattern.split("/")
    return Rule(rule.tool, os.path.normpath(pattern) if climbs else pattern)


def faults_of(settings: ClaudeSettings, used: frozenset[str], folder: Path, *, given: bool = False) -> list[str]:
    """Clauses about everything of a file that has no effect: values, rules and keys.

    `given`: on the command line, where a rule may allow every call of a tool.
    """
    wrong = [
        f"the rule “{text[:60]}” of permissions.{name}: {why}"
        for name, kind in (("allow", ""), ("ask", ASK), ("deny", DENY))
        for text in getattr(settings, name)
        if (why := placed_rules(text, kind, folder)[1]) and not (given and whole_rule(text).endswith("(*)"))
    ]
    unused = [f"{name} ({INSTEAD[name]})" if name in INSTEAD else name for name in settings.unused(used)]
    keys = ", ".join(unused[:_LISTED]) + (f" and {len(unused) - _LISTED} more" if len(unused) > _LISTED else "")
    without = [f"without effect here: {keys}"] if unused else []
    return [*settings.faults, *wrong[:_LISTED], *without]
