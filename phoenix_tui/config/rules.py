"""rules.toml: the permission rules that were answered with "always"."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

from msgspec import Struct

from engine.permissions.rules import KeptRule
from phoenix_tui.config.files import toml_text, write_private
from phoenix_tui.config.settings import ConfigError


class RuleFile(Struct, frozen=True):
    """The persisted rules, read anew each time so that what one process adds all of them follow."""

    path: Path

    def rules(self) -> tuple[str, ...]:
        """All rules, oldest first; none when the file is missing or broken, which asks rather than allows."""
        try:
            return tuple(rule.text for rule in _parse(self.path))
        except ConfigError:
            return ()

    def listed(self) -> tuple[KeptRule, ...]:
        """All rules, oldest first.

        Raises:
            OSError: the file was edited into something that is no rules file; the sentence names it.
        """
        try:
            return _parse(self.path)
        except ConfigError as error:
            raise OSError(str(error)) from error

    def add(self, rule: str, since: float = 0.0) -> None:
        """Keep one more rule.

        Raises:
            OSError: it cannot be written, or was edited into something that is no rules file.
        """
        kept = self.listed()
        if all(one.text != rule for one in kept):
            self._write((*kept, KeptRule(rule, since)))

    def remove(self, rule: str) -> None:
        """Keep a rule no longer.

        Raises:
            OSError: it cannot be written, or was edited into something that is no rules file.
        """
        kept = self.listed()
        if any(one.text == rule for one in kept):
            self._write(one for one in kept if one.text != rule)

    def in_memory(self) -> RulesInMemory:
        """The rules as they are now, for a run that keeps nothing."""
        try:
            return RulesInMemory(_parse(self.path))
        except ConfigError:
            return RulesInMemory()

    def _write(self, rules: Iterable[KeptRule]) -> None:
        kept = tuple(rules)
        lines = "".join(f"  {toml_text(one.text)},\n" for one in kept)
        dates = "".join(f"{toml_text(one.text)} = {_date(one.since)}\n" for one in kept if one.since)
        since = f"\n[since]\n{dates}" if dates else ""
        write_private(self.path, f"# Tool calls that run without asking.\nallow = [\n{lines}]\n{since}")


class RulesInMemory(Struct, eq=False):
    """Rules of an ephemeral run: read from a file, never written back."""

    kept: tuple[KeptRule, ...] = ()

    def rules(self) -> tuple[str, ...]:
        """All rules, oldest first."""
        return tuple(rule.text for rule in self.kept)

    def listed(self) -> tuple[KeptRule, ...]:
        """All rules, oldest first."""
        return self.kept

    def add(self, rule: str, since: float = 0.0) -> None:
        """Keep one more until the program ends."""
        if rule not in self.rules():
            self.kept = (*self.kept, KeptRule(rule, since))

    def remove(self, rule: str) -> None:
        """Keep one no longer."""
        self.kept = tuple(one for one in self.kept if one.text != rule)


def _parse(path: Path) -> tuple[KeptRule, ...]:
    try:
        document: dict[str, object] = tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return ()
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"{path} cannot be read: {error}.") from error
    allow = document.get("allow", [])
    if not isinstance(allow, list) or not all(isinstance(rule, str) for rule in cast("list[object]", allow)):
        raise ConfigError(f"{path}: 'allow' must be a list of texts.")
    since = document.get("since")
    dates = cast("dict[str, object]", since) if isinstance(since, dict) else {}
    return tuple(KeptRule(rule, _time(dates.get(rule))) for rule in cast("list[str]", allow))


def _date(since: float) -> str:
    return datetime.fromtimestamp(int(since), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _time(date: object) -> float:
    """Unix time of a date in the file; 0 for anything else that stands there."""
    return date.timestamp() if isinstance(date, datetime) else 0.0
