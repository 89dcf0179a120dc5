"""The permission mode, the sandbox and the permission rules of the conversation in view."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from engine.executor.requests import EngineError
from engine.permissions.denials import DENY
from engine.permissions.hosts import NET
from engine.permissions.place import project_of
from engine.ports import ConversationChanges
from engine.ports.profiles import SANDBOX_FREEDOM
from engine.records import PermissionMode
from engine.rule_store import ActiveRule
from phoenix_tui.features.front_end import FrontEnd, ListPage, Option, PageAction, PageRow
from phoenix_tui.text.labels import MODE_MEANINGS, SANDBOX_MEANINGS, ask_widening, sandbox_set, short_path
from phoenix_tui.text.request_text import no_rule_counts, one_line
from tools.contract import Enforcement, SandboxMode
from tools.wording import pluralize

if TYPE_CHECKING:
    from engine.rule_store import RuleStore


class RulePlaces(Struct, frozen=True):
    """Possible scopes of a new rule."""

    project: str
    folder: Path
    """Working directory, in which files of another program may have rules."""
    conversation_id: str = ""
    """Empty where none can be kept for a conversation."""
    note: str = ""
    """Reason why no rule counts; empty where they do."""


def rule_places(front: FrontEnd) -> RulePlaces:
    """The project and the conversation in view."""
    conversation = front.conversation
    folder = conversation.record.cwd if conversation is not None else front.launch.cwd
    kept_here = conversation.id if conversation is not None and not conversation.read_only else ""
    return RulePlaces(str(project_of(folder)), folder, kept_here, no_rule_counts(front.mode))


RULES: Final = "rules"
"""Offered beside the modes: the rules."""


async def choose_mode(front: FrontEnd, word: str) -> bool:
    """Use this mode, or ask for one; True where the user wants to see the rules instead."""
    modes = {mode.value: mode for mode in PermissionMode}
    if word and word not in {*modes, RULES}:
        front.tell(f"Modes: {', '.join(modes)}; {RULES} shows the rules.", bad=True)
        return False
    if not word:
        options = [Option(mode.value, mode.value, (MODE_MEANINGS[mode],)) for mode in PermissionMode]
        count = len(front.services.engine.rules.all(rule_places(front).folder))
        options.append(Option(RULES, RULES, (f"{pluralize(count, 'rule')}: list, edit, remove",)))
        word = await front.pick("What runs without asking", options, current=front.mode.value)
    if word in modes:
        await use_mode(front, modes[word])
    return word == RULES


async def use_mode(front: FrontEnd, mode: PermissionMode) -> None:
    """Use this mode here."""
    front.prefer(mode=mode)
    if front.conversation is not None:
        await front.conversation.change(ConversationChanges(permission_mode=mode))
    front.confirm_change(f"Mode {mode.value}: {MODE_MEANINGS[mode]}.")


async def choose_sandbox(front: FrontEnd, word: str) -> Enforcement | None:
    """Use this sandbox or ask for one, a wider one after a yes; returns its enforcement, None where none was set."""
    now = front.sandbox
    if not word:
        options = [Option(one.value, one.value, (SANDBOX_MEANINGS[one],)) for one in SandboxMode]
        word = await front.pick("Sandbox of this conversation", options, current=now.value)
    if word not in set(SandboxMode):
        if word:
            front.tell(f"Sandboxes: {', '.join(SandboxMode)}.", bad=True)
        return None
    wanted = SandboxMode(word)
    wider = SANDBOX_FREEDOM[wanted] > SANDBOX_FREEDOM[now]
    if wider and not await front.confirm(ask_widening(now, wanted), "change", "cancel"):
        return None
    front.prefer(sandbox=wanted)
    if front.conversation is not None:
        await front.conversation.change(ConversationChanges(sandbox=wanted))
    is_off = wanted is SandboxMode.OFF
    enforcement = Enforcement.FULL if is_off else await front.services.system.enforcement()
    front.tell(sandbox_set(wanted, enforcement))
    return enforcement


class RuleChange(Struct, frozen=True):
    """One change, which undo turns around."""

    added: ActiveRule | None = None
    removed: ActiveRule | None = None


class RuleChanges:
    """Changes since the sheet was opened. Each method returns its result in words, or raises EngineError."""

    def __init__(self, rules: RuleStore, way_back: str) -> None:
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


SETTING: Final = "network"
"""Setting with the hosts that every sandboxed command may reach."""
NO_HOSTS: Final = (
    "Hosts that sandboxed commands may reach without a question. {way} adds one; an answer with a to a question about "
    "the network does so too."
)
FOR_ALL: Final = "For every project, config.toml has them: /config network."
ASK_HOST: Final = "Host, such as pypi.org, *.example.com or * for any; deny HOST for none"


async def show_network(front: FrontEnd, text: str) -> None:
    """Show the hosts that commands may reach, or add one to this project. Raises EngineError."""
    page = NetworkPage(front)
    if text:
        front.tell(page.add(text))
    else:
        await front.show(page.read)


class NetworkPage:
    """Hosts of rules, which are added and removed here, and those of the setting."""

    def __init__(self, front: FrontEnd) -> None:
        self._front = front
        self._rules = front.services.engine.rules
        self._changes = RuleChanges(self._rules, front.name_way("rule_undo", "/rules adds it again") + " restores it")

    async def read(self) -> ListPage:
        """List rules about hosts by where they hold, then the setting."""
        places = rule_places(self._front)
        rules = [one for one in self._rules.all(places.folder) if _host_of(one.text)]
        set_to = (one for one in self._front.services.settings.all() if one.name == SETTING and one.value)
        hosts = next((one.words or one.value for one in set_to), "")
        kept = PageRow("Every project, in config.toml", SETTING, hosts, "", spoken=f"{hosts}, in config.toml")
        return ListPage(
            "Network",
            (*(self._row(place, rule) for place, rule in enumerate(rules)), *((kept,) if hosts else ())),
            (("rule_new", "adds"), ("rule_remove", "removes"), ("rule_undo", "undoes")),
            NO_HOSTS.format(way=self._front.name_way("rule_new", "/network HOST")),
            tuple(filter(None, (places.note, FOR_ALL))),
            actions=(
                PageAction(self._ask, "rule_new", "add a host"),
                PageAction(self._undo, "rule_undo"),
            ),
        )

    def _row(self, place: int, rule: ActiveRule) -> PageRow:
        where = "This conversation" if rule.conversation_id else "This project" if rule.project else "Every project"
        remove = PageAction(partial(self._remove, rule), "rule_remove", "Remove")
        return PageRow(
            f"In {short_path(Path(rule.file))}" if rule.file else where,
            f"{place} {rule.text}",
            one_line(_host_of(rule.text)),
            "",
            about=(self._rules.effect(rule.text),),
            spoken=f"{one_line(_host_of(rule.text))}, {where.lower()}",
            name=one_line(rule.text),
            actions=() if rule.file else (remove,),
        )

    def add(self, text: str) -> str:
        """Add a host to this project, or with `deny` before it a host that is never reached."""
        host = text.strip().removeprefix(DENY).strip()
        rule = f"{DENY if text.strip() != host else ''}{NET}({host})"
        if why := self._rules.problem(rule):
            raise EngineError(why)
        return self._changes.keep(None, ActiveRule(rule, project=rule_places(self._front).project))

    async def _ask(self) -> str:
        text = await self._front.ask_line(ASK_HOST)
        return self.add(text) if text.strip() else ""

    async def _remove(self, rule: ActiveRule) -> str:
        return self._changes.remove(rule)

    async def _undo(self) -> str:
        return self._changes.undo()


def _host_of(text: str) -> str:
    """Hosts of a rule about hosts, with `deny` before them; empty for any other rule."""
    rule = text.removeprefix(DENY)
    return f"{text[: -len(rule)]}{rule[len(NET) + 1 : -1]}" if rule.startswith(f"{NET}(") else ""
