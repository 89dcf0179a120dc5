"""Waits of commands without a screen for a database that another program keeps busy."""

from __future__ import annotations

from engine.ports.storage import PATIENCE, DatabaseWaits
from phoenix_tui.cli.output import write_progress
from phoenix_tui.cli.setup import Setup
from phoenix_tui.text.server_text import WAITING, say_once


def waits_on_stderr(setup: Setup) -> DatabaseWaits:
    """Report the reason of a wait once on stderr; `--timeout` bounds each wait, too."""
    waits = DatabaseWaits()
    waits.patience = min(setup.settings.number("timeout") or PATIENCE, PATIENCE)
    waits.listen(say_once(write_progress, f"{WAITING} Ctrl+C cancels. ({setup.paths.database})"))
    return waits
