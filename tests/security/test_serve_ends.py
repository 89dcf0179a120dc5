"""SECURITY D1: signals end `phoenix serve` and every tab, whatever their loops do, and nothing of them is left."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import pytest

from tests.support.bounded import bounded
from tests.support.cli import phoenix_in
from tests.support.program import family, gone
from tests.support.serving import DEADLINE, serving, tab
from tests.support.stuck_child import STANDING
from tests.support.waiting import poll

CHILD = "tests.support.stuck_server"


@pytest.mark.parametrize(
    ("number", "stands", "code"),
    [
        (signal.SIGHUP, "", 0),
        (signal.SIGTERM, "server", 128 + signal.SIGTERM),
        (signal.SIGINT, "tab", 0),
        (signal.SIGKILL, "tab", -signal.SIGKILL),
    ],
)
async def test_a_server_ends_with_every_process_of_its_tabs(
    tmp_path: Path, number: signal.Signals, stands: str, code: int
) -> None:
    phoenix = phoenix_in(tmp_path, STUCK="python")
    async with serving(phoenix, module=CHILD) as served:
        pid = served.process.pid
        with bounded(pid, seconds=120):
            async with tab(served):
                everyone = family(pid)
                (of_tab,) = [one for one in everyone if command_of(one).rstrip("\0") == "phoenix"]
                if stands:
                    os.kill(of_tab if stands == "tab" else pid, signal.SIGUSR1)
                    assert await poll(lambda: (phoenix.home / STANDING).exists())
                os.kill(pid, number)
                assert await asyncio.wait_for(served.process.wait(), DEADLINE) == code
            assert await poll(lambda: gone(everyone)), [command_of(one) for one in everyone]
    assert b"Traceback" not in served.errors


def command_of(pid: int) -> str:
    """The command line of a process; empty once it is gone."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return ""
