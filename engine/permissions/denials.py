"""Rules that deny or ask: `deny TOOL(PATTERN)`, `ask TOOL(PATTERN)`. They count in every mode, before any that allows.

Their text begins with a word that `parse_rule` refuses, so none is ever taken for a rule that allows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from glob import escape
from pathlib import Path
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from engine.permissions.command_denials import Match, match_denial
from engine.permissions.command_rules import quote
from engine.permissions.globs import LONGEST, WILDCARDS, glob_matches
from engine.permissions.hosts import NET, domain_matches, hosts_effect, hosts_in, is_domain, is_host, why_no_domain
from engine.permissions.made_programs import Unknowns, unknown_programs
from engine.permissions.place import project_of, top_of
from engine.permissions.rules import (
    FILE_CLASSES,
    KeptRule,
    Rule,
    RuleBook,
    RuledCall,
    absolute_pattern,
    covers,
    is_command,
    native_rules,
    parse_rule,
    why_no_name,
)
from tools.contract import ToolClass
from tools.files.links import real_path

DENY: Final = "deny "
"""Beginning of the text of a rule that denies."""
ASK: Final = "ask "
"""Beginning of the text of a rule that asks."""
ASKED: Final = "the rule {rule} in {source} asks about this"
REFUSED: Final = "{tool} was not run: the rule {rule} in {source} denies it. Do not try the same in another way."
UNREADABLE: Final = "{source} may hold a rule that denies this, and cannot be read"
MAYBE_DENIED: Final = "the rule {rule} may deny this: {reason}"
_BARE_NAME: Final = re.compile(r"[\w.-]+\*?")


class DenyRule(Struct, frozen=True):
    """A rule that denies, and where it stands."""

    rule: Rule
    source: str = ""
    """File, or flag of the command line."""
    asks: bool = False
    """True for a rule that asks in place of denying."""

    def __str__(self) -> str:
        return f"{self.rule.tool}({self.rule.pattern})"


class Denials(Struct, frozen=True):
    """The rules that deny in one place."""

    rules: tuple[DenyRule, ...] = ()
    unreadable: str = ""
    """File whose rules cannot be read, or one rule of it; empty if all can."""


NO_DENIALS: Final = Denials()


class Refusal(Struct, frozen=True):
    """A call that a rule denies; the model reads `text`."""

    text: str


class Doubt(Struct, frozen=True):
    """A call that a rule may deny, and the reason for the question."""

    reason: str


def is_denial(text: str) -> bool:
    """True for the text of a rule that denies, valid or not."""
    return text.strip().startswith(DENY)


def narrows(text: str) -> bool:
    """True for the text of a rule that denies or asks, valid or not."""
    return text.strip().startswith((DENY, ASK))


def parse_denial(text: str) -> Rule | None:
    """`deny bash(git push*)` as a rule, `ask bash` as one for every call of the tool; None for anything else."""
    if not narrows(text):
        return None
    named = text.strip().partition(" ")[2].strip()
    return Rule(named, "*") if _BARE_NAME.fullmatch(named) else parse_rule(named)


def denials_in_force(kept: Sequence[KeptRule], project: Path, unreadable: str = "", top: Path | None = None) -> Denials:
    """Rules of `kept` that deny or ask in `project`; an invalid one makes its file count as unreadable.

    In a worktree at `top` a rule about a path of the project is about the same file there too.
    """
    found: list[DenyRule] = []
    for one in kept:
        if not narrows(one.text) or one.project not in {"", str(project)}:
            continue
        for rule in map(parse_denial, native_rules(one.text)):
            if rule is None or why_no_name(rule.tool) or not rule.pattern.strip():
                unreadable = unreadable or f"{quote(one.text)} in {one.source}"
            else:
                rule = Rule(rule.tool, rule.pattern, one.project)
                both = (rule, *_in_worktree(rule, project, top or project))
                found += [DenyRule(each, one.source, asks=not is_denial(one.text)) for each in both]
    return Denials(tuple(found), unreadable)


def _in_worktree(rule: Rule, project: Path, top: Path) -> Iterator[Rule]:
    """The rule about the same files of another worktree of the project at `top`; none for one about no path of it."""
    main = escape(str(project))
    if top != project and rule.pattern.startswith(f"{main}/"):
        yield replace(rule, pattern=f"{escape(str(top))}{rule.pattern.removeprefix(main)}")
    elif top != project and rule.folder and not rule.pattern.startswith(("/", "~/")):
        yield replace(rule, folder=str(top))


def denials_in(book: RuleBook, folder: Path) -> Denials:
    """Rules of a book that deny or ask in a working directory."""
    return denials_in_force(book.rules(folder), project_of(folder), book.unreadable(folder), top_of(folder))


def verdict_on(denials: Denials, call: RuledCall) -> Refusal | Doubt | None:
    """Hold a call against the rules that deny; None if none is about it."""
    doubt: Doubt | None = None
    unknown = unknown_programs(call.command, call.working_dir) if _is_judged(denials, call) else None
    for one in denials.rules:
        match, reason = _match(one.rule, call, unknown)
        if match is not Match.NO and one.asks:
            doubt = doubt or Doubt(ASKED.format(rule=quote(str(one)), source=one.source or "the rules"))
        elif match is Match.YES:
            return Refusal(REFUSED.format(tool=call.tool, rule=one, source=one.source or "the rules"))
        elif match is Match.MAYBE and doubt is None:
            doubt = Doubt(MAYBE_DENIED.format(rule=quote(str(one)), reason=reason))
    if denials.unreadable:
        return doubt or Doubt(UNREADABLE.format(source=denials.unreadable))
    return doubt


def _is_judged(denials: Denials, call: RuledCall) -> bool:
    """True where a rule is about some commands of a call: only then its programs are looked at."""
    rules = (one.rule for one in denials.rules) if call.runs_command else ()
    return any(one.pattern.strip() != "*" and covers(one.tool, call.tool, widely=True) for one in rules)


def _match(rule: Rule, call: RuledCall, unknown: Unknowns | None) -> tuple[Match, str]:
    if not covers(rule.tool, call.tool, widely=True):
        return Match.NO, ""
    if rule.pattern.strip() == "*":
        return Match.YES, ""
    if call.runs_command:
        return match_denial(rule.pattern, call.command, unknown)
    if call.tool_class is ToolClass.NET and is_domain(rule.pattern):
        matched = domain_matches(rule.pattern, call.request.host)
    elif call.request.paths:
        matched = any(_denies_path(rule, path, call.working_dir) for path in call.request.paths)
    else:
        matched = rule.pattern == call.request.summary
    return (Match.YES if matched else Match.NO), ""


def _denies_path(rule: Rule, path: Path, working_dir: Path) -> bool:
    """True if a pattern means this path, or a folder around it; links in the plain part of the pattern count."""
    return any(
        glob_matches(one, str(path)) or glob_matches(f"{one.rstrip('/')}/*", str(path))
        for one in path_patterns(rule, working_dir)
    )


def path_patterns(rule: Rule, working_dir: Path) -> set[str]:
    """The absolute patterns of a rule for paths: as written, and with the links of its plain part resolved."""
    pattern = rule.pattern
    if pattern.startswith("~/"):
        pattern = f"{Path.home()}{pattern[1:]}"
    whole = absolute_pattern(Rule(rule.tool, pattern.removeprefix("./"), rule.folder), working_dir).rstrip("/") or "/"
    return {whole, _real(whole)}


def _real(pattern: str) -> str:
    """The pattern with the links of its folders resolved, up to its first wildcard."""
    wild = WILDCARDS.search(pattern)
    plain = pattern if wild is None else pattern[: pattern.rfind("/", 0, wild.start()) + 1]
    try:
        return f"{real_path(plain)}{pattern[len(plain.rstrip('/')) :]}" if plain.strip("/") else pattern
    except (OSError, ValueError):
        return pattern


def why_denies_nothing(rule: Rule, tool_class: ToolClass) -> str:
    """Reason why a rule that denies means no call at all, in one sentence; empty where it means some."""
    if not rule.pattern.strip():
        return f"{rule.tool}() denies nothing; write * between the parentheses to deny every call."
    if why := why_no_name(rule.tool):
        return why
    if rule.tool == NET:
        return next((f"{quote(one)} is no host." for one in hosts_in(rule.pattern) if not is_host(one)), "")
    if tool_class is ToolClass.NET and is_domain(rule.pattern):
        return why_no_domain(rule.pattern)
    if tool_class in FILE_CLASSES and ".." in rule.pattern.split("/"):
        return "A path rule cannot contain ..; write the absolute path."
    if len(rule.pattern) > LONGEST:
        return f"A rule has at most {LONGEST:,} characters."
    return ""


def denial_effect(rule: Rule, tool_class: ToolClass, *, asks: bool = False) -> str:
    """Effect of a rule that denies or asks, in one sentence."""
    told = _denial_effect(rule, tool_class)
    return f"Asks before{told.removeprefix('Denies')}" if asks else told


def _denial_effect(rule: Rule, tool_class: ToolClass) -> str:
    pattern = rule.pattern.strip()
    if rule.tool == NET:
        return f"Keeps sandboxed commands from {hosts_effect(pattern)}, in every mode."
    if pattern == "*":
        return f"Denies every {rule.tool}, in every mode."
    if is_command(rule.tool, tool_class):
        what = f"commands that start with {quote(pattern[:-1].strip())}" if pattern.endswith("*") else quote(pattern)
        return f"Denies {what}, in every mode, also as a part of another command."
    if tool_class is ToolClass.NET and is_domain(pattern):
        return f"Denies {rule.tool} of {quote(pattern)}, in every mode."
    below = " and what is in it" if tool_class in FILE_CLASSES and not WILDCARDS.search(pattern) else ""
    return f"Denies {rule.tool} on {quote(pattern)}{below}, in every mode."
