"""Every permission rule that holds here: shown, taken back, edited, moved, written by hand."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from engine.conversation import Conversation
from engine.executor.requests import EngineError
from engine.executor.session import Ports
from engine.machine.agent_texts import heading_of
from engine.permissions.command_rules import quote
from engine.permissions.denials import (
    ASK,
    DENY,
    Denials,
    denial_effect,
    denials_in,
    narrows,
    parse_denial,
    why_denies_nothing,
)
from engine.permissions.rules import (
    FILE_CLASSES,
    KeptRule,
    Rule,
    absolute_pattern,
    class_named,
    effect,
    native_rules,
    parse_rule,
    why_nothing_matches,
)
from engine.permissions.unreadable import build_closed_test
from tools.comparing import near_names
from tools.contract import ToolClass

OF_FILE: Final = "This rule stands in {file}; change it there."
NOT_FOR_ONE: Final = "A rule that denies holds in a project or everywhere, not in one conversation."


class ActiveRule(Struct, frozen=True):
    """A rule and where it holds: in a conversation, in a project, or everywhere."""

    text: str
    conversation_id: str = ""
    since: float = 0.0
    """Unix time; 0 if unknown."""
    title: str = ""
    """Title of the conversation; empty for one without a title, too."""
    project: str = ""
    """Absolute folder of the project it belongs to; empty for a conversation's rule and one that holds everywhere."""
    file: str = ""
    """File of another program in which it stands, and which alone changes it; empty for a rule of Phoenix."""

    @property
    def place(self) -> tuple[str, str, str]:
        """Scope of the rule, to group by."""
        return self.conversation_id, self.project, self.file

    @property
    def kept(self) -> KeptRule:
        """The rule as it is stored."""
        return KeptRule(self.text, self.since, self.project)


class RuleStore:
    """The rules of the user's file and those of the conversations in `opened`."""

    def __init__(self, ports: Ports, opened: Mapping[str, Conversation]) -> None:
        self._ports = ports
        self._opened = opened

    def all(self, folder: Path | None = None) -> tuple[ActiveRule, ...]:
        """All rules: global ones, then by project in the order of the file, then by conversation; at last those that
        files of another program add in `folder`.
        """
        kept = self._ports.rules.rules(folder)
        stored = [ActiveRule(one.text, since=one.since, project=one.project) for one in kept if not one.file]
        theirs = dict.fromkeys(ActiveRule(one.entry, file=one.file) for one in kept if one.file)
        here = [
            ActiveRule(str(rule), one.id, since, _name_conversation(one))
            for one in self._opened.values()
            for rule, since in one.rules.items()
            if not self._is_copy(one, rule)
        ]
        return (*sorted(stored, key=lambda one: one.project), *here, *theirs)

    def trouble(self) -> str:
        """Unreadable parts of the stored rules, which have no effect, in one sentence; empty if none."""
        return self._ports.rules.trouble()

    def denials(self, folder: Path) -> Denials:
        """Rules that deny or ask in a working directory."""
        return denials_in(self._ports.rules, folder)

    def build_denied_test(self, folder: Path) -> Callable[[Path], bool]:
        """Test of a file by its name and by what its links lead to: True where rules deny to read it in `folder`."""
        return build_closed_test(self.denials(folder), folder)

    def problem(self, text: str) -> str:
        """Reason why this is no valid rule, in one sentence; empty when it is one."""
        rule = _parse(text)
        if rule is None and narrows(text):
            return f"{quote(text)} is not a rule; write it as {DENY}tool(pattern), such as {DENY}bash(git push*)."
        if rule is None:
            return f"{quote(text)} is not a rule; write it as tool(pattern), such as bash(make test*)."
        tool_class = self._class(rule)
        if tool_class is None:
            near = near_names(rule.tool, self._ports.tools, 1)
            hint = f"did you mean {near[0]}" if near else f"is it one of {', '.join(self._ports.tools)}"
            return f"There is no tool {quote(rule.tool)}: {hint}?"
        return why_denies_nothing(rule, tool_class) if narrows(text) else why_nothing_matches(rule, tool_class)

    def effect(self, text: str) -> str:
        """Effect of the rule, in one sentence; empty for invalid text."""
        rule = _parse(text)
        tool_class = self._class(rule) if rule is not None else None
        if rule is None or tool_class is None:
            return ""
        if not narrows(text):
            return effect(rule, tool_class)
        return denial_effect(rule, tool_class, asks=text.strip().startswith(ASK))

    def add(self, rule: ActiveRule) -> None:
        """Let it hold from now on, or since when it says.

        Raises:
            EngineError: it is no rule, the file cannot be written, or the conversation is closed.
        """
        if why := self.problem(rule.text):
            raise EngineError(why)
        self.put_back(rule)

    def put_back(self, rule: ActiveRule) -> None:
        """Restore a removed rule unchanged, even one without effect.

        Raises:
            EngineError: the file cannot be written, or the conversation is closed.
        """
        since = rule.since or self._ports.clock.now()
        if rule.conversation_id and narrows(rule.text):
            raise EngineError(NOT_FOR_ONE)
        parsed = [one for text in native_rules(rule.text) if (one := parse_rule(text)) is not None]
        if rule.conversation_id and parsed:
            found = self._opened.get(rule.conversation_id)
            if found is None or found.read_only:
                raise EngineError("That conversation is no longer open here; its rules ended with it.")
            found.rules.update(dict.fromkeys(parsed, since))
        else:
            _write(lambda: self._ports.rules.add(replace(rule, since=since).kept))

    def remove(self, rule: ActiveRule) -> None:
        """Let it hold no longer, nor in sub-agents that began with it; one that is gone already is no mistake.

        Raises:
            EngineError: the file cannot be written.
        """
        if rule.file:
            raise EngineError(OF_FILE.format(file=rule.file))
        if not rule.conversation_id:
            _write(lambda: self._ports.rules.remove(rule.kept))
            return
        for one in self._opened.values():
            if rule.conversation_id in {one.id, _parent_id(one)}:
                for held in [held for held in one.rules if str(held) == rule.text]:
                    del one.rules[held]

    def replace(self, old: ActiveRule, text: str) -> ActiveRule:
        """Another text for a rule, which then holds where the old one did; returns it.

        Raises:
            EngineError: it is no rule, the file cannot be written, or the conversation is closed.
        """
        if old.file:
            raise EngineError(OF_FILE.format(file=old.file))
        new = replace(old, text=text, since=self._ports.clock.now())
        self.add(new)
        if new.text != old.text:
            self.remove(old)
        return new

    def move(self, old: ActiveRule, project: str) -> ActiveRule:
        """Let a stored rule hold in `project` instead, or everywhere where that is empty; returns it.

        A relative path pattern stays bound to the folder it started from.

        Raises:
            EngineError: the file cannot be written.
        """
        if old.file:
            raise EngineError(OF_FILE.format(file=old.file))
        new = replace(old, text=self._bind_text(old), project=project)
        self.put_back(new)
        self.remove(old)
        return new

    def _bind_text(self, old: ActiveRule) -> str:
        rule = _parse(old.text)
        if rule is None or not old.project or self._class(rule) not in FILE_CLASSES:
            return old.text
        if native_rules(old.text) != (old.text,):
            return old.text
        if narrows(old.text) and (rule.pattern == "*" or rule.pattern.startswith("~/")):
            return old.text
        bound = Rule(rule.tool, absolute_pattern(rule, Path(old.project)))
        kind = ASK if old.text.strip().startswith(ASK) else DENY
        return f"{kind}{bound}" if narrows(old.text) else str(bound)

    def _is_copy(self, one: Conversation, rule: Rule) -> bool:
        parent = self._opened.get(_parent_id(one))
        return parent is not None and any(str(held) == str(rule) for held in parent.rules)

    def _class(self, rule: Rule) -> ToolClass | None:
        tool = self._ports.tools.get(rule.tool)
        return tool.spec.tool_class if tool is not None else class_named(rule.tool)


def _parse(text: str) -> Rule | None:
    """A rule of either kind, the first one of a foreign text; None for no rule."""
    text = native_rules(text)[0]
    return parse_denial(text) if narrows(text) else parse_rule(text)


def _parent_id(one: Conversation) -> str:
    return one.record.agent.parent_id if one.record.agent is not None else ""


def _name_conversation(one: Conversation) -> str:
    return heading_of(one.record.agent.task) if one.record.agent is not None else one.record.title


def _write(change: Callable[[], None]) -> None:
    try:
        change()
    except OSError as error:
        why = f"The rule could not be saved: {error.strerror or error}."
        raise EngineError(why.replace("..", ".")) from error
