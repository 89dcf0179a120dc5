"""Diagnostic files that several real processes write and set aside at the same time."""

from __future__ import annotations

import fcntl
import json
import subprocess
import sys
from collections import defaultdict
from collections.abc import Generator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest

from engine import diagnostics
from engine.diagnostics import RESPONSES
from tests.engine.test_diagnostic_files import REPLY, all_of_it, asked, everything
from tests.support.storage import ROOT
from tests.support.waiting import poll_blocking
from tools.files import locked_file
from tools.files.locked_file import FileLocked, append_record

WRITERS, RECORDS, LIMIT = 4, 1_000, 8 * 1024
LONGEST = 2 * 1024
"""Bytes of the longest record of a writer, and more."""


@contextmanager
def writer(folder: Path, name: str, records: int = RECORDS) -> Generator[subprocess.Popen[bytes]]:
    """A process that is ready to write; `begin` lets it."""
    command = [sys.executable, "-m", "tests.support.diagnostics_writer", str(folder), name, str(records), str(LIMIT)]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as started:
        try:
            assert started.stdout is not None
            assert started.stdout.readline() == b"READY\n"
            yield started
        finally:
            started.kill()


def begin(started: subprocess.Popen[bytes]) -> None:
    assert started.stdin is not None
    started.stdin.write(b"go\n")
    started.stdin.flush()


def numbers(folder: Path) -> dict[str, list[int]]:
    """Numbers of the records that are kept, oldest first, of each writer; every line must be whole."""
    found: dict[str, list[int]] = defaultdict(list)
    for name in (f"{RESPONSES}.1", RESPONSES):
        path = folder / name
        for line in path.read_text().splitlines() if path.exists() else ():
            record = json.loads(line)
            found[record["model"]].append(record["duration_ms"])
    return found


def test_processes_that_write_past_the_limit_lose_nothing_but_the_oldest_records(tmp_path: Path) -> None:
    with ExitStack() as stack:
        writers = [stack.enter_context(writer(tmp_path, f"writer-{number}")) for number in range(WRITERS)]
        for one in writers:
            begin(one)
        assert [one.wait(60) for one in writers] == [0] * WRITERS
    kept = numbers(tmp_path)
    for found in kept.values():
        assert found == list(range(RECORDS - len(found), RECORDS))
    sizes = {path.name: path.stat().st_size for path in tmp_path.iterdir()}
    assert set(sizes) == {RESPONSES, f"{RESPONSES}.1", "last_messages.jsonl"}
    assert LIMIT < sizes[f"{RESPONSES}.1"] < LIMIT + LONGEST
    assert sizes[RESPONSES] < LIMIT + LONGEST
    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o600}
    [last] = (tmp_path / "last_messages.jsonl").read_text().splitlines()
    assert json.loads(last)["role"] == "user"


def test_a_writer_that_waits_while_a_file_is_set_aside_does_not_set_the_new_one_aside(tmp_path: Path) -> None:
    path = tmp_path / RESPONSES
    path.write_bytes(b"{}\n" * LIMIT)
    with writer(tmp_path, "late", 1) as late:
        with path.open() as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            begin(late)
            assert poll_blocking(lambda: is_open(late.pid, path))
            path.rename(tmp_path / f"{RESPONSES}.1")
            path.write_text('{"model": "first", "duration_ms": 0}\n')
        assert late.wait(60) == 0
    assert (tmp_path / f"{RESPONSES}.1").stat().st_size == 3 * LIMIT
    assert [json.loads(line)["model"] for line in path.read_text().splitlines()] == ["first", "late"]


def is_open(pid: int, path: Path) -> bool:
    """True while a process has this file open."""
    with suppress(FileNotFoundError):
        return any(one.samefile(path) for one in Path(f"/proc/{pid}/fd").iterdir())
    return False


def test_a_writer_that_is_killed_leaves_whole_lines_and_no_lock(tmp_path: Path) -> None:
    with writer(tmp_path, "killed", 100_000) as killed:
        begin(killed)
        assert poll_blocking((tmp_path / f"{RESPONSES}.1").exists)
        killed.kill()
    with (tmp_path / RESPONSES).open("a") as file:
        file.write('{"model": "half of a rec')
    all_of_it(tmp_path).replied(asked("x"), REPLY, 7)
    kept = numbers(tmp_path)
    assert kept["m"] == [7]
    assert kept["killed"] == list(range(kept["killed"][0], kept["killed"][-1] + 1))


def test_half_a_line_goes_however_long_it_is_and_whole_ones_stay(tmp_path: Path) -> None:
    path = tmp_path / "records"
    for before, after in (
        (b"one\n" + b"x" * 200_000, b"one\nnew\n"),
        (b"x" * 200_000, b"new\n"),
        (b"one\ntwo\n", b"one\ntwo\nnew\n"),
        (b"", b"new\n"),
    ):
        path.write_bytes(before)
        append_record(path, b"new\n", 1_000_000)
        assert path.read_bytes() == after


def test_a_file_that_another_process_keeps_locked_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locked_file, "LOCK_SECONDS", 0.05)
    kept = all_of_it(tmp_path)
    kept.replied(asked("first"), REPLY, 1)
    before = everything(tmp_path)
    with (tmp_path / RESPONSES).open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(FileLocked):
            append_record(tmp_path / RESPONSES, b"{}\n", 1)
        assert everything(tmp_path) == before
        kept.replied(asked("left out"), REPLY, 1)
    kept.replied(asked("second"), REPLY, 2)
    assert len((tmp_path / RESPONSES).read_text().splitlines()) == 2


def test_a_file_that_cannot_be_set_aside_does_not_grow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diagnostics, "ROTATE_BYTES", 100)
    (tmp_path / f"{RESPONSES}.1").mkdir()
    kept = all_of_it(tmp_path)
    for number in range(5):
        kept.replied(asked("x"), REPLY, number)
    assert len((tmp_path / RESPONSES).read_text().splitlines()) == 1
