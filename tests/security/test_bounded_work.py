"""SECURITY S7: work on texts of others takes bounded time on hostile ones (docs/decisions/bounded-loops.md)."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.support.hostile_work import WORKS


@pytest.mark.parametrize("name", WORKS)
def test_hostile_texts_take_bounded_time(name: str) -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "tests.support.hostile_work", name], capture_output=True, text=True, check=False
    )
    assert (ended.returncode, ended.stderr[-2_000:]) == (0, "")
