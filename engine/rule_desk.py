"""Every permission rule that holds here: shown, taken back, edited, written by hand."""

from __future__ import annotations

import difflib
from collections.abc import Mapping

from msgspec import Struct

from engine.conversation import Conversation
from engine.executor.requests import EngineError
from engine.executor.session import Ports
from engine.permissions.rules import BLANKS, Rule, effect, parse_rule, shortened
from tools.contract import ToolClass, ToolSpec

NO_PATH = ("~", "./", "../")
"""Beginnings that no path has when it is held against a rule: inside the folder from there, outside it whole."""


class Standing(Struct, frozen=True):
    """A rule and where it holds: in every conversation, or in the one that is named."""

    text: str
    conversation_id: str = ""
    since: float = 0.0
    """Unix time; 0 where nobody knows."""
    title: str = ""
    """Of the conversation; empty for one without a title, too."""


class RuleDesk:
    """The rules of the user's file and those of the conversations in `opened`."""

    def __init__(self, ports: Ports, opened: Mapping[str, Conversation]) -> None:
        self._ports = ports
        self._opened = opened

    def all(self) -> tuple[Standing, ...]:
        """Those for good first, in the order of the file; the others by conversation. None for a broken file."""
        try:
            kept = self._ports.rules.listed()
        except OSError:
            kept = ()
        here = [
            Standing(str(rule), one.id, since, one.record.title)
            for one in self._opened.values()
            for rule, since in one.rules.items()
        ]
        return (*(Standing(rule.text, since=rule.since) for rule in kept), *here)

    def trouble(self) -> str:
        """Why no rule for good counts now, in one sentence; empty while they do."""
        try:
            self._ports.rules.listed()
        except OSError as error:
            return f"{error} Until it is mended no rule in it counts."
        return ""

    def problem(self, text: str) -> str:
        """Why this can be no rule, in one sentence; empty where it can."""
        rule = parse_rule(text)
        if rule is None:
            return f"{shortened(text)} is no rule: write it as tool(pattern), such as bash(make test*)."
        spec = self._spec(rule)
        if spec is None:
            near = difflib.get_close_matches(rule.tool, self._ports.tools, n=1)
            return f"There is no tool {rule.tool}: {f'did you mean {near[0]}' if near else self._tool_names()}?"
        return _why_nothing_matches(rule, spec)

    def effect(self, text: str) -> str:
        """What it lets through, in one sentence; empty for what is no rule."""
        rule = parse_rule(text)
        spec = self._spec(rule) if rule is not None else None
        return effect(rule, spec.tool_class) if rule is not None and spec is not None else ""

    def add(self, rule: Standing) -> None:
        """Let it hold from now on, or since when it says.

        Raises:
            EngineError: it is no rule, the file cannot be written, or the conversation is closed.
        """
        if why := self.problem(rule.text):
            raise EngineError(why)
        self.put_back(rule)

    def put_back(self, rule: Standing) -> None:
        """What was taken out, as it was, even where it counts for nothing.

        Raises:
            EngineError: the file cannot be written, or the conversation is closed.
        """
        parsed, since = parse_rule(rule.text), rule.since or self._ports.clock.now()
        if rule.conversation_id and parsed is not None:
            self._conversation(rule).rules[parsed] = since
            return
        try:
            self._ports.rules.add(rule.text, since)
        except OSError as error:
            raise _unwritten(error) from error

    def remove(self, rule: Standing) -> None:
        """Let it hold no longer; one that is gone already is no mistake.

        Raises:
            EngineError: the file cannot be written.
        """
        if rule.conversation_id:
            parsed = parse_rule(rule.text)
            if parsed is not None and rule.conversation_id in self._opened:
                self._opened[rule.conversation_id].rules.pop(parsed, None)
            return
        try:
            self._ports.rules.remove(rule.text)
        except OSError as error:
            raise _unwritten(error) from error

    def replace(self, old: Standing, text: str) -> Standing:
        """Another text for a rule, which then holds where the old one did; gives it.

        Raises:
            EngineError: it is no rule, the file cannot be written, or the conversation is closed.
        """
        new = Standing(text, old.conversation_id, self._ports.clock.now(), old.title)
        self.add(new)
        if new.text != old.text:
            self.remove(old)
        return new

    def _spec(self, rule: Rule) -> ToolSpec | None:
        tool = self._ports.tools.get(rule.tool)
        return tool.spec if tool is not None else None

    def _tool_names(self) -> str:
        return f"is it one of {', '.join(self._ports.tools)}"

    def _conversation(self, rule: Standing) -> Conversation:
        found = self._opened.get(rule.conversation_id)
        if found is None or found.read_only:
            raise EngineError("That conversation is not open here any more; its rules went with it.")
        return found


def _why_nothing_matches(rule: Rule, spec: ToolSpec) -> str:
    pattern = rule.pattern
    if not pattern.strip():
        return f"{rule.tool}() matches nothing: write what it may do between the brackets."
    if spec.tool_class is ToolClass.RUN:
        if pattern.strip() == "*":
            return f"{rule.tool}(*) matches nothing: begin with a command, such as make*. Mode auto asks nothing."
        if pattern[0] in BLANKS:
            return "A command never begins with a blank: leave it out."
        return ""
    if pattern.startswith(NO_PATH):
        return "Paths inside the working directory begin there, such as src/*; others are written whole, from /."
    if pattern != "/" and pattern.endswith("/"):
        return f"No path ends with /: write {shortened(f'{pattern}*')} for everything in it."
    return ""


def _unwritten(error: OSError) -> EngineError:
    return EngineError(f"The rule could not be saved: {error.strerror or error}.".replace("..", "."))
