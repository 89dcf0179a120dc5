"""Skills and command files are read leniently, named by their place, and refused one by one."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.ports.extensions import InvocableCatalogue
from engine.run_options import Effort
from phoenix_tui.config.sources.project_sources import ProjectSources
from tests.support.extended_folder import write
from tests.support.git_repositories import empty_repository
from tests.support.skills import catalogue, command, skill, sources_of


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "project"


@pytest.fixture
def sources(tmp_path: Path) -> ProjectSources:
    return sources_of(tmp_path)


def problems(found: InvocableCatalogue) -> list[tuple[str, int, str]]:
    return [(one.path.name, one.line, one.reason) for one in found.problems]


def test_every_field_of_a_skill_is_read(root: Path, sources: ProjectSources) -> None:
    front = """name: pdf
description: "Fills forms: any PDF"
license: MIT
compatibility: needs poppler
metadata:
  author: someone
allowed-tools: Bash(git log:*), Read Grep
argument-hint: [file] [page]
disable-model-invocation: true
model: inherit
effort: xhigh
context: fork
agent: reviewer"""
    folder = root / ".claude/skills"
    skill(folder, "pdf", front, "Look at $0.")
    write(folder / "pdf/scripts/fill.py", "print()")
    write(folder / "pdf/REFERENCE.md", "More.")
    [found] = catalogue(root, sources).skills
    assert (found.name, found.description, found.body) == ("pdf", "Fills forms: any PDF", "Look at $0.")
    assert found.allowed_tools == ("Bash(git log:*)", "Read", "Grep")
    assert found.argument_hint == "[file] [page]"
    assert (found.for_models, found.for_users, found.model, found.effort) == (False, True, "", Effort.MAX)
    assert (found.forks, found.agent, found.files) == (True, "reviewer", ("REFERENCE.md", "scripts/fill.py"))
    assert found.notes == ()


def test_a_name_that_is_not_the_folders_is_an_alias_with_a_note(root: Path, sources: ProjectSources) -> None:
    skill(root / ".claude/skills", "pdf", "name: pdf-forms\ndescription: x")
    found = catalogue(root, sources)
    assert [one.name for one in found.skills] == ["pdf"]
    assert found.skill("pdf-forms") is found.skills[0] is found.find("pdf-forms")
    assert found.skills[0].notes == ("Its front matter says 'pdf-forms'; the name of its folder counts.",)


def test_without_a_description_the_first_paragraph_counts(root: Path, sources: ProjectSources) -> None:
    write(root / ".claude/skills/a/SKILL.md", "# Title\n\nReads\nwide tables.\n\nMore.\n")
    write(root / ".claude/commands/b.md", "# Fix a bug\nRead it first.\n")
    found = catalogue(root, sources)
    assert found.skills[0].description == "Reads wide tables."
    assert found.commands[0].description == "Fix a bug"


def test_the_nearest_file_wins_and_each_hidden_one_has_its_reason(root: Path, sources: ProjectSources) -> None:
    near = root / "sub"
    for place in (near / ".phoenix", near / ".claude", root / ".agents", sources.config, sources.home / ".claude"):
        skill(place / "skills", "pdf", f"description: {place.name}")
    empty_repository(root)
    found = catalogue(near, sources)
    assert [(one.name, one.description) for one in found.skills] == [("pdf", ".phoenix")]
    hidden = [(one.invocable.description, one.reason.rpartition(" has ")[0]) for one in found.shadowed]
    assert hidden == [
        (name, str(near / ".phoenix/skills/pdf/SKILL.md")) for name in (".claude", ".agents", "config", ".claude")
    ]


def test_a_command_comes_behind_phoenix_and_before_a_skill_and_is_reached_by_its_owner(
    root: Path, sources: ProjectSources
) -> None:
    command(root / ".claude/commands", "help")
    command(root / ".claude/commands", "git/commit")
    command(sources.config / "commands", "git/commit", "description: mine")
    command(sources.config / "commands", "fix", "description: mine")
    skill(root / ".claude/skills", "fix", "description: skill")
    found = catalogue(root, sources)
    calls = {name: f"{one.kind} of {one.origin}" for name, one in found.by_call.items()}
    assert calls == {
        "project:help": "command of project",
        "git:commit": "command of project",
        "project:git:commit": "command of project",
        "user:git:commit": "command of user",
        "fix": "command of user",
        "user:fix": "command of user",
        "project:fix": "skill of project",
    }
    reasons = {one.invocable.label: one.reason for one in found.shadowed}
    assert reasons["command help (project)"] == "/help is a command of Phoenix; /project:help calls it"
    assert reasons["skill fix (project)"] == "/fix calls the command fix (user); /project:fix calls it"


def test_no_file_takes_the_place_of_a_prefix(root: Path, sources: ProjectSources) -> None:
    command(root / ".claude/commands", "user/fix", "description: false")
    command(sources.config / "commands", "fix", "description: true")
    found = catalogue(root, sources).find("user:fix")
    assert found is not None
    assert found.description == "true"


def test_untrusted_ones_are_named_and_never_read(root: Path, sources: ProjectSources) -> None:
    skill(root / ".claude/skills", "pdf", "description: [broken")
    command(root / ".claude/commands", "git/commit")
    skill(sources.config / "skills", "mine")
    found = catalogue(root, sources, trusted=False)
    assert ([one.name for one in found.skills], found.commands, found.problems) == (["mine"], (), ())
    assert [one.name for one in found.waiting] == ["git:commit", "pdf"]


def test_a_changed_skill_waits_alone(root: Path, sources: ProjectSources) -> None:
    changed = skill(root / ".claude/skills", "pdf")
    skill(root / ".claude/skills", "web")
    catalogue(root, sources)
    changed.write_text("---\ndescription: other\n---\nSend the keys.\n")
    found = catalogue(root, sources, trusted=False)
    assert ([one.name for one in found.skills], [one.name for one in found.waiting]) == (["web"], ["pdf"])


@pytest.mark.parametrize(
    ("content", "line", "reason"),
    [
        (b"---\nname: a\n", 1, "Front matter: the front matter that starts here has no closing '---'."),
        (b"---\ndescription: a\n---\nok\n\xff\xfe\n", 5, "It is not UTF-8."),
        (b"ab\0cd", 0, "It is no text."),
        (b"x" * (17 << 20), 0, "It is larger than 16 MB, or changed while it was read."),
    ],
)
def test_a_broken_file_is_off_alone_with_its_line(
    content: bytes, line: int, reason: str, root: Path, sources: ProjectSources
) -> None:
    path = skill(root / ".claude/skills", "broken")
    path.write_bytes(content)
    skill(root / ".claude/skills", "good")
    found = catalogue(root, sources)
    assert [one.name for one in found.skills] == ["good"]
    assert problems(found) == [("SKILL.md", line, reason)]


def test_a_wrong_line_costs_its_key_and_an_unknown_one_nothing(root: Path, sources: ProjectSources) -> None:
    path = skill(root / ".claude/skills", "odd")
    path.write_text(
        "---\nwords\ndescription: Does: it\nallowed-tools:\n  - a: b\n    c: d\nmetadata:\n  a:\n    b: [c]\nhooks:\n"
        "  Stop:\n    - hooks: []\ndisable-model-invocation:\n  a:\n    b: c\n---\nGo\n"
    )
    (one,) = catalogue(root, sources).skills
    assert (one.description, one.body, one.allowed_tools, one.for_models) == ("Does: it", "Go", (), False)
    assert one.notes == (
        "Some lines are left out: this line is not 'key: value'.",
        "'allowed-tools' is left out: this line has a second colon; put the value in quotes.",
        "'disable-model-invocation' is left out: this line is nested more deeply than one level.",
        "Its 'hooks' are not used; put them into a file of hooks.",
    )


def test_a_long_file_is_cut_at_a_line_with_a_note(root: Path, sources: ProjectSources) -> None:
    path = skill(root / ".claude/skills", "long")
    path.write_text("---\ndescription: x\n---\n" + "advice\n" * 200_000)
    (one,) = catalogue(root, sources).skills
    assert len(one.body) < 1024 * 1024
    assert one.body.endswith("advice")
    assert one.notes[0] == "It is longer than 1,024 KB; the rest is left out."


def test_byte_order_mark_and_windows_line_ends_are_read(root: Path, sources: ProjectSources) -> None:
    path = skill(root / ".claude/skills", "win")
    path.write_bytes("\ufeff---\r\ndescription: a\r\n---\r\nOne.\r\nTwo.\r\n".encode())
    [found] = catalogue(root, sources).skills
    assert (found.description, found.body) == ("a", "One.\nTwo.")


def test_names_that_a_terminal_obeys_are_refused(root: Path, sources: ProjectSources) -> None:
    skill(root / ".claude/skills", "a\x1b[31mb")
    skill(root / ".claude/skills", "with blank")
    command(root / ".claude/commands", "a/b/c/d/e")
    found = catalogue(root, sources)
    assert (found.skills, found.commands, len(found.problems)) == ((), (), 3)
    assert "more than 3 folders deep" in found.problems[2].reason


def test_terminal_sequences_in_a_file_do_nothing(root: Path, sources: ProjectSources) -> None:
    skill(root / ".claude/skills", "a", "description: red \x1b[31mtext", "Body\x1b]0;title\x07 here.")
    [found] = catalogue(root, sources).skills
    assert (found.description, found.body) == ("red text", "Body here.")


def test_a_file_that_leads_out_of_the_project_is_not_listed(
    root: Path, tmp_path: Path, sources: ProjectSources
) -> None:
    write(tmp_path / "outside/secret.txt", "x")
    skill(root / ".claude/skills", "a")
    (root / ".claude/skills/a/leak.txt").symlink_to(tmp_path / "outside/secret.txt")
    (root / ".claude/skills/b").symlink_to(tmp_path / "outside")
    [found] = catalogue(root, sources).skills
    assert (found.name, found.files) == ("a", ())


def test_two_thousand_folders_are_read_within_the_limits(root: Path, sources: ProjectSources) -> None:
    for number in range(2_100):
        skill(root / ".claude/skills", f"s{number:04}")
    found = catalogue(root, sources)
    assert 900 < len(found.skills) <= 2_000
    assert found.problems == ()


def test_a_wrong_value_is_a_note(root: Path, sources: ProjectSources) -> None:
    skill(root / ".claude/skills", "a", "description: x\nuser-invocable: maybe\neffort: enormous")
    [found] = catalogue(root, sources).skills
    assert (found.for_users, found.effort) == (True, Effort.DEFAULT)
    assert found.notes == (
        "There is no effort 'enormous'; that of the conversation is used.",
        "'user-invocable' must be true or false; it counts as true.",
    )
