"""Agents in `.claude/agents`: trust, names, limits, and files that are wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.ports.profiles import ProfileError
from engine.records import PermissionMode
from phoenix_tui.config.profile_files import ProfileFiles
from phoenix_tui.config.sources.agents import MOST_AGENTS
from phoenix_tui.config.sources.project_sources import ProjectSources
from phoenix_tui.config.trust import TrustFile
from phoenix_tui.wiring.profiles import AgentProfiles
from tests.support.extended_folder import write
from tests.support.git_repositories import empty_repository

REVIEWER = "---\nname: reviewer\ndescription: Finds mistakes\ntools: Read, Grep\nmodel: sonnet\n---\nReview it.\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "repository"
    empty_repository(root)
    return root


@pytest.fixture
def profiles(tmp_path: Path) -> AgentProfiles:
    trust = TrustFile(tmp_path / "trust.json")
    sources = ProjectSources(tmp_path / "config", tmp_path / "user", trust)
    return AgentProfiles(ProfileFiles(tmp_path / "config/profiles", trust), sources)


def put(folder: Path, name: str, text: str = "Work.\n") -> Path:
    return write(folder / ".claude/agents" / name, text)


def agents(profiles: AgentProfiles, folder: Path) -> dict[str, str]:
    """Names of the agents and where each comes from."""
    return {one.name: Path(one.source).name for one in profiles.agents(folder)}


def clauses(profiles: AgentProfiles, folder: Path) -> dict[str, str]:
    """Reasons for which files are not used, by their names."""
    return {one.path.name: one.text.removeprefix(f"{one.path}: ") for one in profiles.troubles(folder)}


def trust(profiles: AgentProfiles, folder: Path) -> None:
    profiles.sources.answer(folder, trusted=True)


def test_a_file_of_the_user_counts_and_one_of_a_project_after_its_trust(
    root: Path, tmp_path: Path, profiles: AgentProfiles
) -> None:
    put(tmp_path / "user", "mine.md")
    put(root, "deep/er/first.md", REVIEWER)
    assert agents(profiles, root) == {"mine": "mine.md"}
    assert clauses(profiles, root) == {
        "first.md": "the project is not trusted: 1 agent left out (first); /trust shows them."
    }, "its content is not read: the name is that of the file"
    with pytest.raises(ProfileError, match=r"no profile 'reviewer'.*research, mine\."):
        profiles.resolve("reviewer", root)
    trust(profiles, root)
    assert agents(profiles, root) == {"reviewer": "first.md", "mine": "mine.md"}
    found = profiles.resolve("reviewer", root)
    assert (found.description, found.model, found.tools, found.prompt) == (
        "Finds mistakes",
        "anthropic/claude-sonnet-5-5",
        ("read_file", "read_image", "search"),
        "Review it.",
    )


def test_a_file_that_changes_is_not_used_until_it_is_agreed_to(root: Path, profiles: AgentProfiles) -> None:
    put(root, "a.md")
    path = put(root, "b.md")
    trust(profiles, root)
    assert agents(profiles, root) == {"a": "a.md", "b": "b.md"}
    path.write_text("Do something else.\n")
    put(root, "new.md")
    assert agents(profiles, root) == {"a": "a.md"}
    assert clauses(profiles, root)["b.md"].startswith("the project changed since it was trusted: 2 agents left out")
    with pytest.raises(ProfileError):
        profiles.resolve("b", root)
    trust(profiles, root)
    assert profiles.resolve("b", root).prompt == "Do something else."
    path.unlink()
    assert agents(profiles, root) == {"a": "a.md", "new": "new.md"}


def test_the_nearest_file_counts_and_a_profile_of_the_name_stands_before_it(
    root: Path, tmp_path: Path, profiles: AgentProfiles
) -> None:
    put(tmp_path / "user", "one.md", "---\nname: reviewer\n---\nOf the user.\n")
    put(root, "two.md", "---\nname: reviewer\n---\nOf the repository.\n")
    put(root / "sub", "three.md", "---\nname: reviewer\n---\nOf the folder.\n")
    put(root / "sub", "explore.md")
    put(root / "sub", "own.md")
    write(tmp_path / "config/profiles/own.md", "---\ndescription: x\n---\nThe user's profile.\n")
    trust(profiles, root / "sub")
    assert agents(profiles, root / "sub") == {"reviewer": "three.md"}
    assert profiles.resolve("own", root).prompt == "The user's profile."
    assert profiles.resolve("explore", root / "sub").source == "built-in"
    found = clauses(profiles, root / "sub")
    assert set(found) == {"one.md", "two.md", "explore.md", "own.md"}
    assert found["one.md"].endswith("sub/.claude/agents/three.md has the same name and comes first.")
    assert found["explore.md"] == "the profile explore has the same name and comes first (built-in)."


def test_no_file_widens_the_permissions_of_the_user(root: Path, tmp_path: Path, profiles: AgentProfiles) -> None:
    for folder in (root, tmp_path / "user"):
        put(folder, f"{folder.name}.md", "---\npermissionMode: bypassPermissions\nmaxTurns: 900\n---\nx\n")
    trust(profiles, root)
    for one in profiles.agents(root):
        assert one.mode_under(PermissionMode.ASK) is PermissionMode.ASK
        assert one.limits_under(5, 60.0) == (5, 60.0)
    put(root, "none.md", "---\ntools: Bash\ndisallowedTools: Bash\n---\nx\n")
    trust(profiles, root)
    assert not any(profiles.resolve("none", root).allows(tool) for tool in ("bash", "write_file", "read_file"))


def test_files_that_cannot_be_used_are_named_and_harm_no_other(
    root: Path, tmp_path: Path, profiles: AgentProfiles
) -> None:
    put(root, "good.md", "---\ndescription: a\x1b[2Jb\n---\nSay\x1b]52;c;aGk=\x07 it.\n")
    put(root, "large.md", "x" * 1024 * 1024)
    put(root, "broken.md", "---\nname: x\n  no: map: [\n---\nx\n")
    put(root, "path.md", "---\nname: ../../etc/passwd\n---\nx\n")
    put(root, "known.md", "---\ntools: Read, NotebookEdit, Made\x1b[2JUp\npermissionMode: root\n---\nx\n")
    put(root, ".hidden.md")
    (root / ".claude/agents/binary.md").write_bytes(b"\0\1\2" * 100)
    (root / ".claude/agents/latin.md").write_bytes(b"caf\xe9\n")
    (root / ".claude/agents/out.md").symlink_to(write(tmp_path / "outside.md", "x\n"))
    trust(profiles, root)
    assert agents(profiles, root) == {"broken": "broken.md", "good": "good.md", "known": "known.md"}
    good = profiles.resolve("good", root)
    assert (good.description, good.prompt) == ("ab", "Say it.")
    texts = [one.text.removeprefix(f"{one.path.parent}/") for one in profiles.troubles(root)]
    assert texts == [
        "binary.md: it is no text.",
        "broken.md: name left out: this line is a key below a key that has a value already.",
        "known.md: there are no such tools here: NotebookEdit, MadeUp.",
        "known.md: there is no permission mode root.",
        "large.md: it is larger than 256 KB, or changed while it was read.",
        "latin.md: it is not UTF-8 text.",
        "path.md:2: its name must be one word of at most 64 letters, digits, '-', '_' and '.'.",
        "out.md: a link leads out of the project.",
    ]


def test_five_thousand_files_are_cut_and_looked_at_again_without_being_read(
    root: Path, profiles: AgentProfiles
) -> None:
    for number in range(5_000):
        put(root, f"{number:04}.md", "x")
    trust(profiles, root)
    assert len(profiles.agents(root)) == MOST_AGENTS
    assert clauses(profiles, root)["0500.md"] == "at most 500 agents of a folder are used."
    first = profiles.list_added(root)
    assert profiles.agents(root)[0] is first[0]


def test_what_the_model_is_told_comes_from_memory(root: Path, tmp_path: Path, profiles: AgentProfiles) -> None:
    put(root, "a.md")
    trust(profiles, root)
    assert profiles.list_added(root) == ()
    profiles.names(root)
    assert [one.name for one in profiles.list_added(root)] == ["a"]
    assert profiles.list_added(tmp_path) == (), "another folder has none of it"
    put(root, "b.md")
    assert [one.name for one in profiles.list_added(root)] == ["a"]
