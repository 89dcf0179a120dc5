"""Answers of several processes at once: none is lost, and one that hangs delays the others for a bounded time."""

from __future__ import annotations

import fcntl
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from phoenix_tui.config import shared_files
from phoenix_tui.config.project import find_project
from phoenix_tui.config.shared_files import locked
from phoenix_tui.config.trust import SourcesAnswer, Trust, TrustFile
from tests.support.waiting import PATIENCE

ANSWERS = 8
PROCESSES = 4
ANSWER = """
import sys
from pathlib import Path
from phoenix_tui.config.project import find_project
from phoenix_tui.config.trust import SourcesAnswer, TrustFile
trust, folders, own = TrustFile(Path(sys.argv[1])), Path(sys.argv[2]), sys.argv[3]
print("ready", flush=True)
sys.stdin.readline()
for number in range(int(sys.argv[4])):
    folder = folders / f"{own}-{number}"
    trust.answer(find_project(folder), trusted=True)
    trust.answer_sources(folder, SourcesAnswer(True, {"a": own}, {}))
"""


def run_together(commands: list[list[str]]) -> None:
    """Start programs, let all of them go on at one moment, and wait until each has ended well."""
    running = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for command in commands
    ]
    for one in running:
        assert one.stdout is not None
        assert one.stdout.readline() == "ready\n"
    for one in running:
        assert one.stdin is not None
        one.stdin.write("go\n")
        one.stdin.flush()
    for one in running:
        one.communicate(timeout=PATIENCE)
    assert [one.returncode for one in running] == [0] * len(running)


def test_no_answer_of_several_processes_is_lost(tmp_path: Path) -> None:
    trust = TrustFile(tmp_path / "home" / "trust.json")
    folders = [tmp_path / f"{own}-{number}" for own in range(PROCESSES) for number in range(ANSWERS)]
    for folder in folders:
        folder.mkdir()
        (folder / "AGENTS.md").write_text("Use tabs.")
    run_together([
        [sys.executable, "-c", ANSWER, str(trust.path), str(tmp_path), str(own), str(ANSWERS)]
        for own in range(PROCESSES)
    ])
    assert [folder.name for folder in folders if trust.status(find_project(folder)).trust is not Trust.GIVEN] == []
    assert [folder.name for folder in folders if trust.sources_answer(folder) is None] == []
    assert stat.S_IMODE(trust.path.stat().st_mode) == 0o600


def test_a_lock_that_is_never_given_up_is_an_error_and_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_files, "PATIENCE", 0.0)
    trust = TrustFile(tmp_path / "trust.json")
    with locked(trust.path), pytest.raises(OSError, match="another Phoenix keeps it locked"):
        trust.answer_sources(tmp_path, SourcesAnswer(trusted=True, digests={"a": "b"}, texts={}))
    assert not trust.path.exists()
    trust.answer_sources(tmp_path, SourcesAnswer(trusted=True, digests={"a": "b"}, texts={}))


def test_a_planted_link_in_place_of_the_lock_is_not_followed(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    (tmp_path / ".trust.json.lock").symlink_to(victim)
    with pytest.raises(OSError, match="link"), locked(tmp_path / "trust.json"):
        pass
    assert not victim.exists()


def test_the_lock_is_free_after_an_error(tmp_path: Path) -> None:
    with pytest.raises(KeyError), locked(tmp_path / "file"):
        raise KeyError
    descriptor = os.open(tmp_path / ".file.lock", os.O_RDWR)
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(descriptor)
