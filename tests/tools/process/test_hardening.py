"""Protection of Phoenix's own process."""

from __future__ import annotations

import os
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


BLANKS = """
import os, subprocess
from tools.process.hardening import harden
harden()
shown = open("/proc/self/environ", "rb").read().split(b"\\0")
print(*sorted(entry.decode() for entry in shown if entry.startswith((b"PLANTED_API_KEY=", b"PLAIN=", b"LC_PLAIN="))))
told = subprocess.run(["printenv", "PLANTED_API_KEY"], capture_output=True, text=True)
print(os.environ["PLANTED_API_KEY"], told.stdout)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="/proc is of Linux")
def test_a_key_is_blank_where_the_system_shows_the_environment_and_as_it_was_to_phoenix() -> None:
    environment = {**os.environ, "PLANTED_API_KEY": "sk-1234", "PLAIN": "words", "LC_PLAIN": "C"}
    done = subprocess.run([sys.executable, "-c", BLANKS], cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.stdout.split() == ["LC_PLAIN=C", "PLAIN=*****", "PLANTED_API_KEY=*******", "sk-1234", "sk-1234"]
