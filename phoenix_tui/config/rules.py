"""Permission rules: rules.toml, and the layers that flags, hosts and added folders put over it in one process.

In rules.toml `allow`, `ask` and `deny` hold everywhere, `[projects."/folder"]` has its own; `since` has their dates, in
which a rule that denies or asks is named with `deny ` or `ask ` in front, as in memory. Invalid edits count for
nothing, are named in a sentence, and keep the file from being rewritten. If rules that deny may be among what cannot
be read, `unreadable` names it.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, cast

from msgspec import Struct

from engine.permissions.denials import ASK, DENY, narrows, parse_denial
from engine.permissions.place import project_of
from engine.permissions.rules import (
    CLASSES,
    KeptRule,
    RuleBook,
    is_server_tool,
    native_rules,
    parse_rule,
    why_no_name,
    why_nothing_matches,
)
from engine.ports.profiles import KNOWN_TOOLS
from phoenix_tui.config.load import toml_text
from tools.aliases import FOREIGN, NATIVE, WITHOUT
from tools.clean import clean_line, reveal
from tools.contract import ToolClass
from tools.files.own_files import read_regular, write_file


class RuleLayer:
    """The rules of another book. A layer changes which count; kept rules and errors are those of the book."""

    def __init__(self, book: RuleBook) -> None:
        self._book = book

    def rules(self, folder: Path | None = None) -> Sequence[KeptRule]:
        """All rules in force."""
        return self._book.rules(folder)

    def trouble(self) -> str:
        """Error of reading the book, in one sentence; empty without one."""
        return self._book.trouble()

    def unreadable(self, folder: Path | None = None) -> str:
        """The file if rules that deny may stand in it and cannot be read, else an empty text."""
        return self._book.unreadable(folder)

    def add(self, rule: KeptRule) -> None:
        """Keep one more for the user. Raises OSError."""
        self._book.add(rule)

    def remove(self, rule: KeptRule) -> None:
        """Keep one of the user no longer. Raises OSError."""
        self._book.remove(rule)


class OnlyDenials(RuleLayer):
    """The user's rules where their files do not count: those that deny still hold, those that allow do not."""

    def rules(self, folder: Path | None = None) -> Sequence[KeptRule]:
        """The rules that deny or ask."""
        return [one for one in super().rules(folder) if narrows(one.text)]


READING: Final = ("Read", "Glob", "Grep")
_SIGNS: Final = re.compile(r"[*?\[\](){},\x00-\x1f]")
"""Signs that have a meaning in rules."""


def folder_rules(folder: str, cwd: Path) -> list[str]:
    """Rules that let files of a further folder be read and searched; `cwd` is where a relative one begins.

    Raises:
        ValueError: it is no folder, or its name would mean others too in a rule.
    """
    shown = clean_line(folder)[:200]
    try:
        real = (cwd / Path(folder).expanduser()).resolve(strict=True)
    except (OSError, RuntimeError, ValueError) as error:
        raise ValueError(f"the folder {shown} cannot be added: there is none") from error
    if not real.is_dir() or _SIGNS.search(str(real)):
        why = "its name has signs of a pattern" if real.is_dir() else "it is no folder"
        raise ValueError(f"the folder {shown} cannot be added: {why}")
    place = str(real).rstrip("/")
    return [f"{name}(/{place}{end})" for name in READING for end in ("", "/**")]


CLIENT: Final = "a folder of the client"
"""Source of these rules."""
MOST_FOLDERS: Final = 100
"""Folders of one session."""


class SessionFolders(RuleLayer):
    """The rules of the user, and those of the folders of open sessions; each is about the session's project."""

    def __init__(self, book: RuleBook) -> None:
        super().__init__(book)
        self._kept: dict[str, tuple[KeptRule, ...]] = {}

    def rules(self, folder: Path | None = None) -> Sequence[KeptRule]:
        """All rules in force."""
        return (*(rule for rules in self._kept.values() for rule in rules), *super().rules(folder))

    def keep(self, session_id: str, rules: Sequence[KeptRule]) -> None:
        """Let the folders of these rules be read in a session, and none that it had before."""
        self._kept[session_id] = tuple(rules)

    def forget(self, session_id: str) -> None:
        """Forget the folders of a session that closes."""
        self._kept.pop(session_id, None)


def session_rules(cwd: Path, folders: Sequence[str]) -> tuple[list[KeptRule], list[str]]:
    """Rules for the folders of a session in `cwd`, and sentences about those that cannot be used; reads the disk."""
    project, texts, troubles = str(project_of(cwd)), list[str](), list[str]()
    for folder in folders[:MOST_FOLDERS]:
        try:
            texts += folder_rules(folder, cwd)
        except ValueError as error:
            sentence = str(error)
            troubles.append(f"{sentence[:1].upper()}{sentence[1:]}.")
    if len(folders) > MOST_FOLDERS:
        troubles.append(f"{len(folders) - MOST_FOLDERS:,} further folders are left out: {MOST_FOLDERS} are used.")
    return [KeptRule(text, project=project, source=CLIENT) for text in texts], troubles


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
    given = [KeptRule(_whole(text), source=ALLOWED) for text in _select_entries(allowed)]
    given += [KeptRule(f"{DENY}{text}", source=DENIED) for text in _select_entries(denied)]
    return FlagRules(book, tuple(given)) if given else book


def split_list(text: str) -> Iterator[str]:
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
    for text in _select_entries(texts):
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
    for text in _select_entries(allowed):
        for native in native_rules(_whole(text)):
            rule = parse_rule(native)
            if rule is not None and rule.pattern != "*" and rule.tool == "bash":
                why = why_nothing_matches(rule, ToolClass.RUN)
                if why:
                    yield f"{ALLOWED}: {text}: {why}"


_KNOWN: Final = frozenset({*KNOWN_TOOLS, *CLASSES, *NATIVE.values(), *FOREIGN})


def _select_entries(texts: Iterable[str]) -> list[str]:
    """Entries of all values, without foreign tools that have no counterpart."""
    return [entry for text in texts for entry in split_list(text) if entry.partition("(")[0] not in WITHOUT]


def _whole(text: str) -> str:
    return text if "(" in text else f"{text}(*)"


MOST_BYTES: Final = 1_000_000
"""Bytes of rules.toml: 10,000 rules of 100 letters. It is read at each decision."""
HEAD: Final = "# Tool calls that run without asking, in every project and, below, by project.\n"


class RuleTexts(Struct, frozen=True):
    """Content of a rules file: its rules in order, and its first fault."""

    rules: tuple[KeptRule, ...] = ()
    trouble: str = ""
    hides_denials: bool = False
    """True if rules that deny may be among what cannot be read."""


class RuleFile(Struct, frozen=True):
    """The persisted rules, read each time so that all processes follow an addition by one."""

    path: Path

    def rules(self, folder: Path | None = None) -> tuple[KeptRule, ...]:
        """All readable rules, oldest first; an unreadable rule asks rather than allows."""
        return _read(self.path).rules

    def trouble(self) -> str:
        """Error of reading the rules, in one sentence; empty without one."""
        found = _read(self.path).trouble
        return f"{found} Until this is repaired, its rules are ignored and no rule can be added." if found else ""

    def unreadable(self, folder: Path | None = None) -> str:
        """The file if rules that deny may stand in it and cannot be read, else an empty text."""
        return str(self.path) if _read(self.path).hides_denials else ""

    def add(self, rule: KeptRule) -> None:
        """Keep one more rule.

        Raises:
            OSError: it cannot be written, or was edited into something that would be lost.
        """
        kept = self._writable()
        if not any(_same(one, rule) for one in kept):
            self._write((*kept, rule))

    def remove(self, rule: KeptRule) -> None:
        """Keep a rule no longer.

        Raises:
            OSError: it cannot be written, or was edited into something that would be lost.
        """
        kept = self._writable()
        if any(_same(one, rule) for one in kept):
            self._write([one for one in kept if not _same(one, rule)])

    def in_memory(self) -> RulesInMemory:
        """The rules as they are now, for a run that keeps nothing."""
        return RulesInMemory(self.rules(), self.unreadable())

    def _writable(self) -> tuple[KeptRule, ...]:
        found = _read(self.path)
        if found.trouble:
            raise OSError(found.trouble)
        return found.rules

    def _write(self, rules: Sequence[KeptRule]) -> None:
        projects = sorted({one.project for one in rules if one.project})
        everywhere = _table("", [one for one in rules if not one.project])
        tables = (_table(project, [one for one in rules if one.project == project]) for project in projects)
        write_file(self.path, "\n".join((HEAD + everywhere, *tables)))


class RulesInMemory(Struct, eq=False):
    """Rules of an ephemeral run: read from a file, never written back."""

    kept: tuple[KeptRule, ...] = ()
    hidden: str = ""
    """The file whose rules that deny could not be read; empty for none."""

    def rules(self, folder: Path | None = None) -> tuple[KeptRule, ...]:
        """All rules, oldest first."""
        return self.kept

    def trouble(self) -> str:
        """Return an empty text: rules in memory have no faults."""
        return ""

    def unreadable(self, folder: Path | None = None) -> str:
        """The file whose rules that deny could not be read, else an empty text."""
        return self.hidden

    def add(self, rule: KeptRule) -> None:
        """Keep one more until the program ends."""
        if not any(_same(one, rule) for one in self.kept):
            self.kept = (*self.kept, rule)

    def remove(self, rule: KeptRule) -> None:
        """Keep one no longer."""
        self.kept = tuple(one for one in self.kept if not _same(one, rule))


def _same(one: KeptRule, other: KeptRule) -> bool:
    return (one.text, one.project) == (other.text, other.project)


def _table(project: str, rules: Sequence[KeptRule]) -> str:
    head = f"[projects.{toml_text(project)}]\n" if project else ""
    lines = "".join(f"  {toml_text(one.text)},\n" for one in rules if not narrows(one.text))
    deny = _list("ask", ASK, rules) + _list("deny", DENY, rules)
    dates = "".join(f"{toml_text(one.text)} = {_date(one.since)}\n" for one in rules if one.since)
    name = f"projects.{toml_text(project)}.since" if project else "since"
    return f"{head}allow = [\n{lines}]\n{deny}" + (f"\n[{name}]\n{dates}" if dates else "")


def _list(key: str, kind: str, rules: Sequence[KeptRule]) -> str:
    """The list of the rules of a kind; empty without any."""
    texts = [one.text.strip()[len(kind) :].strip() for one in rules if one.text.strip().startswith(kind)]
    return f"{key} = [\n{''.join(f'  {toml_text(text)},{chr(10)}' for text in texts)}]\n" if texts else ""


def _read(path: Path) -> RuleTexts:
    may_deny = True
    try:
        if not path.exists():
            return RuleTexts()
        data = read_regular(path, MOST_BYTES + 1)
        if data is None or len(data) > MOST_BYTES:
            trouble = f"{path} is not a readable file of at most {MOST_BYTES:,} bytes."
            return RuleTexts(trouble=trouble, hides_denials=True)
        may_deny = b"den" in data or b"ask" in data or b"\\" in data  # an escape may spell it
        document: dict[str, object] = tomllib.loads(data.decode("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        trouble = f"{path} cannot be read: {reveal(str(error)) or 'nested too deeply'}."
        return RuleTexts(trouble=trouble, hides_denials=may_deny)
    projects = document.pop("projects", {})
    rules, wrong = _rules_of(document, "", path)
    if not isinstance(projects, dict):
        trouble = f"{path}: 'projects' must be tables such as [projects.\"/folder\"]."
        return RuleTexts(tuple(rules), trouble, may_deny)
    for project, table in cast("dict[str, object]", projects).items():
        if not project.startswith("/") or not isinstance(table, dict):
            wrong = wrong or f'[projects."{reveal(project)}"] must be a table with the absolute path of a folder'
            continue
        more, problem = _rules_of(cast("dict[str, object]", table), project, path)
        rules += more
        wrong = wrong or (problem and f'[projects."{reveal(project)}"]: {problem}')
    return RuleTexts(tuple(rules), f"{path}: {wrong}." if wrong else "", bool(wrong) and may_deny)


def _rules_of(table: dict[str, object], project: str, path: Path) -> tuple[list[KeptRule], str]:
    """The rules of one table, and its first fault."""
    since = table.get("since", {})
    wrong = next((f"'{reveal(key)}' is unknown" for key in table if key not in {"allow", "ask", "deny", "since"}), "")
    if not isinstance(since, dict):
        since, wrong = {}, wrong or "'since' must be a table of dates"
    dates = cast("dict[str, object]", since)
    allowed, first = _texts(table, "allow")
    rules = [KeptRule(text, _time(dates.get(text)), project) for text in allowed]
    for key, kind in (("ask", ASK), ("deny", DENY)):
        narrowing, fault = _texts(table, key)
        first = first or fault
        rules += [KeptRule(f"{kind}{one}", _time(dates.get(f"{kind}{one}")), project, str(path)) for one in narrowing]
    return rules, wrong or first


def _texts(table: dict[str, object], key: str) -> tuple[list[str], str]:
    """The texts of a list, and its fault."""
    found = table.get(key, [])
    entries = cast("list[object]", found) if isinstance(found, list) else [None]
    texts = [one for one in entries if isinstance(one, str)]
    return texts, "" if len(texts) == len(entries) else f"'{key}' must be a list of texts"


def _date(since: float) -> str:
    return datetime.fromtimestamp(int(since), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _time(date: object) -> float:
    """Unix time of a date in the file; 0 for any other value."""
    return date.timestamp() if isinstance(date, datetime) else 0.0
