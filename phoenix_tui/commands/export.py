"""/export: the open conversation as a file."""

from __future__ import annotations

from typing import Final

from phoenix_tui.commands.command_context import CommandFunction
from phoenix_tui.commands.screen_front_end import on_screen
from phoenix_tui.features.conversations import export

RUNS: Final[dict[str, CommandFunction]] = {"export": on_screen(export)}
