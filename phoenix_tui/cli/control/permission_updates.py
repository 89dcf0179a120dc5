"""Changes of permissions that a host sends with its answers: rules, the mode, folders."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

from msgspec import Struct

from engine.records import PermissionMode
from phoenix_tui.cli.control.host_rules import HostRules, rule_texts
from phoenix_tui.config.added_folders import folder_rules
from phoenix_tui.config.claude_words import FOREIGN_MODES
from tools.contract import JsonObject, JsonValue

ADDING: Final = frozenset({"addRules", "replaceRules"})
ChangeMode = Callable[[PermissionMode], Awaitable[None]]


class PermissionUpdates(Struct, eq=False):
    """Applies lists of changes; one entry that is unknown rejects the whole list."""

    rules: HostRules
    change_mode: ChangeMode
    say: Callable[[str], None]
    """Writes a line for the user."""
    cwd: Path
    """Folder where relative ones begin."""

    async def apply(self, entries: JsonValue) -> None:
        """Make the changes, or none of them and a line on stderr."""
        try:
            steps = _steps(entries, self.cwd)
        except ValueError as error:
            self.say(f"phoenix: The host's permission updates were not applied: {error}.")
            return
        for entry, texts in steps:
            await self._apply(entry, texts)

    def mode_of(self, entries: JsonValue) -> PermissionMode | None:
        """The mode that a list of changes sets last; None where it sets none, or is rejected."""
        try:
            modes = [str(entry["mode"]) for entry, _ in _steps(entries, self.cwd) if entry["type"] == "setMode"]
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


def _steps(entries: JsonValue, cwd: Path) -> list[tuple[JsonObject, list[str]]]:
    """The entries of a list and their rules. Raises ValueError."""
    if entries is None:
        return []
    if not isinstance(entries, list):
        raise ValueError("updatedPermissions must be a list")  # noqa: TRY004 - a fault of the host's data
    return [_step(entry, cwd) for entry in entries]


def _step(entry: JsonValue, cwd: Path) -> tuple[JsonObject, list[str]]:
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
