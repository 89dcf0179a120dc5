"""/route: the supervisor that decides who answers, and its open decision."""

from __future__ import annotations

from typing import Final

from phoenix_tui.commands.command_context import CommandFunction
from phoenix_tui.commands.screen_front_end import on_screen
from phoenix_tui.features.route import route

RUNS: Final[dict[str, CommandFunction]] = {"route": on_screen(route)}
