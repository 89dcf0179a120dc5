"""Servers, doubles and child processes of the tests. A child collects no garbage while it loads and as it ends, as
Phoenix does: with the SDK of MCP that is a third of its time.
"""

import atexit
import gc

gc.set_threshold(100_000, 10, 50)
atexit.register(gc.freeze)
