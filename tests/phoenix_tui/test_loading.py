"""Modules that are loaded behind the first frame: one after the other, with few switches of threads meanwhile."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from phoenix_tui.lifecycle.loading import SELDOM, load, seldom_switched

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


async def test_a_module_that_is_not_there_leaves_the_next_one_free() -> None:
    with pytest.raises(ImportError):
        await load("phoenix_tui.nothing_of_this_name")
    assert (await load("phoenix_tui.lifecycle.loading")) is sys.modules["phoenix_tui.lifecycle.loading"]


async def test_threads_are_switched_as_before_when_loading_is_over_or_fails() -> None:
    usual = sys.getswitchinterval()
    with pytest.raises(OSError, match="gone"):
        async with seldom_switched():
            assert sys.getswitchinterval() == pytest.approx(SELDOM)
            raise OSError("gone")
    assert sys.getswitchinterval() == usual
