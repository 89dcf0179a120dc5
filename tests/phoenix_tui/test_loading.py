"""Modules that are loaded behind the first frame: one after the other, with few switches of threads meanwhile."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from phoenix_tui.lifecycle.threads import SELDOM, load, seldom_switched
from tests.support.waiting import poll

MODULE = """
import threading, time
begun = time.monotonic()
threading.Event().wait(0.02)
ended = time.monotonic()
"""


async def test_a_second_module_waits_for_the_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("loaded_first", "loaded_second"):
        (tmp_path / f"{name}.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    first, second = await asyncio.gather(load("loaded_first"), load("loaded_second"))
    times = sorted([(first.begun, first.ended), (second.begun, second.ended)])
    assert times[0][1] <= times[1][0]


async def test_a_module_that_is_half_imported_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "loaded_half.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    under_way = asyncio.create_task(load("loaded_half"))
    assert await poll(lambda: "loaded_half" in sys.modules)
    assert (await load("loaded_half")).ended > 0
    assert (await load("loaded_half")) is await under_way


def test_every_command_can_be_used_first_twice_at_once() -> None:
    """A new process has loaded none of them; two threads ask."""
    script = (
        "import asyncio, sys; from concurrent.futures import ThreadPoolExecutor\n"
        "from phoenix_tui.commands.run import load_function\n"
        "from phoenix_tui.features.catalogue import COMMANDS\n"
        "sys.setswitchinterval(1e-5)\n"
        "async def twice(): return await asyncio.gather(*(load_function(one) for one in COMMANDS for _ in range(2)))\n"
        "with ThreadPoolExecutor(2) as pool:\n"
        "    both = list(pool.map(lambda _: asyncio.run(twice()), range(2)))\n"
        "print(all(callable(one) for found in both for one in found), len(COMMANDS) * 2 == len(both[0]))\n"
    )
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (ended.stdout.strip(), ended.stderr) == ("True True", "")


async def test_a_module_that_is_not_there_leaves_the_next_one_free() -> None:
    with pytest.raises(ImportError):
        await load("phoenix_tui.nothing_of_this_name")
    assert (await load("phoenix_tui.lifecycle.threads")) is sys.modules["phoenix_tui.lifecycle.threads"]


async def test_threads_are_switched_as_before_when_loading_is_over_or_fails() -> None:
    usual = sys.getswitchinterval()
    with pytest.raises(OSError, match="gone"):
        async with seldom_switched():
            assert sys.getswitchinterval() == pytest.approx(SELDOM)
            raise OSError("gone")
    assert sys.getswitchinterval() == usual
