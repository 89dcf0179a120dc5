"""The log file."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from phoenix_tui.cli import logs
from phoenix_tui.cli.logs import PrivateFile


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "logs" / "phoenix.jsonl"
    root = logging.getLogger()
    level = root.level
    handler = logs.start_log(path, ("planted-secret",), debug=True)
    assert handler is not None
    yield path
    root.removeHandler(handler)
    root.setLevel(level)
    handler.close()


def test_a_record_is_one_json_line_in_a_private_file(log: Path) -> None:
    logging.getLogger("engine").debug("two\nlines \x1b[31m")
    [line] = log.read_text().splitlines()
    record = json.loads(line)
    assert (record["level"], record["logger"], record["message"]) == ("debug", "engine", "two\nlines \x1b[31m")
    assert "\x1b" not in line
    assert log.stat().st_mode & 0o777 == 0o600
    assert log.parent.stat().st_mode & 0o777 == 0o700


def test_keys_are_blotted_out_in_messages_and_tracebacks(log: Path) -> None:
    try:
        int("planted-secret and sk-proj-abcdefgh12345")
    except ValueError:
        logging.getLogger("engine").exception("with Authorization: Bearer abc.def")
    text = log.read_text()
    assert "Traceback" in text
    assert not [word for word in ("planted-secret", "abcdefgh12345", "abc.def") if word in text]


def test_the_log_is_bounded(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    handler = next(each for each in logging.getLogger().handlers if isinstance(each, PrivateFile))
    monkeypatch.setattr(handler, "maxBytes", 2000)
    for number in range(200):
        logging.getLogger("engine").warning("record %d", number)
    files = sorted(log.parent.iterdir())
    assert [file.name for file in files] == ["phoenix.jsonl", *(f"phoenix.jsonl.{number}" for number in (1, 2, 3))]
    assert {file.stat().st_mode & 0o777 for file in files} == {0o600}
    assert max(file.stat().st_size for file in files) <= 2000


def test_a_log_that_cannot_be_written_stops_nobody(tmp_path: Path) -> None:
    (tmp_path / "logs").write_text("a file in the way")
    before = list(logging.getLogger().handlers)
    assert logs.start_log(tmp_path / "logs" / "phoenix.jsonl", (), debug=False) is None
    for handler in set(logging.getLogger().handlers) - set(before):
        logging.getLogger().removeHandler(handler)


def test_detections_are_written_without_a_detailed_log(tmp_path: Path) -> None:
    root = logging.getLogger()
    level, path = root.level, tmp_path / "phoenix.jsonl"
    handler = logs.start_log(path, (), debug=False)
    assert handler is not None
    try:
        logging.getLogger("security").info("security.injection_detected: x")
        logging.getLogger("engine").info("not written")
    finally:
        root.removeHandler(handler)
        root.setLevel(level)
        handler.close()
    assert [json.loads(line)["message"] for line in path.read_text().splitlines()] == ["security.injection_detected: x"]
