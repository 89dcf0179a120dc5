"""CPU time and memory of a process and of what it started."""

from __future__ import annotations

import os
import subprocess
import sys

from phoenix_tui.wiring.doctor import usage_findings
from tools.process.usage import CommandUsage, UsageReader, measure_tree

BURN = "print(sum(range(8_000_000)), flush=True); input()"
NOBODY = 2**22 + 1
"""Above the largest pid of Linux."""


def test_a_process_and_what_it_started_are_measured() -> None:
    shell = f"{sys.executable} -c '{BURN}'; true"
    with subprocess.Popen(("sh", "-c", shell), stdin=subprocess.PIPE, stdout=subprocess.PIPE) as started:
        assert started.stdout is not None
        assert started.stdin is not None
        started.stdout.readline()
        own, child = measure_tree(started.pid)
        assert (own.pid, own.name) == (started.pid, "sh")
        assert child.cpu > 0.0
        assert child.memory > 1_000_000
        words = [one.text for one in usage_findings(started.pid)]
        assert words[0].startswith(f"this process (pid {started.pid}): CPU 0.0 s")
        assert f"1 process started by it: CPU {child.cpu:.1f} s" in words[1]
        assert f"(pid {child.pid})" in words[1]
        started.stdin.write(b"\n")
        started.stdin.close()
    assert os.getpid() == measure_tree(os.getpid())[0].pid


def test_a_process_that_is_not_there_is_no_fault() -> None:
    assert measure_tree(NOBODY) == ()
    assert usage_findings(NOBODY)[0].text == "the system does not tell CPU time and memory of processes"


def test_the_use_of_a_command_is_that_of_its_tree_since_the_look_before() -> None:
    reader = UsageReader()
    shell = f"{sys.executable} -c '{BURN}'; true"
    with subprocess.Popen(("sh", "-c", shell), stdin=subprocess.PIPE, stdout=subprocess.PIPE) as started:
        assert started.stdout is not None
        assert started.stdin is not None
        first = reader.read(started.pid)
        assert first is not None
        assert first.cpu is None, "there is nothing to compare with"
        started.stdout.readline()
        second = reader.read(started.pid)
        assert second is not None
        assert second.cpu
        assert second.memory > 2_000_000
        reader.keep(set())
        again = reader.read(started.pid)
        assert again is not None
        assert again.cpu is None
        started.stdin.write(b"\n")
        started.stdin.close()
    assert reader.read(NOBODY) is None


def test_the_words_of_a_use() -> None:
    assert CommandUsage(412_300_000).words == "412.3 MB"
    assert CommandUsage(412_300_000, 83).words == "83% cpu · 412.3 MB"
