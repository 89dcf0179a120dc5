"""Changes of the permission rules, each with its way back."""

from __future__ import annotations

from msgspec import Struct

from engine.executor.requests import EngineError
from engine.rule_desk import Standing
from phoenix_tui.keys_in_force import hint
from phoenix_tui.rules_surface import RulesSurface
from tools.clean import clean_line


class Step(Struct, frozen=True):
    """One change, which undo turns around."""

    added: Standing | None = None
    removed: Standing | None = None


class RuleChanges:
    """What was done since the sheet was opened. Each method says what came of it, or raises EngineError."""

    def __init__(self, rules: RulesSurface) -> None:
        self._rules = rules
        self._done: list[Step] = []

    def remove(self, rule: Standing) -> str:
        """Take one back."""
        self._rules.remove(rule)
        self._done.append(Step(removed=rule))
        return f"{clean_line(rule.text)} asks again from now on; {hint(('rule_undo', 'brings it back'))}."

    def keep(self, old: Standing | None, text: str, conversation_id: str) -> str:
        """Another text for a rule, or a new one."""
        if any((one.text, one.conversation_id) == (text, conversation_id) for one in self._rules.all()):
            raise EngineError("This rule is there already.")
        if old is not None:
            self._done.append(Step(self._rules.replace(old, text), old))
        else:
            new = Standing(text, conversation_id)
            self._rules.add(new)
            self._done.append(Step(new))
        return "Kept; it counts from now on."

    def undo(self) -> str:
        """Turn the last change around."""
        if not self._done:
            return "Nothing to undo."
        step = self._done[-1]
        if step.removed is not None:
            self._rules.put_back(step.removed)
        if step.added is not None:
            self._rules.remove(step.added)
        self._done.pop()
        return "Undone."
