"""The log file of several processes: nothing is lost or mixed where they rotate it at the same time."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from phoenix_tui.cli.logs import PrivateFile
from tests.support.cli import ROOT

WRITER = """
import logging, sys
from pathlib import Path
from phoenix_tui.cli import logs
logs.FILE_LIMIT = 60_000  # four files hold all of it, however the long records fall
logs.start_log(Path(sys.argv[1]), (), debug=False)
print("ready", flush=True)
sys.stdin.read(1)
for number in range(150):
    logging.getLogger("engine").warning("%s %d %s", sys.argv[2], number, "x" * (12_000 if number % 50 == 7 else 150))
"""


def test_two_processes_that_rotate_at_once_lose_and_mix_nothing(tmp_path: Path) -> None:
    log = tmp_path / "logs" / "phoenix.jsonl"
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, str(log), name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=ROOT,
        )
        for name in ("one", "two")
    ]
    assert start_together(writers) == [b"", b""]
    files = sorted(log.parent.iterdir(), reverse=True)
    assert {file.name for file in files} <= {"phoenix.jsonl", *(f"phoenix.jsonl.{number}" for number in (1, 2, 3))}
    assert len(files) > 2
    said = [json.loads(line)["message"].split()[:2] for file in files for line in file.read_text().splitlines()]
    assert Counter(map(tuple, said)) == Counter((name, str(number)) for name in ("one", "two") for number in range(150))
    assert {file.stat().st_mode & 0o777 for file in files} == {0o600}


def start_together(writers: list[subprocess.Popen[bytes]]) -> list[bytes]:
    """Let them write at the same time; what they say on stderr."""
    for writer in writers:
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"ready\n"
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write(b"g")
        writer.stdin.flush()
    return [writer.communicate()[1] for writer in writers]


@pytest.fixture
def pair(tmp_path: Path) -> tuple[PrivateFile, PrivateFile, Path]:
    path = tmp_path / "phoenix.jsonl"
    made = (PrivateFile(path, maxBytes=100, backupCount=3), PrivateFile(path, maxBytes=100, backupCount=3))
    return *made, path


def record(text: str) -> logging.LogRecord:
    return logging.LogRecord("x", logging.WARNING, "", 0, text, None, None)


def test_a_file_that_another_rotated_is_not_rotated_again(pair: tuple[PrivateFile, PrivateFile, Path]) -> None:
    first, second, path = pair
    first.emit(record("a" * 80))
    first.emit(record("b" * 80))
    second.emit(record("c"))
    assert path.read_text() == "b" * 80 + "\nc\n"
    assert path.with_name("phoenix.jsonl.1").read_text() == "a" * 80 + "\n"
    assert not path.with_name("phoenix.jsonl.2").exists()
    first.close()
    second.close()


def test_a_log_whose_folder_is_gone_is_made_again(pair: tuple[PrivateFile, PrivateFile, Path]) -> None:
    first, second, path = pair
    first.emit(record("a"))
    path.unlink()
    first.emit(record("b"))
    assert path.read_text() == "b\n"
    second.emit(record("c"))
    assert path.read_text() == "b\nc\n"
    first.close()
    second.close()


def test_what_cannot_be_written_says_nothing_on_the_terminal(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    handler = PrivateFile(tmp_path / "phoenix.jsonl", maxBytes=100, backupCount=3)
    handler.emit(record("a"))
    (tmp_path / "phoenix.jsonl").unlink()
    Path(tmp_path / "phoenix.jsonl").symlink_to(tmp_path / "elsewhere")
    handler.emit(record("b"))
    assert not (tmp_path / "elsewhere").exists()
    assert capfd.readouterr().err == ""
    handler.close()
