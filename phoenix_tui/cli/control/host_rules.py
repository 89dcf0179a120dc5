"""Rules that a host gives for its connection: tools that run without a question, and calls that are refused."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from engine.permissions.denials import ASK, DENY
from engine.permissions.rules import KeptRule, RuleBook, parse_rule
from phoenix_tui.config.claude_settings import whole_rule
from phoenix_tui.config.rule_layer import RuleLayer
from tools.contract import JsonObject, JsonValue

MOST_RULES: Final = 10_000
ALLOWED: Final = "a rule of the host"
"""Source of its rules: those of a source count in mode deny too, and `*` means every call of the tool."""
FILES: Final = frozenset({"Read", "Write", "Edit", "MultiEdit", "Glob", "Grep"})
"""Tools whose absolute patterns begin with two slashes elsewhere."""
_WITHOUT_PATTERN: Final = re.compile(r"[^()]*")


class HostRules(RuleLayer):
    """The rules of the user, and those of the host; the host's last as long as its connection."""

    def __init__(self, book: RuleBook) -> None:
        super().__init__(book)
        self._rules: list[KeptRule] = []
        """Rules of flags and folders."""
        self._answered: list[KeptRule] = []
        """Rules of answers to questions, which a later answer may replace."""

    def rules(self, folder: Path | None = None) -> Sequence[KeptRule]:
        """All rules in force."""
        return (*self._rules, *self._answered, *super().rules(folder))

    def allow(self, text: str) -> None:
        """Let what `text` names run without a question, such as `Bash(git log:*)` or `Read`."""
        self._keep(KeptRule(whole_rule(text), source=ALLOWED))

    def deny(self, text: str) -> None:
        """Refuse what `text` names, in every mode."""
        self._keep(KeptRule(_text(text, denies=True), source=ALLOWED))

    def ask(self, text: str) -> None:
        """Ask about what `text` names, in every mode."""
        self._keep(KeptRule(f"{ASK}{whole_rule(text)}", source=ALLOWED))

    def answer(self, texts: Iterable[str], *, denies: bool, replaces: bool = False) -> None:
        """Add rules of an answer, in the place of all earlier ones of its kind where it `replaces` them."""
        if replaces:
            self._answered = [one for one in self._answered if one.text.startswith(DENY) is not denies]
        for text in texts:
            self._keep(KeptRule(_text(text, denies), source=ALLOWED), self._answered)

    def withdraw(self, text: str, *, denies: bool = False) -> None:
        """Forget a rule of the host."""
        gone = _text(text, denies)
        for kept in (self._rules, self._answered):
            kept[:] = [one for one in kept if one.text != gone]

    def _keep(self, rule: KeptRule, kept: list[KeptRule] | None = None) -> None:
        kept = self._rules if kept is None else kept
        if rule not in kept and len(kept) < MOST_RULES:
            kept.append(rule)


def _text(text: str, denies: bool) -> str:
    return f"{DENY if denies else ''}{whole_rule(text)}"


def is_whole(text: str) -> bool:
    """True for a rule that names a tool alone."""
    return _WITHOUT_PATTERN.fullmatch(text.strip()) is not None


def rule_texts(entries: JsonValue) -> Iterable[str]:
    """The rules of a permission update, as lists write them.

    Raises:
        ValueError: an entry is none.
    """
    if not isinstance(entries, list):
        raise ValueError("rules must be a list")  # noqa: TRY004 - a fault of the host's data
    for entry in entries:
        name = entry.get("toolName") if isinstance(entry, dict) else None
        content = entry.get("ruleContent", "") if isinstance(entry, dict) else None
        if not isinstance(name, str) or not name or not isinstance(content, str):
            raise ValueError("a rule needs toolName, and ruleContent as a text")
        yield f"{name}({content})" if content else name


def suggestion(rule: str, foreign: str) -> JsonObject | None:
    """The permission update that a host may send back to keep the rule that Phoenix would; None without a rule."""
    parsed = parse_rule(rule)
    if parsed is None:
        return None
    is_absolute = parsed.pattern.startswith("/") and foreign in FILES
    entry: JsonObject = {"toolName": foreign, "ruleContent": f"/{parsed.pattern}" if is_absolute else parsed.pattern}
    if parsed.pattern == "*":
        entry.pop("ruleContent")
    entries: list[JsonValue] = [entry]
    return {"type": "addRules", "rules": entries, "behavior": "allow", "destination": "session"}
