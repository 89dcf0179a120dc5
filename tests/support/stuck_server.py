"""`phoenix serve` in which SIGUSR1 stops the event loop, that of its tabs too, as in `stuck_child`."""

from __future__ import annotations

import sys

from phoenix_tui.__main__ import main
from phoenix_tui.terminal.serving import handover
from tests.support.stuck_child import stand_on_signal

if __name__ == "__main__":
    stand_on_signal()
    boot = handover.BOOT.replace("phoenix_tui.terminal.serving.tab", "tests.support.stuck_tab")
    setattr(handover, "BOOT", boot)  # noqa: B010 - a constant, another one for this child alone
    sys.exit(main())
