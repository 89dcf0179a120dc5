"""The process of one tab: hardens itself before it receives a key, then runs Phoenix."""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence

from phoenix_tui.terminal.serving.handover import take_over
from tools.process.hardening import harden


def end_with_parent() -> None:
    """Let the system send SIGHUP when the server dies in any way: a tab whose loop is blocked would not notice it."""
    if sys.platform == "linux":
        from tools.process.zygote import kernel  # noqa: PLC0415 - Linux alone can load it

        kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGHUP)


def main(argv: Sequence[str]) -> int:
    """Run Phoenix in this tab and give the exit code; the first argument is the descriptor of the handover."""
    descriptor, *arguments = argv
    harden()
    end_with_parent()
    try:
        take_over(int(descriptor))
    except (OSError, ValueError):
        sys.stderr.write("phoenix: The server of this tab has ended.\n")
        return 1
    from phoenix_tui.__main__ import main as run  # noqa: PLC0415 - what it imports may look at the environment

    return run(arguments)
