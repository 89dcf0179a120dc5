"""/skills and /commands in lines."""

from __future__ import annotations

from typing import Final

from engine.ports.invocables import InvocableKind
from phoenix_tui.features.skills import show_invocables
from phoenix_tui.linear.context import LinearContext, LineCommand


async def _skills(ctx: LinearContext, _argument: str) -> None:
    await show_invocables(ctx, InvocableKind.SKILL)


async def _commands(ctx: LinearContext, _argument: str) -> None:
    await show_invocables(ctx, InvocableKind.COMMAND)


RUNS: Final[dict[str, LineCommand]] = {"skills": _skills, "commands": _commands}
