"""rules.toml: the permission rules that were answered with "always"."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from msgspec import Struct

from phoenix_tui.config.files import toml_text, write_private
from phoenix_tui.config.settings import ConfigError


class RuleFile(Struct, frozen=True):
    """The persisted rules, read anew each time so that what one process adds all of them follow."""

    path: Path

    def rules(self) -> tuple[str, ...]:
        """All rules, oldest first; none when the file is missing or broken, which asks rather than allows."""
        try:
            return _parse(self.path)
        except ConfigError:
            return ()

    def add(self, rule: str) -> None:
        """Keep one more rule.

        Raises:
            OSError: it cannot be written, or was edited into something that is no rules file.
        """
        try:
            kept = _parse(self.path)
        except ConfigError as error:
            raise OSError(str(error)) from error
        if rule in kept:
            return
        lines = "".join(f"  {toml_text(each)},\n" for each in (*kept, rule))
        write_private(self.path, f"# Tool calls that run without asking.\nallow = [\n{lines}]\n")


@dataclass(slots=True)
class RulesInMemory:
    """Rules of an ephemeral run: read from a file, never written back."""

    kept: tuple[str, ...] = ()

    def rules(self) -> tuple[str, ...]:
        """All rules, oldest first."""
        return self.kept

    def add(self, rule: str) -> None:
        """Keep one more until the program ends."""
        self.kept = (*self.kept, rule)


def _parse(path: Path) -> tuple[str, ...]:
    try:
        document: dict[str, object] = tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return ()
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"{path} cannot be read: {error}.") from error
    allow = document.get("allow", [])
    if not isinstance(allow, list) or not all(isinstance(rule, str) for rule in cast("list[object]", allow)):
        raise ConfigError(f"{path}: 'allow' must be a list of texts.")
    return tuple(cast("list[str]", allow))
