"""A tab of `phoenix serve` in which SIGUSR1 stops the event loop: what `stuck_server` starts."""

from __future__ import annotations

from collections.abc import Sequence

from phoenix_tui.terminal.serving.tab import main as run
from tests.support.stuck_child import stand_on_signal


def main(argv: Sequence[str]) -> int:
    """Run the real program."""
    stand_on_signal()
    return run(argv)
