"""/skills and /commands: files of the project and of the user that can be called or loaded."""

from __future__ import annotations

from typing import Final

from engine.ports.invocables import InvocableKind
from phoenix_tui.commands.command_context import CommandContext, CommandFunction
from phoenix_tui.commands.screen_front_end import ScreenFrontEnd
from phoenix_tui.features.skills import show_invocables


async def skills(ctx: CommandContext, _: str) -> None:
    """Skills; the list opens again behind each action."""
    await show_invocables(ScreenFrontEnd(ctx), InvocableKind.SKILL)


async def commands(ctx: CommandContext, _: str) -> None:
    """Command files."""
    await show_invocables(ScreenFrontEnd(ctx), InvocableKind.COMMAND)


RUNS: Final[dict[str, CommandFunction]] = {"skills": skills, "commands": commands}
