"""Trust in a folder's own files: answers that last, and answers of several processes at once."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from phoenix_tui.config import paths
from phoenix_tui.config.paths import lock_file
from phoenix_tui.config.trust import SourcesAnswer, Trust, TrustFile, find_project
from tests.support.git_repositories import empty_repository
from tests.support.waiting import PATIENCE


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    root = tmp_path / "repository"
    empty_repository(root)
    (root / "AGENTS.md").write_text("Use tabs.")
    return root


@pytest.fixture
def trust(tmp_path: Path) -> TrustFile:
    return TrustFile(tmp_path / "home" / "trust.json")


def test_a_folder_without_such_files_needs_no_trust(tmp_path: Path, trust: TrustFile) -> None:
    (tmp_path / "README.md").write_text("hello")
    assert trust.status(find_project(tmp_path)).trust is Trust.NOT_NEEDED


def test_trust_is_kept_for_exactly_these_files(repository: Path, trust: TrustFile) -> None:
    project = find_project(repository)
    assert trust.status(project).trust is Trust.UNKNOWN
    trust.answer(project, trusted=True)
    assert trust.status(find_project(repository)).trust is Trust.GIVEN
    (repository / "AGENTS.md").write_text("Run curl.")
    status = trust.status(find_project(repository))
    assert (status.trust, status.changed) == (Trust.CHANGED, (repository / "AGENTS.md",))
    assert trust.changes(find_project(repository)).splitlines()[2:] == ["@@ -1 +1 @@", "-Use tabs.", "+Run curl."]


def test_a_file_that_appears_later_is_asked_about(repository: Path, trust: TrustFile) -> None:
    trust.answer(find_project(repository), trusted=True)
    (repository / ".phoenix").mkdir()
    (repository / ".phoenix" / "config.toml").write_text("sandbox = 'off'")
    status = trust.status(find_project(repository))
    assert (status.trust, status.changed) == (Trust.CHANGED, (repository / ".phoenix" / "config.toml",))


def test_a_refusal_is_kept(repository: Path, trust: TrustFile) -> None:
    trust.answer(find_project(repository), trusted=False)
    assert trust.status(find_project(repository)).trust is Trust.REFUSED


def test_a_subfolder_does_not_inherit_trust(repository: Path, trust: TrustFile) -> None:
    trust.answer(find_project(repository), trusted=True)
    inner = repository / "inner"
    inner.mkdir()
    project = find_project(inner)
    assert [file.path for file in project.files] == [repository / "AGENTS.md"]
    assert trust.status(project).trust is Trust.UNKNOWN


def test_a_worktree_does_not_inherit_trust(repository: Path, trust: TrustFile, tmp_path: Path) -> None:
    trust.answer(find_project(repository), trusted=True)
    worktree = tmp_path / "worktree"
    worktree.mkdir()
    (worktree / ".git").write_text(f"gitdir: {repository}/.git")
    (worktree / "AGENTS.md").write_text("Use tabs.")
    project = find_project(worktree)
    assert [file.path for file in project.files] == [worktree / "AGENTS.md"]
    assert trust.status(project).trust is Trust.UNKNOWN


def test_another_folder_at_the_same_path_is_not_trusted(repository: Path, trust: TrustFile, tmp_path: Path) -> None:
    trust.answer(find_project(repository), trusted=True)
    shutil.copytree(repository, tmp_path / "copy")
    repository.rename(tmp_path / "away")
    (tmp_path / "copy").rename(repository)
    assert trust.status(find_project(repository)).trust is Trust.UNKNOWN


def test_a_link_and_its_target_are_one_folder(repository: Path, trust: TrustFile, tmp_path: Path) -> None:
    trust.answer(find_project(repository), trusted=True)
    link = tmp_path / "link"
    link.symlink_to(repository)
    assert trust.status(find_project(link)).trust is Trust.GIVEN


def test_instructions_go_from_the_repository_down_and_not_above_it(repository: Path) -> None:
    (repository.parent / "AGENTS.md").write_text("Not mine.")
    inner = repository / "inner"
    inner.mkdir()
    (inner / "AGENTS.md").write_text("Use spaces.")
    text = "".join(file.text for file in find_project(inner).instructions())
    assert text.index("Use tabs.") < text.index("Use spaces.")
    assert "Not mine." not in text


def test_a_folder_in_place_of_a_file_is_no_file(repository: Path) -> None:
    (repository / "AGENTS.md").unlink()
    (repository / "AGENTS.md").mkdir()
    assert find_project(repository).files == ()


def test_a_pipe_in_place_of_a_file_does_not_hold_us_up(repository: Path) -> None:
    (repository / "AGENTS.md").unlink()
    os.mkfifo(repository / "AGENTS.md")
    assert find_project(repository).files == ()


@pytest.mark.parametrize("content", ["", "[]", '{"folders": 3}', '{"folders": {"x": 1}}', "\x00"])
def test_a_broken_trust_file_trusts_nothing(repository: Path, trust: TrustFile, content: str) -> None:
    trust.path.parent.mkdir()
    trust.path.write_text(content)
    assert trust.status(find_project(repository)).trust is Trust.UNKNOWN


def test_the_file_says_what_was_trusted(repository: Path, trust: TrustFile) -> None:
    trust.answer(find_project(repository), trusted=True)
    folders = json.loads(trust.path.read_text())["folders"]
    assert list(folders[str(repository)]["files"]) == [str(repository / "AGENTS.md")]
    assert trust.path.stat().st_mode & 0o777 == 0o600


ANSWERS = 8
PROCESSES = 4
ANSWER = """
import sys
from pathlib import Path
from phoenix_tui.config.trust import find_project
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
    monkeypatch.setattr(paths, "PATIENCE", 0.0)
    trust = TrustFile(tmp_path / "trust.json")
    with lock_file(trust.path), pytest.raises(OSError, match="another Phoenix keeps it locked"):
        trust.answer_sources(tmp_path, SourcesAnswer(trusted=True, digests={"a": "b"}, texts={}))
    assert not trust.path.exists()
    trust.answer_sources(tmp_path, SourcesAnswer(trusted=True, digests={"a": "b"}, texts={}))


def test_a_planted_link_in_place_of_the_lock_is_not_followed(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    (tmp_path / ".trust.json.lock").symlink_to(victim)
    with pytest.raises(OSError, match="link"), lock_file(tmp_path / "trust.json"):
        pass
    assert not victim.exists()


def test_the_lock_is_free_after_an_error(tmp_path: Path) -> None:
    with pytest.raises(KeyError), lock_file(tmp_path / "file"):
        raise KeyError
    descriptor = os.open(tmp_path / ".file.lock", os.O_RDWR)
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(descriptor)
