"""Further folders of the sessions of one client: rules over those of the user, for as long as a session is open."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from engine.permissions.projects import project_of
from engine.permissions.rules import KeptRule, RuleBook
from phoenix_tui.config.added_folders import folder_rules
from phoenix_tui.config.rule_layer import RuleLayer

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
