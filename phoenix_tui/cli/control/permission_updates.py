"""Changes of permissions that a host sends with its answers: rules, the mode, folders."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

from msgspec import Struct

from engine.records import PermissionMode
from phoenix_tui.cli.control.host_rules import HostRules, folder_rules, rule_texts
from phoenix_tui.config.claude_words import FOREIGN_MODES
from tools.contract import JsonObject, JsonValue

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
        if entries is None:
            return
        try:
            steps = [_step(entry, self.cwd) for entry in entries] if isinstance(entries, list) else None
            if steps is None:
                raise ValueError("updatedPermissions must be a list")  # noqa: TRY301 - as below
        except ValueError as error:
            self.say(f"phoenix: The host's permission updates were not applied: {error}.")
            return
        for entry, texts in steps:
            await self._apply(entry, texts)

    async def _apply(self, entry: JsonObject, texts: list[str]) -> None:
        match entry["type"], entry.get("behavior"):
            case "setMode", _:
                await self.change_mode(PermissionMode(FOREIGN_MODES[str(entry["mode"])]))
            case (("addRules" | "replaceRules"), "allow") | ("addDirectories", _):
                for text in texts:
                    self.rules.allow(text)
            case (("addRules" | "replaceRules"), "deny"):
                for text in texts:
                    self.rules.deny(text)
            case _:
                for text in texts:
                    self.rules.withdraw(text)


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
