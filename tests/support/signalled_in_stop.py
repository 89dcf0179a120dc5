"""The real program, to which SIGTERM comes between its last look for a signal and the stop of itself."""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

from phoenix_tui.__main__ import main
from phoenix_tui.terminal.driver import QuietDriver

give_back: Any = QuietDriver.suspend_application_mode


def give_back_and_get_signal(driver: QuietDriver) -> None:
    """Give the terminal back as usual, then get the signal."""
    give_back(driver)
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    setattr(QuietDriver, "suspend_application_mode", give_back_and_get_signal)  # noqa: B010 - a method, to mypy
    sys.exit(main())
