"""Threads behind the loop: text written in order, and modules loaded one after the other."""

from __future__ import annotations

import asyncio
import fcntl
import os
import select
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from phoenix_tui.lifecycle.threads import SELDOM, load, seldom_switched
from phoenix_tui.terminal import output_thread
from phoenix_tui.terminal.output_thread import OutputFull, OutputThread, write_all
from tests.support.waiting import poll


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    """The two ends of a pipe: from which it is read, and to which is written."""
    reading, writing = os.pipe()
    yield reading, writing
    os.close(reading)
    os.close(writing)


async def test_what_nobody_reads_waits_up_to_a_limit_and_then_goes_out_in_order(
    monkeypatch: pytest.MonkeyPatch, pipe: tuple[int, int]
) -> None:
    reading, writing = pipe
    monkeypatch.setattr(output_thread, "MOST", 300_000)
    thread = OutputThread(lambda: None, writing)
    for number in range(3):
        thread.write(writing, b"%d" % number * 100_000)
    with pytest.raises(OutputFull, match="wait and nobody reads them"):
        thread.write(writing, b"x")
    read = b""
    while len(read) < 300_000:
        read += os.read(reading, 65_536)
    await thread.drain()
    thread.close()
    assert read == b"0" * 100_000 + b"1" * 100_000 + b"2" * 100_000


async def test_what_is_dropped_ends_within_one_system_call_and_what_comes_behind_it_follows(
    pipe: tuple[int, int],
) -> None:
    reading, writing = pipe
    room = fcntl.fcntl(writing, fcntl.F_GETPIPE_SZ)
    thread = OutputThread(lambda: None, writing, 4096)
    thread.write(writing, b"x" * 10 * room)
    thread.write(writing, b"y" * room)
    assert await poll(lambda: select.select([], [writing], [], 0)[1] == [])
    thread.drop()
    thread.write(writing, b"end")
    read = b""
    while not read.endswith(b"end"):
        read += os.read(reading, 65_536)
    await thread.drain()
    thread.close()
    assert set(read[:-3]) == {ord("x")}
    assert room <= len(read) - 3 <= room + 4096


async def test_a_reader_that_is_gone_is_told_to_whoever_writes_next_and_at_once() -> None:
    reading, writing = os.pipe()
    gone = threading.Event()
    thread = OutputThread(gone.set, writing)
    os.close(reading)
    thread.write(writing, b"hello")
    assert gone.wait(10)
    with pytest.raises(BrokenPipeError):
        thread.write(writing, b"again")
    with pytest.raises(BrokenPipeError):
        await thread.drain()
    thread.close()
    os.close(writing)


async def test_stderr_that_is_lost_is_dropped_without_a_word(pipe: tuple[int, int]) -> None:
    reading, writing = pipe
    closed, stderr = os.pipe()
    os.close(closed)
    thread = OutputThread(lambda: None, writing)
    thread.write(stderr, b"nobody reads this")
    thread.write(writing, b"but this")
    await thread.drain()
    thread.write(stderr, b"nor this")
    thread.close()
    assert os.read(reading, 100) == b"but this"
    os.close(stderr)


def test_a_descriptor_that_would_block_is_waited_for() -> None:
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    content, read = b"0123456789" * 50_000, b""
    writer = threading.Thread(target=write_all, args=(writing, content))
    writer.start()
    while len(read) < len(content):
        read += os.read(reading, 1_000)
    writer.join()
    assert read == content
    os.close(reading)
    with pytest.raises(BrokenPipeError):
        write_all(writing, content)
    os.close(writing)


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
