"""Permission rules from `--allowedTools` and `--disallowedTools`: they hold for this process and are never written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from engine.permissions.denials import DENY, parse_denial
from engine.permissions.foreign_rules import native_rules
from engine.permissions.rules import KeptRule, RuleBook, parse_rule, why_nothing_matches
from engine.permissions.tool_names import CLASSES, is_server_tool, why_no_name
from engine.ports.profiles import KNOWN_TOOLS
from phoenix_tui.config.rule_layer import RuleLayer
from tools.contract import ToolClass
from tools.foreign_names import FOREIGN, NATIVE, WITHOUT

ALLOWED: Final = "--allowedTools"
DENIED: Final = "--disallowedTools"
GIVEN: Final = "This rule was given on the command line with {flag}; start Phoenix without it."


class FlagRules(RuleLayer):
    """The rules of the user's file, with those of the command line before them."""

    def __init__(self, book: RuleBook, given: tuple[KeptRule, ...]) -> None:
        super().__init__(book)
        self._given = given

    def rules(self, folder: Path | None = None) -> Sequence[KeptRule]:
        """All that can be read."""
        return (*self._given, *super().rules(folder))

    def remove(self, rule: KeptRule) -> None:
        """Keep a rule of the file no longer.

        Raises:
            OSError: it cannot be written, or the rule is one of the command line.
        """
        for one in self._given:
            if (one.text, one.project) == (rule.text, rule.project):
                raise OSError(GIVEN.format(flag=one.source))
        super().remove(rule)


def with_flags(book: RuleBook, allowed: Sequence[str], denied: Sequence[str]) -> RuleBook:
    """The rules of `book` and those of the flags; their texts were checked by `why_no_tools`."""
    given = [KeptRule(_whole(text), source=ALLOWED) for text in _wanted(allowed)]
    given += [KeptRule(f"{DENY}{text}", source=DENIED) for text in _wanted(denied)]
    return FlagRules(book, tuple(given)) if given else book


def listed(text: str) -> Iterator[str]:
    """Entries of a list whose parts are separated by commas or blanks outside parentheses."""
    depth, entry = 0, ""
    for sign in text:
        depth += (sign == "(") - (sign == ")" and depth > 0)
        if not depth and (sign == "," or sign.isspace()):
            if entry:
                yield entry
            entry = ""
        else:
            entry += sign
    if entry:
        yield entry


def why_no_tools(flag: str, texts: Sequence[str]) -> str:
    """Reason why the value of a flag is no list of tools and rules, in one sentence; empty where it is one."""
    for text in _wanted(texts):
        for native in native_rules(f"{DENY}{text}"):
            rule = parse_denial(native)
            if rule is None:
                return f"{flag}: '{text[:60]}' is neither a tool nor tool(pattern), such as bash(git log*)."
            if why := why_no_name(rule.tool):
                return f"{flag}: {why}"
            if not is_server_tool(rule.tool) and rule.tool not in _KNOWN:
                return f"{flag}: there is no tool '{rule.tool[:60]}'. The tools are {', '.join(KNOWN_TOOLS)}."
    return ""


def without_effect(allowed: Sequence[str]) -> Iterator[str]:
    """Reasons why rules of `--allowedTools` allow nothing, each as one sentence."""
    for text in _wanted(allowed):
        for native in native_rules(_whole(text)):
            rule = parse_rule(native)
            if rule is not None and rule.pattern != "*" and rule.tool == "bash":
                why = why_nothing_matches(rule, ToolClass.RUN)
                if why:
                    yield f"{ALLOWED}: {text}: {why}"


_KNOWN: Final = frozenset({*KNOWN_TOOLS, *CLASSES, *NATIVE.values(), *FOREIGN})


def _wanted(texts: Iterable[str]) -> list[str]:
    """Entries of all values, without foreign tools that have no counterpart."""
    return [entry for text in texts for entry in listed(text) if entry.partition("(")[0] not in WITHOUT]


def _whole(text: str) -> str:
    return text if "(" in text else f"{text}(*)"
