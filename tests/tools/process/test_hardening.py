"""What Phoenix does to its own process."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.support.processes import ROOT

SCRIPT = """
import ctypes, sys, threading
from tools.process.hardening import harden
harden()
kept = []
threads = [threading.Thread(target=lambda: kept.append(bytearray(200_000))) for _ in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
libc = ctypes.CDLL(None)
libc.malloc_info(0, ctypes.c_void_p.in_dll(libc, "stdout"))
libc.fflush(None)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="glibc alone tells")
def test_all_threads_of_phoenix_share_one_heap() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.count("<heap nr=") == 1
