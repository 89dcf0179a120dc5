"""The real program as `nohup` starts it: SIGHUP is ignored from the beginning."""

from __future__ import annotations

import signal
import sys

from phoenix_tui.__main__ import main

if __name__ == "__main__":
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    sys.exit(main())
