"""Changes of the permission rules, each with its way back."""

from __future__ import annotations

from msgspec import Struct

from engine.api.engine import RulesApi
from engine.executor.requests import EngineError
from engine.rule_store import ActiveRule
from phoenix_tui.text.request_text import one_line


class RuleChange(Struct, frozen=True):
    """One change, which undo turns around."""

    added: ActiveRule | None = None
    removed: ActiveRule | None = None


class RuleChanges:
    """Changes since the sheet was opened. Each method returns its result in words, or raises EngineError."""

    def __init__(self, rules: RulesApi, way_back: str) -> None:
        self._rules = rules
        self._way_back = way_back
        """Keys that undo the last change, in words."""
        self._done: list[RuleChange] = []

    def remove(self, rule: ActiveRule) -> str:
        """Take one back."""
        self._rules.remove(rule)
        self._done.append(RuleChange(removed=rule))
        return f"{one_line(rule.text)} removed; {self._way_back}."

    def keep(self, old: ActiveRule | None, new: ActiveRule) -> str:
        """Another text for a rule, or a new one."""
        if any((one.text, one.place) == (new.text, new.place) for one in self._rules.all()):
            raise EngineError("This rule already exists.")
        if old is not None:
            self._done.append(RuleChange(self._rules.replace(old, new.text), old))
        else:
            self._rules.add(new)
            self._done.append(RuleChange(new))
        return "Saved; the rule now applies."

    def move(self, rule: ActiveRule, here: str) -> str:
        """Move a rule from a project to everywhere, or from everywhere to the project `here`."""
        if rule.conversation_id:
            raise EngineError("A rule of one conversation cannot be moved; add a new one instead.")
        if not rule.project and any(one.text == rule.text and one.project == here for one in self._rules.all()):
            raise EngineError("This rule already exists.")
        moved = self._rules.move(rule, "" if rule.project else here)
        self._done.append(RuleChange(moved, rule))
        return (
            "The rule now applies to this project only." if moved.project else "The rule now applies to all projects."
        )

    def undo(self) -> str:
        """Turn the last change around."""
        if not self._done:
            return "There is nothing to undo."
        step = self._done[-1]
        if step.removed is not None:
            self._rules.put_back(step.removed)
        if step.added is not None:
            self._rules.remove(step.added)
        self._done.pop()
        return "Undone."
