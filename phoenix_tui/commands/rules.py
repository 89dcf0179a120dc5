"""/rules: what may run without asking, and taking it back."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from engine.permissions.projects import project_of
from engine.records import PermissionMode
from phoenix_tui.commands.bench import Bench, Run
from phoenix_tui.labels import MODE_MEANINGS
from phoenix_tui.screens.rules_sheet import RulesSheet

RULES_COUNT: Final = frozenset({PermissionMode.ASK, PermissionMode.ACCEPT_EDITS, PermissionMode.AUTO})
"""Modes in which a rule is looked at; the others refuse whatever a rule could allow."""


async def rules(bench: Bench, _: str) -> None:
    """All of them; the sheet stays open over changes."""
    desk = bench.desk
    conversation = desk.conversation
    mode = conversation.record.permission_mode if conversation else desk.mode
    note = "" if mode in RULES_COUNT else f"In mode {mode.value} no rule counts: {MODE_MEANINGS[mode]}."
    here = conversation.id if conversation is not None and not conversation.read_only else ""
    folder = conversation.record.cwd if conversation is not None else Path.cwd()
    await bench.sheets.show(RulesSheet(desk.services.engine.rules, here, str(project_of(folder)), note))


RUNS: Final[dict[str, Run]] = {"rules": rules}
