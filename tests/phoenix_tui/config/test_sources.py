"""Files that extend Phoenix: found, digested, trusted."""

from __future__ import annotations

import json
import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from phoenix_tui.config.sources import finding
from phoenix_tui.config.sources.extension_files import Digests, SourceGroup, SourceKind, digest_of
from phoenix_tui.config.sources.finding import find_sources, find_users_sources
from phoenix_tui.config.sources.project_sources import ProjectSources, read_source
from phoenix_tui.config.trust import Trust, TrustFile, find_project
from tests.support.git_repositories import empty_repository
from tests.support.waiting import PATIENCE

HOOKS = {"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": "python3 scripts/lint.py --all"}]}]}}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A repository with files of every kind."""
    root = tmp_path / "repository"
    empty_repository(root)
    write(root / ".claude/settings.json", json.dumps(HOOKS))
    write(root / "scripts/lint.py", "print('fine')")
    write(root / ".mcp.json", json.dumps({"mcpServers": {"files": {"command": "./serve.sh", "args": ["data.txt"]}}}))
    write(root / "serve.sh", "exec cat")
    write(root / "data.txt", "1")
    write(root / ".agents/skills/pdf/SKILL.md", "---\nname: pdf\n---\nRead it.")
    write(root / ".agents/skills/pdf/scripts/read.py", "pass")
    write(root / ".claude/skills/web/SKILL.md", "Browse.")
    write(root / ".claude/commands/git/commit.md", "Commit.")
    write(root / ".claude/rules/style.md", "Use tabs.")
    write(root / "CLAUDE.local.md", "Mine.")
    return root


@pytest.fixture
def sources(tmp_path: Path) -> ProjectSources:
    home = tmp_path / "home"
    return ProjectSources(home / ".config", home, TrustFile(home / "trust.json"))


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def names(root: Path, sources: ProjectSources) -> set[str]:
    """Usable files, relative to the repository."""
    return {str(file.path.relative_to(root)) for file in sources.look(root).files if not file.is_users}


def test_every_kind_is_found_with_the_programs_that_hooks_and_servers_name(root: Path, sources: ProjectSources) -> None:
    found = {(str(file.path.relative_to(root)), file.kind.value) for file in sources.project(root).files}
    assert found == {
        (".claude/settings.json", "hooks"),
        ("scripts/lint.py", "program"),
        (".mcp.json", "servers"),
        ("serve.sh", "program"),
        ("data.txt", "program"),
        (".agents/skills/pdf/SKILL.md", "skill"),
        (".agents/skills/pdf/scripts/read.py", "skill"),
        (".claude/skills/web/SKILL.md", "skill"),
        (".claude/commands/git/commit.md", "command"),
        (".claude/rules/style.md", "instructions"),
        ("CLAUDE.local.md", "instructions"),
    }


def test_nothing_of_a_project_is_used_before_the_answer_and_all_of_it_after(
    root: Path, sources: ProjectSources
) -> None:
    assert names(root, sources) == set()
    assert len(sources.look(root).waiting) == 11
    sources.answer(root, trusted=True)
    assert len(names(root, sources)) == 11
    assert sources.look(root).waiting == ()


def test_a_refusal_is_remembered_until_a_file_changes(root: Path, sources: ProjectSources) -> None:
    sources.answer(root, trusted=False)
    assert sources.look(root).refused
    write(root / ".claude/commands/git/commit.md", "Push.")
    assert not sources.look(root).refused
    assert names(root, sources) == set()


def test_a_changed_program_switches_off_all_that_runs_programs_and_nothing_else(
    root: Path, sources: ProjectSources
) -> None:
    sources.answer(root, trusted=True)
    write(root / "scripts/lint.py", "import os; os.system('curl evil')")
    used = names(root, sources)
    assert ".claude/settings.json" not in used
    assert ".mcp.json" not in used
    assert ".claude/rules/style.md" in used
    assert [change.group for change in sources.look(root).changes] == [SourceGroup.RUNS]
    assert "+import os; os.system('curl evil')" in sources.changes(root)
    assert "-print('fine')" in sources.changes(root)


def test_a_changed_skill_is_off_alone_with_all_its_files(root: Path, sources: ProjectSources) -> None:
    sources.answer(root, trusted=True)
    write(root / ".agents/skills/pdf/scripts/read.py", "import socket")
    used = names(root, sources)
    assert not [name for name in used if "pdf" in name]
    assert ".claude/skills/web/SKILL.md" in used


def test_a_new_command_waits_while_the_others_go_on(root: Path, sources: ProjectSources) -> None:
    sources.answer(root, trusted=True)
    write(root / ".claude/commands/new.md", "x")
    assert ".claude/commands/new.md" not in names(root, sources)
    assert ".claude/commands/git/commit.md" in names(root, sources)


def test_a_settings_file_that_is_gone_switches_hooks_off(root: Path, sources: ProjectSources) -> None:
    write(root / ".claude/settings.local.json", '{"disableAllHooks": true}')
    sources.answer(root, trusted=True)
    (root / ".claude/settings.local.json").unlink()
    assert ".claude/settings.json" not in names(root, sources)


def test_an_answer_about_another_folder_of_the_same_path_is_void(root: Path, sources: ProjectSources) -> None:
    sources.answer(root, trusted=True)
    root.rename(root.with_name("before"))
    empty_repository(root)
    write(root / ".mcp.json", (root.with_name("before") / ".mcp.json").read_text())
    assert names(root, sources) == set()


def test_both_answers_of_a_folder_are_kept_side_by_side(root: Path, sources: ProjectSources) -> None:
    write(root / "AGENTS.md", "Use tabs.")
    sources.trust.answer(find_project(root), trusted=True)
    sources.answer(root, trusted=True)
    sources.trust.answer(find_project(root), trusted=True)
    assert sources.trust.status(find_project(root)).trust is Trust.GIVEN
    assert ".mcp.json" in names(root, sources)


def test_an_answer_about_extensions_alone_gives_no_trust_in_instructions(root: Path, sources: ProjectSources) -> None:
    sources.answer(root, trusted=True)
    write(root / "AGENTS.md", "Use tabs.")
    assert sources.trust.status(find_project(root)).trust is Trust.UNKNOWN
    assert not sources.trust.may_be_trusted(root)


def test_a_link_out_of_the_project_is_left_out_and_one_inside_is_followed(root: Path, tmp_path: Path) -> None:
    secret = write(tmp_path / "elsewhere/SKILL.md", "x")
    (root / ".agents/skills/out").symlink_to(secret.parent)
    (root / ".claude/skills/in").symlink_to(root / ".agents/skills/pdf")
    (root / ".claude/commands/key.md").symlink_to(write(tmp_path / "id_rsa", "KEY"))
    (root / ".claude/commands/loop").symlink_to(root / ".claude")
    found = find_sources(root, Digests())
    assert not [file for file in found.files if "out" in file.path.parts or file.path.name == "key.md"]
    assert root / ".claude/skills/in/SKILL.md" in [file.path for file in found.files]
    assert root / ".claude/commands/key.md" in [one.path for one in found.left_out]


@pytest.mark.parametrize("make", [os.mkfifo, Path.mkdir])
def test_a_pipe_or_folder_in_place_of_a_file_neither_blocks_nor_counts(root: Path, make: object) -> None:
    (root / ".mcp.json").unlink()
    assert callable(make)
    make(root / ".mcp.json")
    assert find_sources(root, Digests()).of(SourceKind.SERVERS) == ()


def test_more_files_than_the_limit_are_left_out_and_named_once(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(finding, "MOST_FILES", 20)
    for number in range(40):
        write(root / f".claude/commands/{number:02}.md", "x")
    found = find_sources(root, Digests())
    assert len(found.files) == 20
    assert [one.reason for one in found.left_out] == [finding._TOO_MUCH]


def test_a_file_beyond_the_bytes_of_a_project_is_left_out(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(finding, "MOST_BYTES", 1000)
    write(root / ".agents/skills/pdf/big.bin", "x" * 2000)
    found = find_sources(root, Digests())
    assert root / ".agents/skills/pdf/big.bin" in [one.path for one in found.left_out]
    assert root / ".claude/skills/web/SKILL.md" in [file.path for file in found.files]


def test_a_digest_is_of_the_whole_file_and_renewed_when_the_time_is_set_back(tmp_path: Path) -> None:
    digests, path = Digests(), write(tmp_path / "long", "x" * 2_000_000 + "a")
    before = path.stat()
    first = digests.digest(path, 1 << 30)
    assert first == (digest_of(path.read_bytes()), 2_000_001)
    path.write_text("x" * 2_000_000 + "b")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert digests.digest(path, 1 << 30) == (digest_of(path.read_bytes()), 2_000_001)


def test_a_file_that_changed_after_the_look_is_not_read(root: Path, sources: ProjectSources) -> None:
    sources.answer(root, trusted=True)
    (file,) = [file for file in sources.current(root).files if file.path.name == "commit.md"]
    assert read_source(file, 1000) == b"Commit."
    assert read_source(file, 3) is None
    write(file.path, "Push.")
    assert read_source(file, 1000) is None


def test_the_users_own_files_need_no_answer_and_links_there_are_followed(tmp_path: Path) -> None:
    home = tmp_path / "home"
    write(home / "store/pdf/SKILL.md", "x")
    (home / ".claude/skills").mkdir(parents=True)
    (home / ".claude/skills/pdf").symlink_to(home / "store/pdf")
    write(home / ".claude/settings.json", "{}")
    write(home / ".config/commands/fix.md", "x")
    found = find_users_sources(home / ".config", home, Digests())
    assert {(str(file.path.relative_to(home)), file.is_users) for file in found.files} == {
        (".claude/skills/pdf/SKILL.md", True),
        (".config/commands/fix.md", True),
    }
    assert len(find_users_sources(home / ".config", home, Digests(), claude_hooks=True).of(SourceKind.HOOKS)) == 1


def test_sources_below_phoenix_are_no_longer_read_before_the_first_frame(root: Path) -> None:
    write(root / ".phoenix/skills/pdf/SKILL.md", "x")
    write(root / ".phoenix/hooks.json", "{}")
    write(root / ".phoenix/config.toml", "")
    assert [file.path.name for file in find_project(root).files] == ["config.toml"]
    kinds = {file.kind for file in find_sources(root, Digests()).files if ".phoenix" in file.path.parts}
    assert kinds == {SourceKind.SKILL, SourceKind.HOOKS}


_json = st.recursive(
    st.none() | st.booleans() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["command", "args", "hooks", "x", "headersHelper"]), inner, max_size=4)
    ),
    max_leaves=30,
)


@given(document=_json)
def test_any_json_in_place_of_hooks_is_looked_through_without_a_fault(
    document: object, tmp_path_factory: pytest.TempPathFactory
) -> None:
    root = tmp_path_factory.mktemp("any")
    write(root / ".mcp.json", json.dumps(document))
    sources = ProjectSources(root, root, TrustFile(root / "trust.json"))
    assert [file.kind for file in sources.project(root).files][:1] == [SourceKind.SERVERS]


def settles(sources: ProjectSources, root: Path) -> bool:
    """Look until the files are older than the time in which a change could go unseen, and the machine has time."""
    ends = time.monotonic() + PATIENCE
    while time.monotonic() < ends:
        if sources.is_quick(root):
            return True
        sources.look(root)
    return False


def test_a_look_is_quick_only_while_neither_a_file_nor_the_answer_has_changed(
    root: Path, sources: ProjectSources
) -> None:
    assert not sources.is_quick(root)
    assert settles(sources, root)
    elsewhere = ProjectSources(sources.config, sources.home, sources.trust)
    elsewhere.answer(root, trusted=True)
    assert not sources.is_quick(root)
    assert settles(sources, root)
    write(root / "scripts/lint.py", "print('other')")
    assert not sources.is_quick(root)


def test_a_look_is_not_quick_while_another_one_is_under_way(root: Path, sources: ProjectSources) -> None:
    assert settles(sources, root)
    with sources._lock, ThreadPoolExecutor(1) as pool:
        assert not pool.submit(sources.is_quick, root).result()
    assert settles(sources, root)
