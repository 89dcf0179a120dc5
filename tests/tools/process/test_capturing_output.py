"""Output in any amount and of any kind stays bounded and harmless (FAULTS 26, 46-48)."""

from __future__ import annotations

import asyncio
import resource
import time
from pathlib import Path

import pytest

from tests.support.processes import Watch
from tests.support.waiting import poll
from tools.contract import Command, OutputChunk, Progress
from tools.process.output import REPORT_INTERVAL, HeadAndTail, LiveText, Spill
from tools.process.start import Processes

HOME = Path("/")


def texts(reports: list[Progress]) -> list[str]:
    return [each.text for each in reports if isinstance(each, OutputChunk)]


def test_head_and_tail_are_kept_and_the_rest_is_counted() -> None:
    kept = HeadAndTail(4, 3)
    for chunk in (b"ab", b"cdef", b"ghi"):
        kept.feed(chunk)
    captured = kept.capture()
    assert (captured.head, captured.tail, captured.dropped) == (b"abcd", b"ghi", 2)


@pytest.mark.parametrize(
    ("chunks", "lines"),
    [((), 0), ((b"a",), 1), ((b"a\n", b""), 1), ((b"a\nb",), 2), ((b"a\n" * 9, b"b\n" * 9, b"c"), 19), ((b"\n\n",), 2)],
)
def test_lines_are_counted_in_what_is_dropped_too(chunks: tuple[bytes, ...], lines: int) -> None:
    kept = HeadAndTail(4, 3)
    for chunk in chunks:
        kept.feed(chunk)
    assert kept.capture().lines == lines


def test_short_output_is_all_head() -> None:
    kept = HeadAndTail(4, 3)
    kept.feed(b"abc")
    assert kept.capture().head == b"abc"
    assert kept.capture().dropped == 0


def test_invalid_bytes_are_spelt_out_and_split_characters_joined() -> None:
    live = LiveText()
    live.feed(b"\xffa\xc3")
    first = live.take()
    live.feed(b"\xa4\n")
    assert (first, live.take(final=True)) == ("\\xffa", "ä\n")


def test_an_escape_sequence_is_cleaned_in_one_piece() -> None:
    live = LiveText()
    live.feed(b"red \x1b[3")
    first = live.take()
    live.feed(b"1mtext")
    assert (first, live.take(final=True)) == ("red ", "text")


def test_a_flood_between_two_reports_is_cut_and_counted() -> None:
    live = LiveText()
    for _ in range(100):
        live.feed(b"0123456789" * 1000)
    text = live.take()
    assert len(text) < 70_000
    assert text.startswith("\n[9")


async def test_a_huge_line_costs_no_memory_and_is_counted(processes: Processes) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    command = Command(("/bin/sh", "-c", "head -c 200000000 /dev/zero | tr '\\0' x"), HOME, timeout=60)
    finished = await processes.runner.run(command, list[Progress]().append)
    captured = finished.captured
    assert len(captured.head) + len(captured.tail) + captured.dropped == 200_000_000
    assert len(captured.head) == command.keep_head
    assert len(captured.tail) == command.keep_tail
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000


async def test_yes_neither_floods_the_reports_nor_holds_the_loop(processes: Processes, watch: Watch) -> None:
    reports: list[Progress] = []
    task = asyncio.create_task(processes.runner.run(watch.command("exec yes"), reports.append))
    assert await poll(watch.stands)
    began = time.monotonic()
    assert await poll(lambda: len(texts(reports)) >= 10)  # the loop runs during the flood
    assert len(texts(reports)) <= (time.monotonic() - began) / REPORT_INTERVAL + 2
    assert max(len(text) for text in texts(reports)) < 70_000
    task.cancel()
    await asyncio.wait({task})
    assert watch.alive() == set()


async def test_the_first_output_is_reported_before_the_command_ends(processes: Processes, watch: Watch) -> None:
    reports: list[Progress] = []
    task = asyncio.create_task(processes.runner.run(watch.command("echo first; sleep 60"), reports.append))
    assert await poll(lambda: texts(reports) == ["first\n"])
    task.cancel()
    await asyncio.wait({task})


async def test_all_output_goes_to_the_file_once_it_is_long(processes: Processes, tmp_path: Path) -> None:
    spill = tmp_path / "new" / "output.txt"
    command = Command(("/usr/bin/seq", "100000"), HOME, keep_head=100, keep_tail=100, spill=spill)
    captured = (await processes.runner.run(command)).captured
    assert captured.spill == spill
    assert spill.read_bytes() == b"".join(b"%d\n" % number for number in range(1, 100_001))
    assert spill.stat().st_mode & 0o777 == 0o600


async def test_short_output_makes_no_file(processes: Processes, tmp_path: Path) -> None:
    spill = tmp_path / "output.txt"
    captured = (await processes.runner.run(Command(("/bin/echo", "hi"), HOME, spill=spill))).captured
    assert captured.spill is None
    assert not spill.exists()


async def test_a_full_disk_ends_the_file_and_not_the_command(processes: Processes, tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    spill = tmp_path / "output.txt"
    command = Command(("/usr/bin/seq", "100000"), HOME, keep_head=100, keep_tail=100, spill=spill)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
    try:
        finished = await processes.runner.run(command)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert finished.exit_code == 0
    assert finished.captured.spill is None
    assert finished.captured.dropped > 0
    assert not spill.exists()


def test_a_runaway_file_says_where_it_was_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tools.process.output.SPILL_LIMIT", 10)
    spill = Spill(tmp_path / "output.txt", threshold=4)
    for _ in range(5):
        spill.write(b"abcd")
    spill.close()
    text = (tmp_path / "output.txt").read_text("ascii")
    assert text == "abcdabcdab\n[Phoenix stopped writing here: 10 more bytes came]\n"
