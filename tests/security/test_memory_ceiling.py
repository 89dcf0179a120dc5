"""Weakness D1: above its ceiling of memory Phoenix ends, and is ended where it cannot."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from phoenix_tui import memory
from tests.support.bounded import bounded
from tests.support.cli import Phoenix, with_claude
from tests.support.program import CTRL_Q, program

CHILD = "tests.support.stuck_child"


@pytest.mark.pty
@pytest.mark.parametrize(("how", "code"), [("eats", 128 + signal.SIGTERM), ("eats-in-c", -signal.SIGKILL)])
async def test_what_eats_memory_is_ended_and_the_terminal_comes_back(tmp_path: Path, how: str, code: int) -> None:
    one = with_claude(tmp_path, "http://127.0.0.1:9")
    phoenix = Phoenix(one.home, one.cwd, {**one.extra, "STUCK": how})
    async with program(phoenix, module=CHILD) as running:
        with bounded(running.pid, megabytes=900, seconds=60):
            await running.ready()
            await running.until(lambda: any(tmp_path.rglob("phoenix.jsonl")), "the log")
            running.type(CTRL_Q)
            assert await running.exit_code() == code
            await running.until(lambda: running.terminal_is_back, "the terminal")
    if how == "eats":
        assert any("above the ceiling of 200 MB" in line["message"] for line in log_of(tmp_path))


def test_the_ceiling_is_a_share_of_the_machine_within_bounds() -> None:
    assert memory.LEAST <= memory.ceiling() <= memory.MOST
    assert 0 < memory.resident() < memory.LEAST


def log_of(home: Path) -> list[dict[str, str]]:
    """The lines of the log."""
    return [json.loads(line) for path in home.rglob("phoenix.jsonl") for line in path.read_text("utf-8").splitlines()]
