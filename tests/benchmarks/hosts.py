"""The first answer to a host that drives Phoenix by lines."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator

from tests.benchmarks.bench import Bench
from tests.benchmarks.program import environment, new_tag
from tests.benchmarks.rows import Row, median, spread
from tests.support.control_host import FLAGS

HELLO = b'{"type":"control_request","request_id":"r","request":{"subtype":"initialize","hooks":null}}\n'
NOWHERE = "http://127.0.0.1:9"


def first_answer(bench: Bench) -> Iterator[Row]:
    """Time from the spawn to the answer to `initialize`, beside an interpreter with modules of others."""
    program = [sys.executable, "-m", "phoenix_tui", *FLAGS]
    _answered(bench, program)  # makes the database
    times, bare, floor = list[float](), list[float](), list[float]()
    for _ in range(bench.rounds(15, 7)):
        times.append(_answered(bench, program))
        bare.append(_ended("pass"))
        floor.append(_ended("import asyncio, json, sqlite3, msgspec, aiosqlite, h11, ssl"))
    row = Row("first answer to a host", median(times), "ms", spread(times)).at_most(300)
    yield row.beside("python -c pass", median(bare))
    yield Row("its modules from others alone", median(floor), "ms", spread(floor))


def _answered(bench: Bench, program: list[str]) -> float:
    began = time.monotonic()
    process = subprocess.Popen(
        program,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment(bench.folder, NOWHERE, new_tag()),
        cwd=bench.folder,
    )
    out = _first_line(process)
    taken = (time.monotonic() - began) * 1000
    assert b"success" in out, out
    process.communicate(timeout=60)
    return taken


def _first_line(process: subprocess.Popen[bytes]) -> bytes:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(HELLO)
    process.stdin.flush()
    return process.stdout.readline()


def _ended(code: str) -> float:
    began = time.monotonic()
    subprocess.run([sys.executable, "-c", code], check=True)
    return (time.monotonic() - began) * 1000
