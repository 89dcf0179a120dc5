"""Repeated looks at the files that extend Phoenix: nothing is read again while nothing changed, nothing is missed."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from phoenix_tui.config.sources import extension_files, finding, project_sources
from phoenix_tui.config.sources.extension_files import Digests
from phoenix_tui.config.sources.finding import find_sources
from phoenix_tui.config.sources.project_sources import ProjectSources
from phoenix_tui.config.trust import TrustFile
from tests.support.git_repositories import empty_repository

HOOK = {"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "python3 scripts/lint.py"}]}]}}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A repository with a hook whose script is missing, a skill and a command."""
    root = tmp_path / "repository"
    empty_repository(root)
    write(root / ".claude/settings.json", json.dumps(HOOK))
    write(root / ".claude/skills/web/SKILL.md", "Browse.")
    write(root / ".claude/skills/empty/notes.md", "x")
    write(root / ".claude/commands/commit.md", "Commit.")
    write(root / "docs/guide.md", "Guide.")
    return root


@pytest.fixture
def sources(tmp_path: Path) -> ProjectSources:
    home = tmp_path / "home"
    return ProjectSources(home / ".config", home, TrustFile(home / "trust.json"))


@pytest.fixture
def _settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every file counts as one that did not change just before the look."""
    monkeypatch.setattr(extension_files, "SETTLED", -(10**12))


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def link(path: Path, target: Path) -> Path:
    path.symlink_to(target)
    return path


def waiting(root: Path, sources: ProjectSources) -> dict[str, str]:
    return {str(file.path.relative_to(root)): file.digest for file in sources.look(root).waiting}


@pytest.mark.usefixtures("_settled")
def test_a_second_look_at_the_same_files_gives_the_very_same_result(root: Path, sources: ProjectSources) -> None:
    assert sources.look(root) is sources.look(root)
    assert sources.current(root) is sources.look(root)


def test_a_look_right_after_a_change_is_not_relied_on(root: Path, sources: ProjectSources) -> None:
    write(root / ".claude/commands/commit.md", "Commit!")
    assert sources.look(root) is not sources.look(root)


CHANGES: dict[str, Callable[[Path], object]] = {
    "a text": lambda root: write(root / ".claude/commands/commit.md", "Push..."),
    "a new file": lambda root: write(root / ".claude/commands/new.md", "x"),
    "a new folder of files": lambda root: write(root / ".claude/commands/git/new.md", "x"),
    "a new place": lambda root: write(root / ".agents/skills/pdf/SKILL.md", "x"),
    "a file that is gone": lambda root: (root / ".claude/commands/commit.md").unlink(),
    "a folder that becomes a skill": lambda root: write(root / ".claude/skills/empty/SKILL.md", "x"),
    "a script that a hook names": lambda root: write(root / "scripts/lint.py", "pass"),
    "a file in place of a folder": lambda root: (
        (root / ".claude/skills/web").rename(root / "before"),
        write(root / ".claude/skills/web", "x"),
    ),
    "a link in place of a file": lambda root: (
        (root / ".claude/commands/commit.md").rename(root / "before"),
        link(root / ".claude/commands/commit.md", root / "docs/guide.md"),
    ),
    "a folder that is replaced": lambda root: (
        (root / ".claude/commands").rename(root / "before"),
        write(root / ".claude/commands/commit.md", "Commit"),
    ),
}


@pytest.mark.usefixtures("_settled")
@pytest.mark.parametrize("change", CHANGES)
def test_a_later_look_sees(change: str, root: Path, sources: ProjectSources) -> None:
    before = waiting(root, sources)
    CHANGES[change](root)
    fresh = ProjectSources(sources.config, sources.home, sources.trust)
    assert waiting(root, sources) == waiting(root, fresh)
    assert waiting(root, sources) != before


@pytest.mark.usefixtures("_settled")
def test_a_link_whose_target_changes_is_seen(root: Path, sources: ProjectSources) -> None:
    (root / ".claude/commands/guide.md").symlink_to(root / "docs/guide.md")
    before = waiting(root, sources)
    write(root / "docs/guide.md", "Guide!")
    assert waiting(root, sources)[".claude/commands/guide.md"] != before[".claude/commands/guide.md"]


@pytest.mark.usefixtures("_settled")
def test_a_broken_link_that_is_repaired_is_seen(root: Path, sources: ProjectSources) -> None:
    (root / ".claude/commands/later.md").symlink_to(root / "docs/later.md")
    assert ".claude/commands/later.md" not in waiting(root, sources)
    write(root / "docs/later.md", "x")
    assert ".claude/commands/later.md" in waiting(root, sources)


@pytest.mark.usefixtures("_settled")
def test_an_answer_of_another_process_is_seen(root: Path, sources: ProjectSources) -> None:
    assert sources.look(root).files == ()
    ProjectSources(sources.config, sources.home, sources.trust).answer(root, trusted=True)
    assert len(sources.look(root).files) == 3


def test_an_answer_is_about_the_files_that_were_shown(root: Path, sources: ProjectSources) -> None:
    shown = sources.look(root).waiting
    write(root / ".claude/commands/commit.md", "rm -rf /")
    sources.answer(root, trusted=True, shown=shown)
    assert [file.path.name for file in sources.look(root).waiting] == ["commit.md"]
    assert sources.look(root).changes[0].path == root / ".claude/commands/commit.md"


def test_the_same_files_in_a_folder_that_was_replaced_are_asked_about(root: Path, sources: ProjectSources) -> None:
    sources.answer(root, trusted=True)
    before = root.rename(root.with_name("before"))
    empty_repository(root)
    for name in (".claude/settings.json", ".claude/skills/web/SKILL.md", ".claude/commands/commit.md"):
        write(root / name, (before / name).read_text())
    assert len(sources.look(root).waiting) == 3


def test_an_answer_that_is_not_kept_holds_in_this_program_alone(root: Path, sources: ProjectSources) -> None:
    passing = ProjectSources(sources.config, sources.home, sources.trust, keeps_answers=False)
    passing.answer(root, trusted=True)
    assert len(passing.look(root).files) == 3
    assert not sources.trust.path.exists()
    assert sources.look(root).files == ()


@pytest.mark.parametrize(("settled", "reads"), [(10**12, 4), (-(10**12), 2)])
def test_a_file_that_just_changed_is_read_again(
    settled: int, reads: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, count, read = write(tmp_path / "file", "x"), itertools.count(), os.read

    def counted(descriptor: int, size: int) -> bytes:
        next(count)
        return read(descriptor, size)

    monkeypatch.setattr(extension_files, "SETTLED", settled)
    monkeypatch.setattr(os, "read", counted)
    found = Digests()
    assert found.digest(path, 10) == found.digest(path, 10)
    assert next(count) == reads


def test_folders_without_end_are_looked_at_up_to_a_limit(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(finding, "MOST_ENTRIES", 50)
    for folder in range(10):
        for number in range(20):
            write(root / f".claude/commands/{folder}/{number}.txt", "x")
    found = find_sources(root, Digests())
    assert any("only 2,000 folders" in one.reason for one in found.left_out)


def test_a_word_of_a_command_that_no_file_can_be_named_is_passed_over(root: Path, sources: ProjectSources) -> None:
    write(root / ".mcp.json", '{"mcpServers": {"a": {"command": "\\ud800", "args": ["\\u0000", "scripts/lint.py"]}}}')
    write(root / "scripts/lint.py", "pass")
    assert "scripts/lint.py" in waiting(root, sources)


@pytest.fixture
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A look may take any time on the loop."""
    monkeypatch.setattr(project_sources, "QUICK", 60.0)


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """One entry for each comparison of a extension_files."""
    made, holds = list[object](), extension_files.Fingerprint.holds

    def counted(self: extension_files.Fingerprint) -> bool:
        made.append(self)
        return holds(self)

    monkeypatch.setattr(extension_files.Fingerprint, "holds", counted)
    return made


@pytest.mark.usefixtures("_settled", "_patient")
async def test_all_who_ask_in_one_turn_of_the_loop_share_one_look(
    root: Path, sources: ProjectSources, looks: list[object]
) -> None:
    first = sources.look(root)
    looks.clear()
    for _ in range(3):
        assert sources.is_quick(root)
        assert sources.look(root) is sources.current(root) is first
    assert len(looks) == 1
    await asyncio.sleep(0)
    assert sources.is_quick(root)
    assert len(looks) == 2


@pytest.mark.usefixtures("_settled", "_patient")
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
async def test_the_next_turn_sees_every_change(
    root: Path, sources: ProjectSources, change: Callable[[Path], object]
) -> None:
    sources.look(root)
    assert sources.is_quick(root)
    change(root)
    await asyncio.sleep(0)
    assert not sources.is_quick(root)


@pytest.mark.usefixtures("_settled", "_patient")
async def test_a_thread_looks_for_itself_and_an_answer_ends_the_shared_look(
    root: Path, sources: ProjectSources, looks: list[object]
) -> None:
    sources.look(root)
    assert sources.is_quick(root)
    looks.clear()
    seen = list[bool]()
    thread = threading.Thread(target=lambda: seen.append(sources.look(root) is sources.current(root)))
    thread.start()
    thread.join()
    assert (seen, len(looks)) == ([True], 1)
    assert sources.is_quick(root)
    trusted = sources.answer(root, trusted=True)
    assert sources.look(root) is trusted
    assert trusted.trusted


@pytest.mark.usefixtures("_settled", "_patient")
async def test_what_became_ready_during_a_look_looks_anew(
    root: Path, sources: ProjectSources, monkeypatch: pytest.MonkeyPatch
) -> None:
    sources.look(root)
    loop, quick, holds = asyncio.get_running_loop(), list[bool](), extension_files.Fingerprint.holds
    changes = [write]

    def overtaken(self: extension_files.Fingerprint) -> bool:
        found = holds(self)
        if changes:
            changes.pop()(root / ".claude/commands/commit.md", "Other")
            loop.call_soon(lambda: quick.append(sources.is_quick(root)))
        return found

    monkeypatch.setattr(extension_files.Fingerprint, "holds", overtaken)
    assert sources.is_quick(root)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert quick == [False]
