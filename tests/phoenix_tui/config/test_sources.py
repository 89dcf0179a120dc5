"""Files that extend Phoenix: found, digested, trusted, looked at again."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.extensions.skills import read_asked_rules
from engine.ports.extensions import Invocable
from engine.run_options import Effort
from phoenix_tui.config.sources import extension_files, finding, project_sources
from phoenix_tui.config.sources.extension_files import Digests, SourceGroup, SourceKind, digest_of
from phoenix_tui.config.sources.finding import find_sources, find_users_sources
from phoenix_tui.config.sources.project_sources import ProjectSources, read_source
from phoenix_tui.config.trust import Trust, TrustFile, find_project
from tests.support.git_repositories import empty_repository
from tests.support.skills import catalogue, command, skill, sources_of
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


HOOK = {"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "python3 scripts/lint.py"}]}]}}


@pytest.fixture
def hooked_root(tmp_path: Path) -> Path:
    """A repository with a hook whose script is missing, a skill and a command."""
    hooked_root = tmp_path / "repository"
    empty_repository(hooked_root)
    write(hooked_root / ".claude/settings.json", json.dumps(HOOK))
    write(hooked_root / ".claude/skills/web/SKILL.md", "Browse.")
    write(hooked_root / ".claude/skills/empty/notes.md", "x")
    write(hooked_root / ".claude/commands/commit.md", "Commit.")
    write(hooked_root / "docs/guide.md", "Guide.")
    return hooked_root


@pytest.fixture
def _settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every file counts as one that did not change just before the look."""
    monkeypatch.setattr(extension_files, "SETTLED", -(10**12))


def link(path: Path, target: Path) -> Path:
    path.symlink_to(target)
    return path


def waiting(hooked_root: Path, sources: ProjectSources) -> dict[str, str]:
    return {str(file.path.relative_to(hooked_root)): file.digest for file in sources.look(hooked_root).waiting}


@pytest.mark.usefixtures("_settled")
def test_a_second_look_at_the_same_files_gives_the_very_same_result(hooked_root: Path, sources: ProjectSources) -> None:
    assert sources.look(hooked_root) is sources.look(hooked_root)
    assert sources.current(hooked_root) is sources.look(hooked_root)


def test_a_look_right_after_a_change_is_not_relied_on(hooked_root: Path, sources: ProjectSources) -> None:
    write(hooked_root / ".claude/commands/commit.md", "Commit!")
    assert sources.look(hooked_root) is not sources.look(hooked_root)


CHANGES: dict[str, Callable[[Path], object]] = {
    "a text": lambda hooked_root: write(hooked_root / ".claude/commands/commit.md", "Push..."),
    "a new file": lambda hooked_root: write(hooked_root / ".claude/commands/new.md", "x"),
    "a new folder of files": lambda hooked_root: write(hooked_root / ".claude/commands/git/new.md", "x"),
    "a new place": lambda hooked_root: write(hooked_root / ".agents/skills/pdf/SKILL.md", "x"),
    "a file that is gone": lambda hooked_root: (hooked_root / ".claude/commands/commit.md").unlink(),
    "a folder that becomes a skill": lambda hooked_root: write(hooked_root / ".claude/skills/empty/SKILL.md", "x"),
    "a script that a hook names": lambda hooked_root: write(hooked_root / "scripts/lint.py", "pass"),
    "a file in place of a folder": lambda hooked_root: (
        (hooked_root / ".claude/skills/web").rename(hooked_root / "before"),
        write(hooked_root / ".claude/skills/web", "x"),
    ),
    "a link in place of a file": lambda hooked_root: (
        (hooked_root / ".claude/commands/commit.md").rename(hooked_root / "before"),
        link(hooked_root / ".claude/commands/commit.md", hooked_root / "docs/guide.md"),
    ),
    "a folder that is replaced": lambda hooked_root: (
        (hooked_root / ".claude/commands").rename(hooked_root / "before"),
        write(hooked_root / ".claude/commands/commit.md", "Commit"),
    ),
}


@pytest.mark.usefixtures("_settled")
@pytest.mark.parametrize("change", CHANGES)
def test_a_later_look_sees(change: str, hooked_root: Path, sources: ProjectSources) -> None:
    before = waiting(hooked_root, sources)
    CHANGES[change](hooked_root)
    fresh = ProjectSources(sources.config, sources.home, sources.trust)
    assert waiting(hooked_root, sources) == waiting(hooked_root, fresh)
    assert waiting(hooked_root, sources) != before


@pytest.mark.usefixtures("_settled")
def test_a_link_whose_target_changes_is_seen(hooked_root: Path, sources: ProjectSources) -> None:
    (hooked_root / ".claude/commands/guide.md").symlink_to(hooked_root / "docs/guide.md")
    before = waiting(hooked_root, sources)
    write(hooked_root / "docs/guide.md", "Guide!")
    assert waiting(hooked_root, sources)[".claude/commands/guide.md"] != before[".claude/commands/guide.md"]


@pytest.mark.usefixtures("_settled")
def test_a_broken_link_that_is_repaired_is_seen(hooked_root: Path, sources: ProjectSources) -> None:
    (hooked_root / ".claude/commands/later.md").symlink_to(hooked_root / "docs/later.md")
    assert ".claude/commands/later.md" not in waiting(hooked_root, sources)
    write(hooked_root / "docs/later.md", "x")
    assert ".claude/commands/later.md" in waiting(hooked_root, sources)


@pytest.mark.usefixtures("_settled")
def test_an_answer_of_another_process_is_seen(hooked_root: Path, sources: ProjectSources) -> None:
    assert sources.look(hooked_root).files == ()
    ProjectSources(sources.config, sources.home, sources.trust).answer(hooked_root, trusted=True)
    assert len(sources.look(hooked_root).files) == 3


def test_an_answer_is_about_the_files_that_were_shown(hooked_root: Path, sources: ProjectSources) -> None:
    shown = sources.look(hooked_root).waiting
    write(hooked_root / ".claude/commands/commit.md", "rm -rf /")
    sources.answer(hooked_root, trusted=True, shown=shown)
    assert [file.path.name for file in sources.look(hooked_root).waiting] == ["commit.md"]
    assert sources.look(hooked_root).changes[0].path == hooked_root / ".claude/commands/commit.md"


def test_the_same_files_in_a_folder_that_was_replaced_are_asked_about(
    hooked_root: Path, sources: ProjectSources
) -> None:
    sources.answer(hooked_root, trusted=True)
    before = hooked_root.rename(hooked_root.with_name("before"))
    empty_repository(hooked_root)
    for name in (".claude/settings.json", ".claude/skills/web/SKILL.md", ".claude/commands/commit.md"):
        write(hooked_root / name, (before / name).read_text())
    assert len(sources.look(hooked_root).waiting) == 3


def test_an_answer_that_is_not_kept_holds_in_this_program_alone(hooked_root: Path, sources: ProjectSources) -> None:
    passing = ProjectSources(sources.config, sources.home, sources.trust, keeps_answers=False)
    passing.answer(hooked_root, trusted=True)
    assert len(passing.look(hooked_root).files) == 3
    assert not sources.trust.path.exists()
    assert sources.look(hooked_root).files == ()


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


def test_folders_without_end_are_looked_at_up_to_a_limit(hooked_root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(finding, "MOST_ENTRIES", 50)
    for folder in range(10):
        for number in range(20):
            write(hooked_root / f".claude/commands/{folder}/{number}.txt", "x")
    found = find_sources(hooked_root, Digests())
    assert any("only 2,000 folders" in one.reason for one in found.left_out)


def test_a_word_of_a_command_that_no_file_can_be_named_is_passed_over(
    hooked_root: Path, sources: ProjectSources
) -> None:
    write(
        hooked_root / ".mcp.json",
        '{"mcpServers": {"a": {"command": "\\ud800", "args": ["\\u0000", "scripts/lint.py"]}}}',
    )
    write(hooked_root / "scripts/lint.py", "pass")
    assert "scripts/lint.py" in waiting(hooked_root, sources)


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
    hooked_root: Path, sources: ProjectSources, looks: list[object]
) -> None:
    first = sources.look(hooked_root)
    looks.clear()
    for _ in range(3):
        assert sources.is_quick(hooked_root)
        assert sources.look(hooked_root) is sources.current(hooked_root) is first
    assert len(looks) == 1
    await asyncio.sleep(0)
    assert sources.is_quick(hooked_root)
    assert len(looks) == 2


@pytest.mark.usefixtures("_settled", "_patient")
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
async def test_the_next_turn_sees_every_change(
    hooked_root: Path, sources: ProjectSources, change: Callable[[Path], object]
) -> None:
    sources.look(hooked_root)
    assert sources.is_quick(hooked_root)
    change(hooked_root)
    await asyncio.sleep(0)
    assert not sources.is_quick(hooked_root)


@pytest.mark.usefixtures("_settled", "_patient")
async def test_a_thread_looks_for_itself_and_an_answer_ends_the_shared_look(
    hooked_root: Path, sources: ProjectSources, looks: list[object]
) -> None:
    sources.look(hooked_root)
    assert sources.is_quick(hooked_root)
    looks.clear()
    seen = list[bool]()
    thread = threading.Thread(target=lambda: seen.append(sources.look(hooked_root) is sources.current(hooked_root)))
    thread.start()
    thread.join()
    assert (seen, len(looks)) == ([True], 1)
    assert sources.is_quick(hooked_root)
    trusted = sources.answer(hooked_root, trusted=True)
    assert sources.look(hooked_root) is trusted
    assert trusted.trusted


@pytest.mark.usefixtures("_settled", "_patient")
async def test_what_became_ready_during_a_look_looks_anew(
    hooked_root: Path, sources: ProjectSources, monkeypatch: pytest.MonkeyPatch
) -> None:
    sources.look(hooked_root)
    loop, quick, holds = asyncio.get_running_loop(), list[bool](), extension_files.Fingerprint.holds
    changes = [write]

    def overtaken(self: extension_files.Fingerprint) -> bool:
        found = holds(self)
        if changes:
            changes.pop()(hooked_root / ".claude/commands/commit.md", "Other")
            loop.call_soon(lambda: quick.append(sources.is_quick(hooked_root)))
        return found

    monkeypatch.setattr(extension_files.Fingerprint, "holds", overtaken)
    assert sources.is_quick(hooked_root)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert quick == [False]


def read(tmp_path: Path, front: str, *, is_skill: bool, body: str = "Do it.") -> Invocable:
    """The one file in a project of its own; it must not be broken."""
    root = tmp_path / "project"
    make = skill if is_skill else command
    make(root / (".claude/skills" if is_skill else ".claude/commands"), "one", front, body)
    found = catalogue(root, sources_of(tmp_path))
    assert found.problems == ()
    return (*found.skills, *found.commands)[0]


def test_one_long_plain_line_with_dots_slashes_and_a_license_sentence(tmp_path: Path) -> None:
    front = (
        "name: one\ndescription: Use this for text/tables. If the user names a .pdf file, take it.\nlicense: Own. See X"
    )
    assert read(tmp_path, front, is_skill=True).description.endswith("take it.")


def test_a_folded_description_with_quotes_dashes_and_arrows(tmp_path: Path) -> None:
    front = 'name: one\ndescription: >\n  First — part → of\n  it. Use when "x", "/one", or\n  "don\'t y".'
    assert (
        read(tmp_path, front, is_skill=True).description == 'First — part → of it. Use when "x", "/one", or "don\'t y".'
    )


def test_a_stripped_folded_description_with_named_arguments(tmp_path: Path) -> None:
    front = (
        "name: one\n"
        "description: >-\n"
        "  Publish it.\n"
        "disable-model-invocation: true\n"
        'argument-hint: "<version>"\n'
        "arguments: [version]"
    )
    found = read(tmp_path, front, is_skill=True)
    assert (found.for_models, found.argument_hint, found.argument_names) == (False, "<version>", ("version",))


def test_plain_tool_names_between_commas(tmp_path: Path) -> None:
    found = read(tmp_path, "description: x\nallowed-tools: Bash, Read, Glob, Grep", is_skill=True)
    assert [str(rule) for rule in read_asked_rules(found).rules] == ["read_file(*)", "list_files(*)", "search(*)"]


def test_brackets_without_quotes_in_a_hint_and_rules_with_colons(tmp_path: Path) -> None:
    front = "allowed-tools: Bash(git add:*), Bash(git status:*)\nargument-hint: [message]\ndescription: 建立 commit"
    found = read(tmp_path, front, is_skill=False)
    assert (found.argument_hint, found.description) == ("[message]", "建立 commit")
    assert [str(rule) for rule in read_asked_rules(found).rules] == ["bash(git add *)", "bash(git status *)"]


def test_several_lists_and_words_in_one_hint(tmp_path: Path) -> None:
    front = (
        "name: one\n"
        "description: Read CODE (SPA, API): phases (0–3).\n"
        "argument-hint: [a|b] <path> [--out <path>]\n"
        "effort: xhigh"
    )
    found = read(tmp_path, front, is_skill=True)
    assert (found.argument_hint, found.effort) == ("[a|b] <path> [--out <path>]", Effort.MAX)
    assert found.description == "Read CODE (SPA, API): phases (0–3)."


def test_an_empty_hint_and_rules_for_everything(tmp_path: Path) -> None:
    front = "description: x\nargument-hint:\nallowed-tools: Bash(*), Read(*), Write(*)"
    found = read(tmp_path, front, is_skill=False)
    assert found.argument_hint == ""
    assert [line.partition(":")[0] for line in read_asked_rules(found).refused] == ["Bash(*)"]


def test_a_fork_with_a_profile_a_short_model_name_and_a_quoted_hint(tmp_path: Path) -> None:
    front = (
        "description: x\n"
        "argument-hint: '<slug> [--repo <name|path>]'\n"
        "model: haiku\n"
        "context: fork\n"
        "agent: general-purpose"
    )
    found = read(tmp_path, front, is_skill=False)
    assert (found.forks, found.agent, found.model) == (True, "general-purpose", "claude-haiku-5-5")
    assert found.argument_hint == "<slug> [--repo <name|path>]"


def test_rules_below_each_other_with_dashes(tmp_path: Path) -> None:
    front = (
        "model: sonnet\n"
        "context: fork\n"
        "description: x\n"
        "argument-hint: REQ-xxx | <idea>\n"
        "allowed-tools:\n"
        "  - Task\n"
        "  - Bash(ls *)"
    )
    found = read(tmp_path, front, is_skill=False)
    assert (found.allowed_tools, found.argument_hint) == (("Task", "Bash(ls *)"), "REQ-xxx | <idea>")


def test_keys_that_no_standard_has_and_a_description_in_brackets(tmp_path: Path) -> None:
    front = (
        'description: "[DEV] Scan it: all"\n'
        "preset: x\n"
        "lifecycle: any\n"
        "domain: a-b\n"
        "metadata:\n"
        "  author: x\n"
        '  version: "1"'
    )
    assert read(tmp_path, front, is_skill=False).description == "[DEV] Scan it: all"


@pytest.mark.parametrize("name", ["with_underscore", "UPPER", "v2.1"])
def test_names_beyond_the_standard_are_taken(name: str, tmp_path: Path) -> None:
    root = tmp_path / "project"
    skill(root / ".claude/skills", name, f"name: {name}\ndescription: x")
    assert [one.name for one in catalogue(root, sources_of(tmp_path)).skills] == [name]
