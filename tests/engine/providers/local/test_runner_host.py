"""Programs on the ProcessRunner port, with real processes."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from engine.providers.local.server import RunnerHost, ServerEnded
from tests.support.plain_runner import PlainRunner
from tools.contract import Sandbox

READY = "import sys,time\nprint('noise', flush=True)\nprint('ready ' + sys.stdin.read(), flush=True)\ntime.sleep(600)"


def argv(script: str) -> tuple[str, ...]:
    return (sys.executable, "-c", script)


async def test_the_marked_line_is_found_and_stopping_ends_the_process(tmp_path: Path) -> None:
    runner = PlainRunner()
    program = await RunnerHost(runner, tmp_path).start(argv(READY), {}, b"config")
    assert await program.line("ready ") == "config"
    before = program.running
    await program.stop()
    assert (before, program.running) == (True, False)
    with pytest.raises(ProcessLookupError):
        os.kill(runner.pids[0], 0)
    assert runner.commands[0].sandbox == Sandbox(unseen=True)


async def test_an_early_end_gives_code_and_last_words(tmp_path: Path) -> None:
    script = "import sys; print('cannot load'); sys.exit(4)"
    program = await RunnerHost(PlainRunner(), tmp_path).start(argv(script), {}, b"")
    with pytest.raises(ServerEnded) as caught:
        await program.line("ready ")
    assert (caught.value.exit_code, caught.value.signal, caught.value.tail) == (4, None, "cannot load")


async def test_a_signal_is_told_apart(tmp_path: Path) -> None:
    script = "import os, signal; os.kill(os.getpid(), signal.SIGILL)"
    program = await RunnerHost(PlainRunner(), tmp_path).start(argv(script), {}, b"")
    with pytest.raises(ServerEnded) as caught:
        await program.line("ready ")
    assert caught.value.signal == 4


async def test_a_program_that_is_not_there_ends_at_once(tmp_path: Path) -> None:
    program = await RunnerHost(PlainRunner(), tmp_path).start((str(tmp_path / "gone"),), {}, b"")
    with pytest.raises(ServerEnded) as caught:
        await program.line("ready ")
    assert caught.value.tail == "No such file or directory"
