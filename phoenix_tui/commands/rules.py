"""/rules: what may run without asking, and taking it back."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from engine.permissions.projects import project_of
from phoenix_tui.commands.command_context import CommandContext, Run
from phoenix_tui.modals.rules_sheet import RulesSheet
from phoenix_tui.text.rule_text import no_rule_counts


async def rules(ctx: CommandContext, _: str) -> None:
    """All of them; the sheet stays open over changes."""
    active = ctx.active
    conversation = active.conversation
    mode = conversation.record.permission_mode if conversation else active.mode
    here = conversation.id if conversation is not None and not conversation.read_only else ""
    folder = conversation.record.cwd if conversation is not None else Path.cwd()
    await ctx.sheets.show(RulesSheet(active.services.engine.rules, here, str(project_of(folder)), no_rule_counts(mode)))


RUNS: Final[dict[str, Run]] = {"rules": rules}
