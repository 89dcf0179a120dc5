"""rules.toml: the permission rules that were answered with "always" or written by hand, per project and everywhere.

`allow`, `ask` and `deny` hold everywhere, `[projects."/folder"]` has its own; `since` beside them are the dates, in
which a rule that denies or asks is named with `deny ` or `ask ` in front, as in memory. Invalid edits count for
nothing, are named in a sentence, and keep the file from being rewritten. If rules that deny may be among what cannot
be read, `unreadable` names it.
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, cast

from msgspec import Struct

from engine.permissions.denials import ASK, DENY, narrows
from engine.permissions.rules import KeptRule
from phoenix_tui.config.toml_text import toml_text
from tools.clean import reveal
from tools.files.own_files import read_regular, write_file

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
