"""Trust in the files of a folder (FAULTS 63-65)."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from phoenix_tui.config.project import find_project
from phoenix_tui.config.trust import Trust, TrustFile
from tests.support.git_repositories import empty_repository


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
