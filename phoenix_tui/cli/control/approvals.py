"""Questions about calls, put to the host or to the tool of an MCP server, and the rules that a host gives."""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final, cast

from msgspec import Struct, field

from engine.conversation import Conversation
from engine.executor.ready_calls import parse_arguments
from engine.executor.requests import ApprovalAnswer, ApprovalChoice, PlanChoice, Refused
from engine.extensions.mcp.hub import McpHub
from engine.permissions.denials import ASK, DENY
from engine.permissions.rules import KeptRule, RuleBook, parse_rule
from engine.records import PermissionMode
from engine.updates import Question
from phoenix_tui.cli.control.frames import Asker, HostError, is_too_large
from phoenix_tui.cli.control.options import SERVED
from phoenix_tui.cli.control.reporter import foreign_call, native_call
from phoenix_tui.cli.control.servers import HostServers
from phoenix_tui.cli.headless import explain_denial
from phoenix_tui.config.claude_settings import FOREIGN_MODES, whole_rule
from phoenix_tui.config.rules import RuleLayer, folder_rules
from phoenix_tui.features.agents import run_behind
from tools.contract import JsonObject, JsonValue, Tool, ToolClass, ToolContext, ToolInputError
from tools.displays import AskedQuestion

MOST_RULES: Final = 10_000
ALLOWED: Final = "a rule of the host"
"""Source of its rules: those of a source count in mode deny too, and `*` means every call of the tool."""
FILES: Final = frozenset({"Read", "Write", "Edit", "MultiEdit", "Glob", "Grep"})
"""Tools whose absolute patterns begin with two slashes elsewhere."""
_WITHOUT_PATTERN: Final = re.compile(r"[^()]*")


class HostPermissions(RuleLayer):
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
        self._keep(KeptRule(_rule_text(text, denies=True), source=ALLOWED))

    def ask(self, text: str) -> None:
        """Ask about what `text` names, in every mode."""
        self._keep(KeptRule(f"{ASK}{whole_rule(text)}", source=ALLOWED))

    def answer(self, texts: Iterable[str], *, denies: bool, replaces: bool = False) -> None:
        """Add rules of an answer, in the place of all earlier ones of its kind where it `replaces` them."""
        if replaces:
            self._answered = [one for one in self._answered if one.text.startswith(DENY) is not denies]
        for text in texts:
            self._keep(KeptRule(_rule_text(text, denies), source=ALLOWED), self._answered)

    def withdraw(self, text: str, *, denies: bool = False) -> None:
        """Forget a rule of the host."""
        gone = _rule_text(text, denies)
        for kept in (self._rules, self._answered):
            kept[:] = [one for one in kept if one.text != gone]

    def _keep(self, rule: KeptRule, kept: list[KeptRule] | None = None) -> None:
        kept = self._rules if kept is None else kept
        if rule not in kept and len(kept) < MOST_RULES:
            kept.append(rule)


def _rule_text(text: str, denies: bool) -> str:
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


def suggest_rule(rule: str, foreign: str) -> JsonObject | None:
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


ADDING: Final = frozenset({"addRules", "replaceRules"})
ChangeMode = Callable[[PermissionMode], Awaitable[None]]


class PermissionUpdates(Struct, eq=False):
    """Applies lists of changes; one entry that is unknown rejects the whole list."""

    rules: HostPermissions
    change_mode: ChangeMode
    say: Callable[[str], None]
    """Writes a line for the user."""
    cwd: Path
    """Folder where relative ones begin."""

    async def apply(self, entries: JsonValue) -> None:
        """Make the changes, or none of them and a line on stderr."""
        try:
            steps = _check_entries(entries, self.cwd)
        except ValueError as error:
            self.say(f"phoenix: The host's permission updates were not applied: {error}.")
            return
        for entry, texts in steps:
            await self._apply(entry, texts)

    def mode_of(self, entries: JsonValue) -> PermissionMode | None:
        """The mode that a list of changes sets last; None where it sets none, or is rejected."""
        try:
            modes = [str(entry["mode"]) for entry, _ in _check_entries(entries, self.cwd) if entry["type"] == "setMode"]
        except ValueError:
            return None
        return PermissionMode(FOREIGN_MODES[modes[-1]]) if modes else None

    async def _apply(self, entry: JsonObject, texts: list[str]) -> None:
        kind, behavior = entry["type"], entry.get("behavior")
        denies = behavior == "deny"
        if kind == "setMode":
            await self.change_mode(PermissionMode(FOREIGN_MODES[str(entry["mode"])]))
        elif kind == "addDirectories":
            for text in texts:
                self.rules.allow(text)
        elif kind in ADDING and behavior != "ask":
            self.rules.answer(texts, denies=denies, replaces=kind == "replaceRules")
        elif kind in ADDING or behavior != "ask":  # what is to be asked about is not allowed any more
            for text in texts:
                self.rules.withdraw(text, denies=denies)


def _check_entries(entries: JsonValue, cwd: Path) -> list[tuple[JsonObject, list[str]]]:
    """The entries of a list and their rules. Raises ValueError."""
    if entries is None:
        return []
    if not isinstance(entries, list):
        raise ValueError("updatedPermissions must be a list")  # noqa: TRY004 - a fault of the host's data
    return [_check_entry(entry, cwd) for entry in entries]


def _check_entry(entry: JsonValue, cwd: Path) -> tuple[JsonObject, list[str]]:
    """An entry and its rules. Raises ValueError."""
    kind = entry.get("type") if isinstance(entry, dict) else None
    if not isinstance(entry, dict):
        raise ValueError("an entry is no object")  # noqa: TRY004 - a fault of the host's data
    match kind:
        case "addRules" | "replaceRules" | "removeRules":
            if entry.get("behavior") not in {"allow", "deny", "ask"}:
                raise ValueError("behavior must be allow, deny or ask")
            return entry, list(rule_texts(entry.get("rules")))
        case "setMode":
            if entry.get("mode") not in FOREIGN_MODES:
                raise ValueError(f"there is no mode {entry.get('mode')}")
            return entry, []
        case "addDirectories" | "removeDirectories":
            folders = entry.get("directories")
            if not isinstance(folders, list) or not all(isinstance(one, str) for one in folders):
                raise ValueError("directories must be a list of paths")
            return entry, [text for one in folders for text in folder_rules(str(one), cwd)]
        case _:
            raise ValueError(f"there is no update of type {kind}")


def approve_plan(question: Question, updated: JsonValue, mode: PermissionMode | None) -> ApprovalAnswer:
    """The answer, for a host that sets `mode` with it; a plan that cannot be one is refused by whoever takes it."""
    given = updated.get("plan") if isinstance(updated, dict) else None
    plan = given if isinstance(given, str) and given != question.request.plan else ""
    choice = PlanChoice.ACCEPT_EDITS if mode is PermissionMode.ACCEPT_EDITS else PlanChoice.ASK
    return ApprovalAnswer(ApprovalChoice.ONCE, plan_choice=choice, plan=plan)


log = logging.getLogger(__name__)

ANSWER_WITHIN: Final = 3_600.0
"""Seconds for an answer to a question about a call; a host asks a person."""
MOST_SHOWN: Final = 4_096
"""Characters of an input that is too large for a frame; the host sees its beginning."""
NO_ANSWERS: Final = "The host gave no answers."
SEVERAL: Final = ", "
"""Sign between several chosen labels."""
TOO_LARGE_TO_CHANGE: Final = "The input is too large for a frame, so the host can allow or deny it, but not change it."


class HostApprovals(Struct, eq=False):
    """Answers the questions of a conversation and of its sub-agents."""

    root: Conversation
    """The conversation of the connection."""
    asker: Asker
    updates: PermissionUpdates
    says_waiting: Callable[[bool], None]
    """Callback for True while the host is asked."""
    asks: bool = False
    """False where no host can be asked: every question is a no."""
    _open: dict[str, asyncio.Task[None]] = field(default_factory=dict[str, "asyncio.Task[None]"])
    """Tasks that wait for the host, by conversation."""
    _answering: set[asyncio.Task[None]] = field(default_factory=set["asyncio.Task[None]"])

    def follow(self, conversation: Conversation, question: Question | None) -> None:
        """Ask about a question that opens; withdraw one that something else has settled."""
        before = self._open.pop(conversation.id, None)
        if before is not None and before not in self._answering:
            before.cancel()
        if question is not None:
            task = asyncio.ensure_future(self._settle(conversation, question))
            self._open[conversation.id] = task
            task.add_done_callback(self._finish)

    def close(self) -> None:
        """Withdraw every question."""
        for task in self._open.values():
            task.cancel()

    def _finish(self, task: asyncio.Task[None]) -> None:
        self._answering.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("a question to the host failed", exc_info=error)

    async def _settle(self, conversation: Conversation, question: Question) -> None:
        answer, later = await self._answer(conversation, question)
        task = asyncio.current_task()
        if task is not None:
            self._answering.add(task)
        if answer is None:
            run_behind(conversation, self.root).cancel()
            return
        receipt = await conversation.answer(question.call.id, answer)
        if isinstance(receipt, Refused) and answer.choice is ApprovalChoice.ONCE:
            await conversation.answer(question.call.id, _deny(question, receipt.reason))
            return
        await self.updates.apply(later)
        accepts = question.request.plan and answer.choice is ApprovalChoice.ONCE
        if accepts and conversation.record.agent is None and self.updates.mode_of(later) is None:
            await self.updates.change_mode(conversation.record.permission_mode)  # reports the mode of the answer

    async def _answer(self, conversation: Conversation, question: Question) -> tuple[ApprovalAnswer | None, JsonValue]:
        """The answer, None where the host ends the run with it; and permission updates to apply behind it."""
        if not self.asks or self.asker.is_gone:
            return _deny(question, explain_denial(conversation.record, question)), None
        request, sent = can_use_tool(conversation, question)
        self.says_waiting(True)
        try:
            given = await self.asker.ask(request, ANSWER_WITHIN)
        except HostError as error:
            return _deny(question, str(error)), None
        finally:
            self.says_waiting(False)
        if given.get("behavior") != "allow":
            message = given.get("message")
            told = message if isinstance(message, str) and message else "The host denied it without a reason."
            return (None if given.get("interrupt") is True else _deny(question, told)), None
        updates, updated = given.get("updatedPermissions"), given.get("updatedInput")
        if question.request.plan:  # the answer itself sets a mode
            return approve_plan(question, updated, self.updates.mode_of(updates)), updates
        await self.updates.apply(updates)
        return self._allow(conversation, question, sent, updated), None

    @staticmethod
    def _allow(conversation: Conversation, question: Question, sent: JsonObject, updated: JsonValue) -> ApprovalAnswer:
        if question.request.questions:
            return _answer_questions(question, updated)
        if not isinstance(updated, dict) or updated == sent:
            return _allow_once()
        if "phoenix_left_out" in sent:
            return _deny(question, TOO_LARGE_TO_CHANGE)
        foreign, _ = _foreign(conversation, question)
        try:
            name, args = native_call(foreign, updated, conversation.record.cwd)
        except ToolInputError as error:
            return _deny(question, f"The host changed the input, and {error}")
        if name != question.call.name:
            return _deny(question, f"The host changed the input to one of {name}, which is another tool.")
        return _allow_once(args)


def can_use_tool(conversation: Conversation, question: Question) -> tuple[JsonObject, JsonObject]:
    """The request about a question, and the input as it is sent."""
    name, whole = _foreign(conversation, question)
    suggestions: list[JsonValue] = []
    if (kept := suggest_rule(question.rule, name)) is not None:
        suggestions.append(kept)
    if question.tool_class is ToolClass.EDIT:
        suggestions.append({"type": "setMode", "mode": "acceptEdits", "destination": "session"})
    request: JsonObject = {
        "subtype": "can_use_tool",
        "tool_name": name,
        "input": whole,
        "tool_use_id": question.call.id,
        "display_name": name,
        "title": question.request.summary,
        "description": question.request.why,
        "decision_reason": question.reason,
        "permission_suggestions": suggestions,
    }
    if question.request.questions or question.request.plan:
        request["requires_user_interaction"] = True
    if conversation.record.agent is not None:
        request["agent_id"] = conversation.id
    outside = [path for path in question.request.paths if not path.is_relative_to(conversation.record.cwd)]
    if outside:
        request["blocked_path"] = str(outside[0])
    if not is_too_large(request):
        return request, whole
    args: JsonObject = {
        "phoenix_left_out": len(question.call.input_json),
        "beginning": question.call.input_json[:MOST_SHOWN],
    }
    request["input"] = args
    return request, args


def _foreign(conversation: Conversation, question: Question) -> tuple[str, JsonObject]:
    if question.server:
        return foreign_call("ask_user", _make_form(question.request.questions), conversation.record.cwd)
    args = parse_arguments(question.call.input_json)
    try:
        return foreign_call(question.call.name, args, conversation.record.cwd)
    except ToolInputError:
        return question.call.name, args


def _make_form(questions: Sequence[AskedQuestion]) -> JsonObject:
    """A question that no call of the model asks, as one of `ask_user`."""
    forms: list[JsonValue] = []
    for asked in questions:
        options: list[JsonValue] = [{"label": one.label, "description": one.description} for one in asked.options]
        forms.append({
            "question": asked.question,
            "header": asked.header,
            "options": options,
            "multiSelect": asked.multi,
        })
    return {"questions": forms}


def _allow_once(args: JsonObject | None = None) -> ApprovalAnswer:
    return ApprovalAnswer(ApprovalChoice.ONCE, input=args)


def _answer_questions(question: Question, updated: JsonValue) -> ApprovalAnswer:
    """The answers to questions of `ask_user`, which a host sends by the words of each question."""
    given = updated.get("answers") if isinstance(updated, dict) else None
    if not isinstance(given, dict) or not given:
        return _deny(question, NO_ANSWERS)
    answers = tuple(_choose_labels(asked, given.get(asked.question)) for asked in question.request.questions)
    return ApprovalAnswer(ApprovalChoice.ONCE, answers=answers)


def _choose_labels(asked: AskedQuestion, value: JsonValue) -> tuple[str, ...]:
    if isinstance(value, list):
        return tuple(one for one in value if isinstance(one, str))
    if not isinstance(value, str) or not value:
        return ()
    several = tuple(value.split(SEVERAL)) if asked.multi else ()
    return several if several and set(several) <= set(asked.labels) else (value,)


def _deny(question: Question, reason: str) -> ApprovalAnswer:
    if question.request.plan:
        choice = PlanChoice.REVISE if reason else PlanChoice.LEAVE
        return ApprovalAnswer(ApprovalChoice.DENY, reason=reason, plan_choice=choice)
    return ApprovalAnswer(ApprovalChoice.DENY, reason=reason)


MOST_NAMED: Final = 20
"""Tools that an error names."""
WRAPPED: Final = "result"
"""Field in which SDKs of servers wrap a text to have a structured result."""
NO_VERDICT: Final = "The tool {name} gave no JSON with behavior allow or deny, so the call is denied."


class PromptTool(Struct, eq=False):
    """Asks the tool in the place of the host; no model is offered it."""

    name: str
    """Value of the flag; one that names no such tool is never asked."""
    conversation: Conversation
    hub: McpHub
    inside: HostServers
    is_gone: bool = False
    """Never set: the servers say themselves when they cannot answer."""

    async def ready(self) -> str:
        """Load its definition where it is deferred; reason why it cannot be asked, empty where it can."""
        if not self.name.startswith(SERVED):
            return ""
        record = self.conversation.record
        if any(one.spec.name == self.name for one in self.hub.list_deferred(record)):
            await self.hub.load(record, [self.name])
        return self.why_not()

    def why_not(self) -> str:
        """Reason why it cannot be asked; empty where it can."""
        tools = self._tools()
        if self.name in tools:
            return ""
        served = [name for name in tools if name.startswith(SERVED)][:MOST_NAMED]
        there = f"there are {', '.join(served)}" if served else "no MCP server offers tools"
        return f"There is no tool {self.name[:128]} for --permission-prompt-tool: {there}."

    async def ask(self, request: JsonObject, seconds: float) -> JsonObject:
        """Answer a `can_use_tool`.

        Raises:
            HostError: it failed, or gave none in `seconds`.
        """
        tool = self._tools().get(self.name)
        if tool is None:
            raise HostError(self.why_not())
        record, call_id = self.conversation.record, str(request["tool_use_id"])
        args: JsonObject = {name: request[name] for name in ("tool_name", "input", "tool_use_id")}
        context = ToolContext(record.id, call_id, record.cwd, outside_allowed=False, report=lambda _: None)
        try:
            async with asyncio.timeout(seconds):
                output = await tool.run(args, context)
        except TimeoutError as error:
            raise HostError(f"The tool {self.name} gave no answer within {seconds:g} s.") from error
        if output.is_error:
            raise HostError(f"The tool {self.name} failed: {output.text[:1_000]}")
        return self._verdict(output.text)

    def _verdict(self, text: str) -> JsonObject:
        found = _parse_json(text)
        if isinstance(found, dict) and found.keys() == {WRAPPED}:
            inner = found[WRAPPED]
            found = _parse_json(inner) if isinstance(inner, str) else inner
        if not isinstance(found, dict) or found.get("behavior") not in {"allow", "deny"}:
            raise HostError(NO_VERDICT.format(name=self.name))
        return found

    def _tools(self) -> Mapping[str, Tool]:
        record = self.conversation.record
        return {**self.hub.tools(record), **self.inside.tools(record)}


def _parse_json(text: str) -> JsonValue:
    """A text as JSON; None where it is none."""
    try:
        return cast("JsonValue", json.loads(text))
    except (ValueError, RecursionError):
        return None
